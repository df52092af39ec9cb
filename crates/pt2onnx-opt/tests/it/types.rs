//! Types that follow from those of inputs.

use crate::cases::run;
use pt2onnx_ir::{Model, TextOptions};
use pt2onnx_opt::{Options, Target, fit_imported, infer_types, optimize_imported};
use pt2onnx_symbolic::MAX_RANK;

fn header(opset: u32, graph: &str) -> String {
    format!("<ir_version: 10, opset_import: [\"\" : {opset}, \"local\" : 1]> {graph}")
}

fn typed(graph: &str) -> String {
    let mut model: Model = header(20, graph).parse().unwrap();
    infer_types(&mut model);
    let mut options = TextOptions::default();
    options.types = true;
    model.text(options).to_string()
}

#[test]
fn types() {
    run("types", |graph, _| typed(graph));
}

/// The sizes are added up once, not for each part.
#[test]
fn parts_of_a_wide_split() {
    let parts =
        |name: &str| (0..50_000).map(|i| format!("{name}{i}")).collect::<Vec<_>>().join(", ");
    let ones = vec!["1"; 50_000].join(", ");
    let typed = typed(&format!(
        "g (float[50000] x) => (float[1] p49999) <int64[50000] n = {{{ones}}}> {{ {} = Split (x, n) }}",
        parts("p")
    ));
    assert_eq!(typed.matches("float[1]").count(), 50_001);
}

/// ONNX's shape inference for opset 10, and ONNX Runtime with it, takes a sliced dimension for as
/// large as before if it has no name.
#[test]
fn sizes_of_slices_have_names_at_opset_10() {
    let graph =
        "g (float[N,slice_0] x, int64[1] n) => (float[?,?] y, float[?,?] z) <int64[1] zero = {0}, int64[1] four = {4}> {
        a = Slice (x, zero, n) b = Slice (a, zero, four) y = Relu (b) z = Slice (y, zero, n)
    }";
    let shapes = |opset: u32| {
        let mut model: Model = header(opset, graph).parse().unwrap();
        fit_imported(&mut model, Target::Standard).unwrap();
        let nodes = model.nodes(Model::MAIN).flat_map(|node| model[node].outputs());
        let types = nodes.map(|&v| model[v].ty.as_ref().map(ToString::to_string));
        types.collect::<Option<Vec<_>>>().unwrap()
    };
    let [named, plain] = [10, 11].map(shapes);
    assert!(plain[..2].iter().all(|ty| ty.contains('?')), "{plain:?}");
    assert_eq!(named[..2], ["float[slice_1,slice_0]", "float[slice_2,slice_0]"]);
    assert_eq!(named[2..], plain[2..]);
}

/// Tensors of more dimensions than `MAX_RANK` have types without sizes, whose time and memory would
/// grow with the square of the nodes. Nodes that take the dimensions away still cancel.
#[test]
fn nested_dimensions() {
    let node = |op: &str, i: usize| format!("v{} = {op} (v{i}, axis) ", i + 1);
    let up: String = (0..300).map(|i| node("Unsqueeze", i)).collect();
    let down: String = (300..600).map(|i| node("Squeeze", i)).collect();
    let graph = |output: &str, nodes: &str| {
        format!("g (float[n] v0) => (float {output}) <int64[1] axis = {{0}}> {{ {nodes} }}")
    };
    let typed = typed(&graph("v300", &up));
    let ones = |count: usize| format!("float[{}n]", "1,".repeat(count));
    assert!(typed.contains(&ones(MAX_RANK - 1)) && !typed.contains(&ones(MAX_RANK)), "{typed}");
    let mut model: Model = header(20, &graph("v600", &(up + &down))).parse().unwrap();
    optimize_imported(&mut model, &Options::default());
    let nodes = model.graph_nodes();
    assert!(nodes.len() == 1 && model[nodes[0]].is("Identity"), "{model}");
}
