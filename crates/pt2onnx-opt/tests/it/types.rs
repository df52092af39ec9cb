//! Types that follow from those of inputs.

use pt2onnx_ir::{Model, TextOptions};
use pt2onnx_opt::{Target, fit_imported, infer_types};

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

/// A graph output has the shape of the file where none follows. Other values have what follows.
#[test]
fn shapes_of_outputs_stay() {
    let typed = typed(
        "g (float[2,3] x, int64[K] s) => (float[2,3] y) <float[5] a> { a = Reshape (x, s) y = Reshape (a, s) }",
    );
    assert!(typed.contains("=> (float[2,3] y)") && !typed.contains("float[5]"), "{typed}");
}

/// So has an output of a body: ONNX Runtime's `Scan` needs it.
#[test]
fn shapes_of_outputs_of_bodies_stay() {
    let typed = typed(
        "g (float[N,4] x) => (float[N,4] y) <float[4] zero = {0, 0, 0, 0}> {
            factor = local.Factor (x)
            last, y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] e) => (float[4] t, float[4] o) {
                t = Add (s, e) o = Mul (t, factor)
            }> (zero, x)
        }",
    );
    assert!(typed.contains("=> (float[4] t, float[4] o)"), "{typed}");
}

/// The result of a loop has the element type of its body's result, if the file has none.
#[test]
fn results_of_loops() {
    let typed = typed(
        "g (float[N] x, int64 n, float[M,N] rows) => (float[K] y) {
            a, b = Loop <body = b (int64 i, bool c, float[L] s) => (bool d, float[P] t, int64 u) {
                d = Identity (c) t = Concat <axis = 0> (s, s) u = Identity (i)
            }> (n, \"\", x)
            e, f = Scan <num_scan_inputs = 1, body = b (float[N] s, float[N] p) => (float[N] t, float[N] q) {
                t = Add (s, p) q = Neg (p)
            }> (x, rows)
            y = Add (a, e)
        }",
    );
    for loops in ["# float[], int64[]", "# float[], float[?,?]"] {
        assert!(typed.contains(loops), "{typed}");
    }
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
