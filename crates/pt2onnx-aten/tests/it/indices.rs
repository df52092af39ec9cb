//! Nodes that the lowerings of indices, ranges and writes emit, as text. Symbols are at least 2.

use insta::assert_snapshot;
use pt2onnx_aten::lower;
use pt2onnx_fx::graph::{
    ArgKind, Argument, Device, ExportedProgram, Graph, GraphSignature, InputSpec, Layout, Name,
    NamedArg, Node, NodeMeta, OpName, OutputSpec, TensorMeta,
};
use pt2onnx_symbolic::{Constraints, Expr, Range};
use pt2onnx_tensor::DType;

const F: DType = DType::F32;
const I: DType = DType::I64;
const B: DType = DType::Bool;

type Dims<'a> = &'a [&'a str];

fn e(text: &str) -> Expr {
    Expr::parse(text).expect("an expression")
}

/// A contiguous tensor.
fn meta(dtype: DType, dims: Dims) -> TensorMeta {
    let sizes: Vec<Expr> = dims.iter().map(|d| e(d)).collect();
    let strides = (0..sizes.len()).map(|i| Expr::product(sizes[i + 1..].to_vec()));
    TensorMeta {
        dtype,
        strides: strides.collect(),
        sizes,
        storage_offset: Expr::int(0),
        requires_grad: false,
        device: Device { kind: "cpu".into(), index: None },
        layout: Layout::Strided,
    }
}

fn x(i: usize) -> Name {
    format!("x{i}").into()
}

fn t(i: usize) -> Argument {
    Argument::Tensor(x(i))
}

/// The nodes of a program of one op with tensors `x0`, `x1`, ... for inputs and one result.
fn lowered(
    (op, overload): (&str, &str),
    inputs: &[(DType, Dims)],
    args: &[Argument],
    out: (DType, Dims),
) -> String {
    let y: Name = "y".into();
    let mut graph = Graph::default();
    for (i, (dtype, dims)) in inputs.iter().enumerate() {
        graph.inputs.push(t(i));
        graph.values_mut().insert(x(i), meta(*dtype, dims).into());
    }
    graph.values_mut().insert(y.clone(), meta(out.0, out.1).into());
    graph.outputs.push(Argument::Tensor(y.clone()));
    let named = |value: &Argument| NamedArg {
        name: "".into(),
        value: value.clone(),
        kind: ArgKind::Positional,
    };
    let node = Node {
        name: y.clone(),
        target: OpName::new("aten", op, overload),
        args: args.iter().map(named).collect(),
        outputs: graph.outputs.clone(),
        single_return: None,
        meta: NodeMeta::default().into(),
    };
    graph.nodes.push(node.into());
    let mut constraints = Constraints::new();
    for symbol in ["s0", "s1", "s2"] {
        constraints.constrain(&e(symbol), Range::at_least(2));
    }
    let signature = GraphSignature {
        inputs: graph.inputs.iter().cloned().map(InputSpec::UserInput).collect(),
        outputs: vec![OutputSpec::UserOutput(Argument::Tensor(y))],
    };
    let program = ExportedProgram {
        graph,
        signature,
        constraints,
        range_constraints: Vec::new(),
        guards: Vec::new(),
        module_call_graph: Vec::new(),
        state: Default::default(),
        constants: Default::default(),
        mutations: Vec::new(),
        torch_version: String::new(),
        schema_version: (8, 20),
        verifiers: Vec::new(),
        opset_version: Default::default(),
    };
    let mut model =
        lower(&program, &Default::default(), pt2onnx_aten::State::Drop).expect("a model").model;
    model.assign_names();
    pt2onnx_ir::verify(&model).expect("a valid model");
    let text = model.to_string();
    text.split_once(">\n").expect("a header").1.to_owned()
}

fn indices(given: &[Option<usize>]) -> Argument {
    Argument::OptionalTensors(given.iter().map(|i| i.map(x)).collect())
}

#[test]
fn indices_with_dimensions_of_their_own_gather_one_after_another() {
    assert_snapshot!(lowered(
        ("index", "Tensor"),
        &[(B, &["s0", "s1"]), (I, &["s0", "1", "1", "1"]), (I, &["s2"])],
        &[t(0), indices(&[Some(1), Some(2)])],
        (B, &["s0", "1", "1", "s2"]),
    ), @r#"
main_graph (bool[s0,s1] x0, int64[s0,1,1,1] x1, int64[s2] x2) => (bool[s0,1,1,s2] y)
<
  int64[1] val_0 = {0},
  int64[2] val_1 = {1, 2}
>
{
  val_2 = Gather <axis: int = 1> (x0, x2)
  val_3 = Reshape (x1, val_0)
  val_4 = Gather <axis: int = 0> (val_2, val_3)
  y = Unsqueeze (val_4, val_1)
}
"#);
}

#[test]
fn indices_that_are_not_neighbours_stand_in_front() {
    assert_snapshot!(lowered(
        ("index", "Tensor"),
        &[(F, &["s0", "4", "s1"]), (I, &["3"]), (I, &["3"])],
        &[t(0), indices(&[Some(1), None, Some(2)])],
        (F, &["3", "4"]),
    ), @r#"
main_graph (float[s0,4,s1] x0, int64[3] x1, int64[3] x2) => (float[3,4] y)
<
  int64[1] val_0 = {1}
>
{
  val_1 = Unsqueeze (x1, val_0)
  val_2 = Unsqueeze (x2, val_0)
  val_3 = Concat <axis: int = 1> (val_1, val_2)
  val_4 = Transpose <perm: ints = [0, 2, 1]> (x0)
  y = GatherND (val_4, val_3)
}
"#);
}

#[test]
fn a_mask_alone_compresses() {
    assert_snapshot!(lowered(
        ("index", "Tensor"),
        &[(F, &["s0", "4"]), (B, &["s0"])],
        &[t(0), indices(&[Some(1)])],
        (F, &["u0", "4"]),
    ), @r#"
main_graph (float[s0,4] x0, bool[s0] x1) => (float[u0,4] y)
{
  y = Compress <axis: int = 0> (x0, x1)
}
"#);
}

#[test]
fn one_value_where_a_mask_says_is_where() {
    assert_snapshot!(lowered(
        ("index_put", "default"),
        &[(F, &["s0", "s1", "4"]), (B, &["s0", "s1"]), (F, &[])],
        &[t(0), indices(&[Some(1)]), t(2)],
        (F, &["s0", "s1", "4"]),
    ), @r#"
main_graph (float[s0,s1,4] x0, bool[s0,s1] x1, float x2) => (float[s0,s1,4] y)
<
  int64[1] val_0 = {2}
>
{
  val_1 = Unsqueeze (x1, val_0)
  y = Where (val_1, x2, x0)
}
"#);
}

#[test]
fn values_of_their_own_where_a_mask_says_scatter() {
    assert_snapshot!(lowered(
        ("index_put", "default"),
        &[(F, &["s0", "4"]), (B, &["s0"]), (F, &["s1", "4"])],
        &[t(0), indices(&[Some(1)]), t(2)],
        (F, &["s0", "4"]),
    ), @r#"
main_graph (float[s0,4] x0, bool[s0] x1, float[s1,4] x2) => (float[s0,4] y)
{
  val_0 = NonZero (x1)
  val_1 = Transpose <perm: ints = [1, 0]> (val_0)
  y = ScatterND (x0, val_1, x2)
}
"#);
}

#[test]
fn a_cache_is_written_along_its_own_axis() {
    assert_snapshot!(lowered(
        ("index_copy", "default"),
        &[(F, &["1", "8", "s0", "64"]), (I, &["s1"]), (F, &["1", "8", "s1", "64"])],
        &[t(0), Argument::Int(2), t(1), t(2)],
        (F, &["1", "8", "s0", "64"]),
    ), @r#"
main_graph (float[1,8,s0,64] x0, int64[s1] x1, float[1,8,s1,64] x2) => (float[1,8,s0,64] y)
<
  int64[1] val_0 = {1},
  int64[4] val_1 = {1, 8, 1, 64}
>
{
  val_2 = Unsqueeze (x1, val_0)
  val_3 = Expand (val_2, val_1)
  y = ScatterElements <axis: int = 2> (x0, val_3, x2)
}
"#);
}

#[test]
fn a_range_is_written_between_what_stays() {
    let dims: Dims = &["4", "s0"];
    let range = |start, end| {
        let bounds = [Argument::Int(1), Argument::Int(start), Argument::Int(end)];
        [&[t(0), t(1)][..], &bounds].concat()
    };
    // Bounds of one sign do not cross, whatever the size.
    assert_snapshot!(lowered(
        ("slice_scatter", "default"),
        &[(F, dims), (F, &["4", "Min(20, s0) - Min(10, s0)"])],
        &range(10, 20),
        (F, dims),
    ), @r#"
main_graph (float[4,s0] x0, float[4,"-Min(10, s0) + Min(20, s0)"] x1) => (float[4,s0] y)
<
  int64[1] val_0 = {0},
  int64[1] val_1 = {10},
  int64[1] val_2 = {1},
  int64[1] val_3 = {20},
  int64[1] val_4 = {9223372036854775807}
>
{
  val_5 = Slice (x0, val_0, val_1, val_2)
  val_6 = Slice (x0, val_3, val_4, val_2)
  y = Concat <axis: int = 1> (val_5, x1, val_6)
}
"#);
    // These may: then nothing is written, and nothing of `x0` may come twice.
    assert_snapshot!(lowered(
        ("slice_scatter", "default"),
        &[(F, dims), (F, &["4", "Max(0, s0 - 5)"])],
        &range(3, -2),
        (F, dims),
    ), @r#"
main_graph (float[4,s0] x0, float[4,"Max(0, s0 - 5)"] x1) => (float[4,s0] y)
<
  int64[1] val_0 = {1},
  int64[1] val_1 = {2},
  int64[1] val_2 = {3},
  int64[1] val_3 = {0},
  int64[1] val_4 = {9223372036854775807}
>
{
  val_5 = Shape <start: int = 1, end: int = 2> (x0)
  val_6 = Sub (val_5, val_1)
  val_7 = Min (val_2, val_5)
  val_8 = Max (val_6, val_7)
  val_9 = Sub (val_8, val_7)
  val_10 = Concat <axis: int = 0> (val_0, val_9)
  val_11 = Expand (x1, val_10)
  val_12 = Slice (x0, val_3, val_7, val_0)
  val_13 = Slice (x0, val_8, val_4, val_0)
  y = Concat <axis: int = 1> (val_12, val_11, val_13)
}
"#);
}

#[test]
fn an_element_is_written() {
    let write = |dims: Dims, inner: Dims, dim: i64| {
        let args = [t(0), t(1), Argument::Int(dim), Argument::Int(1)];
        lowered(("select_scatter", "default"), &[(F, dims), (F, inner)], &args, (F, dims))
    };
    assert_snapshot!(write(&["s0", "s1"], &["s1"], 0), @r#"
main_graph (float[s0,s1] x0, float[s1] x1) => (float[s0,s1] y)
<
  int64[1] val_0 = {1}
>
{
  y = ScatterND (x0, val_0, x1)
}
"#);
    assert_snapshot!(write(&["s0", "3"], &["s0"], 1), @r#"
main_graph (float[s0,3] x0, float[s0] x1) => (float[s0,3] y)
<
  int64[1] val_0 = {1},
  bool[3] val_1 = {0, 1, 0}
>
{
  val_2 = Unsqueeze (x1, val_0)
  y = Where (val_1, val_2, x0)
}
"#);
    assert_snapshot!(write(&["s0", "s1"], &["s0"], 1), @r#"
main_graph (float[s0,s1] x0, float[s0] x1) => (float[s0,s1] y)
<
  int64[1] val_0 = {1},
  int64[1] val_1 = {0},
  int64[1] val_2 = {2},
  int64[1] val_3 = {9223372036854775807}
>
{
  val_4 = Unsqueeze (x1, val_0)
  val_5 = Slice (x0, val_1, val_0, val_0)
  val_6 = Slice (x0, val_2, val_3, val_0)
  y = Concat <axis: int = 1> (val_5, val_4, val_6)
}
"#);
}

#[test]
fn masked_scatter_takes_as_many_as_there_are_places() {
    assert_snapshot!(lowered(
        ("masked_scatter", "default"),
        &[(F, &["s0", "s1"]), (B, &["s0", "s1"]), (F, &["s2"])],
        &[t(0), t(1), t(2)],
        (F, &["s0", "s1"]),
    ), @r#"
main_graph (float[s0,s1] x0, bool[s0,s1] x1, float[s2] x2) => (float[s0,s1] y)
<
  int64[1] val_0 = {0}
>
{
  val_1 = NonZero (x1)
  val_2 = Shape <start: int = 1> (val_1)
  val_3 = Slice (x2, val_0, val_2, val_0)
  val_4 = Transpose <perm: ints = [1, 0]> (val_1)
  y = ScatterND (x0, val_4, val_3)
}
"#);
}

#[test]
fn repeats_of_each_element_are_marked_where_the_next_begins() {
    assert_snapshot!(lowered(
        ("repeat_interleave", "self_Tensor"),
        &[(F, &["s0", "4"]), (I, &["s0"])],
        &[t(0), t(1), Argument::Int(0)],
        (F, &["u0", "4"]),
    ), @r#"
main_graph (float[s0,4] x0, int64[s0] x1) => (float[u0,4] y)
<
  int64 val_0 = {0},
  int64[1] val_1 = {0},
  int64 val_2 = {1}
>
{
  val_3 = CumSum (x1, val_0)
  val_4 = ReduceSum <keepdims: int = 1> (x1, val_1)
  val_5 = Add (val_4, val_2)
  val_6 = Expand (val_0, val_5)
  val_7 = Shape <start: int = 0, end: int = 1> (x0)
  val_8 = Expand (val_2, val_7)
  val_9 = ScatterElements <reduction: string = "add"> (val_6, val_3, val_8)
  val_10 = Slice (val_9, val_1, val_4, val_1)
  val_11 = CumSum (val_10, val_0)
  y = Gather <axis: int = 0> (x0, val_11)
}
"#);
}

#[test]
fn diagonals_of_any_size() {
    let diagonal = |dims: Dims, out: Dims| {
        lowered(("diagonal", "default"), &[(F, dims)], &[t(0), Argument::Int(1)], (F, out))
    };
    assert_snapshot!(diagonal(&["3", "4", "s0"], &["s0", "3"]), @r#"
main_graph (float[3,4,s0] x0) => (float[s0,3] y)
<
  int64[3,2] val_0 = {0, 1, 1, 2, 2, 3}
>
{
  val_1 = GatherND (x0, val_0)
  y = Transpose <perm: ints = [1, 0]> (val_1)
}
"#);
    assert_snapshot!(diagonal(&["s0", "4"], &["Min(3, s0)"]), @r#"
main_graph (float[s0,4] x0) => (float["Min(3, s0)"] y)
<
  int64[1] val_0 = {-1},
  int64[1] val_1 = {1},
  int64[1] val_2 = {4},
  int64[1] val_3 = {3},
  int64[1] val_4 = {0},
  int64[1] val_5 = {5}
>
{
  val_6 = Reshape (x0, val_0)
  val_7 = Shape <start: int = 0, end: int = 1> (x0)
  val_8 = Min (val_3, val_7)
  val_9 = Mul (val_2, val_8)
  y = Slice (val_6, val_1, val_9, val_4, val_5)
}
"#);
}

#[test]
fn negative_pads_crop_what_was_mirrored() {
    let pads = Argument::Ints(vec![2, -1]);
    let args = [t(0), pads, Argument::String("reflect".into())];
    assert_snapshot!(
        lowered(("pad", "default"), &[(F, &["2", "s0"])], &args, (F, &["2", "s0 + 1"])),
        @r#"
main_graph (float[2,s0] x0) => (float[2,"s0 + 1"] y)
<
  int64[1] val_0 = {1},
  int64[4] val_1 = {0, 2, 0, 0},
  int64[1] val_2 = {0},
  int64[1] val_3 = {-1}
>
{
  val_4 = Pad <mode: string = "reflect"> (x0, val_1)
  y = Slice (val_4, val_2, val_3, val_0)
}
"#
    );
}

#[test]
fn strided_views_gather_from_the_storage() {
    let ints = |v: &[i64]| Argument::Ints(v.to_vec());
    assert_snapshot!(lowered(
        ("as_strided", "default"),
        &[(F, &["s0", "4"])],
        &[t(0), ints(&[2, 3]), ints(&[4, 1]), Argument::Int(1)],
        (F, &["2", "3"]),
    ), @r#"
main_graph (float[s0,4] x0) => (float[2,3] y)
<
  int64[1] val_0 = {-1},
  int64[2,3] val_1 = {1, 2, 3, 5, 6, 7}
>
{
  val_2 = Reshape (x0, val_0)
  y = Gather <axis: int = 0> (val_2, val_1)
}
"#);
}
