//! Emitted nodes as text: sizes at run time, legal types, smart emission, regions; and faults.

use super::errors;
use insta::assert_snapshot;
use pt2onnx_ir::{
    Builder, Diagnostics, InsertPoint, Model, Reduction, TensorType, Type, Value, attrs, verify,
};
use pt2onnx_symbolic::{Constraints, Expr, Range};
use pt2onnx_tensor::DType;

fn e(text: &str) -> Expr {
    Expr::parse(text).unwrap()
}

/// The nodes that `body` emits given inputs `x0`, `x1`, ... of those types; symbols are at least 1.
fn emitted(inputs: &[(DType, &[&str])], body: impl Fn(&Builder, &[Value]) -> Vec<Value>) -> String {
    let mut model = Model::new(26);
    let mut constraints = Constraints::new();
    for symbol in ["s0", "s1"] {
        constraints.constrain(&e(symbol), Range::at_least(1));
    }
    let builder = Builder::new(&mut model, InsertPoint::End(Model::MAIN), constraints);
    let values: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(i, (dtype, dims))| {
            let dims: Vec<Expr> = dims.iter().map(|d| e(d)).collect();
            let value = builder.edit(|m| {
                let value = m.add_input(Model::MAIN, Some(Type::tensor(*dtype, dims)));
                m[value].name = Some(format!("x{i}").into());
                value
            });
            builder.bind_dims(value);
            value
        })
        .collect();
    let outputs = body(&builder, &values);
    assert_eq!(builder.take_diagnostics(), Diagnostics::default());
    drop(builder);
    model.set_outputs(Model::MAIN, &outputs);
    model.assign_names();
    verify(&model).unwrap();
    let text = model.to_string();
    text.split_once(">\n").unwrap().1.to_owned()
}

const F: DType = DType::F32;

/// The diagnostics of `body`.
fn faults(body: impl FnOnce(&Builder)) -> String {
    let mut model = Model::new(26);
    let cx = Builder::new(&mut model, InsertPoint::End(Model::MAIN), Constraints::new());
    body(&cx);
    let faults: Vec<String> = cx.take_diagnostics().iter().map(ToString::to_string).collect();
    faults.join("\n")
}

/// A new input of those sizes.
fn input(cx: &Builder, sizes: &[&str]) -> Value {
    let sizes: Vec<Expr> = sizes.iter().map(|s| e(s)).collect();
    cx.edit(|m| m.add_input(Model::MAIN, Some(Type::tensor(F, sizes))))
}

#[test]
fn reshape_copies_and_infers_sizes_before_it_computes_them() {
    assert_snapshot!(emitted(&[(F, &["s0", "s1", "8"])], |cx, x| {
        vec![cx.reshape(x[0], &[e("s0"), e("s1"), e("2"), e("4")])]
    }), @r#"
main_graph (float[s0,s1,8] x0) => (float[s0,s1,2,4] val_0)
<
  int64[4] val_1 = {0, 0, 2, 4}
>
{
  val_0 = Reshape (x0, val_1)
}
"#);
    assert_snapshot!(emitted(&[(F, &["s0", "s1"])], |cx, x| vec![cx.reshape(x[0], &[e("s1"), e("s0")])]), @r#"
main_graph (float[s0,s1] x0) => (float[s1,s0] val_0)
{
  val_1 = Shape <start: int = 1, end: int = 2> (x0)
  val_2 = Shape <start: int = 0, end: int = 1> (x0)
  val_3 = Concat <axis: int = 0> (val_1, val_2)
  val_0 = Reshape (x0, val_3)
}
"#);
    // u0 may be 0, beside which -1 says nothing.
    assert_snapshot!(emitted(&[(F, &["u0", "s1", "4"])], |cx, x| vec![cx.reshape(x[0], &[e("u0"), e("4*s1")])]), @r#"
main_graph (float[u0,s1,4] x0) => (float[u0,"4*s1"] val_0)
<
  int64[1] val_1 = {4}
>
{
  val_2 = Shape <start: int = 0, end: int = 1> (x0)
  val_3 = Shape <start: int = 1, end: int = 2> (x0)
  val_4 = Mul (val_1, val_3)
  val_5 = Concat <axis: int = 0> (val_2, val_4)
  val_0 = Reshape <allowzero: int = 1> (x0, val_5)
}
"#);
}

#[test]
fn sizes_are_read_where_they_can_be() {
    // 2*s0 is read, s0 solved for; a floor division of what is not negative is a plain one.
    assert_snapshot!(emitted(&[(F, &["2*s0"])], |cx, _| vec![cx.size(&e("s0")), cx.size(&e("2*s0"))]), @r#"
main_graph (float["2*s0"] x0) => (int64 val_0, int64 val_1)
<
  int64 val_2 = {2},
  int64[0] val_3 = {}
>
{
  val_4 = Shape <start: int = 0, end: int = 1> (x0)
  val_5 = Div (val_4, val_2)
  val_0 = Reshape (val_5, val_3)
  val_1 = Reshape (val_4, val_3)
}
"#);
    assert_snapshot!(emitted(&[(F, &["s0", "s1"])], |cx, _| vec![cx.sizes(&[e("s0*s1 - 3"), e("s0//2"), e("7")])]), @r#"
main_graph (float[s0,s1] x0) => (int64[3] val_0)
<
  int64[1] val_1 = {3},
  int64[1] val_2 = {2},
  int64[1] val_3 = {7}
>
{
  val_4 = Shape <start: int = 0, end: int = 1> (x0)
  val_5 = Shape <start: int = 1, end: int = 2> (x0)
  val_6 = Mul (val_4, val_5)
  val_7 = Sub (val_6, val_1)
  val_8 = Div (val_4, val_2)
  val_0 = Concat <axis: int = 0> (val_7, val_8, val_3)
}
"#);
}

#[test]
fn neighbouring_sizes_are_read_at_once() {
    assert_snapshot!(emitted(&[(F, &["s0", "4", "s1", "3"])], |cx, _| vec![cx.sizes(&[e("4"), e("s1"), e("s0"), e("4")])]), @r#"
main_graph (float[s0,4,s1,3] x0) => (int64[4] val_0)
<
  int64[1] val_1 = {4}
>
{
  val_2 = Shape <start: int = 2, end: int = 3> (x0)
  val_3 = Shape <start: int = 0, end: int = 1> (x0)
  val_0 = Concat <axis: int = 0> (val_1, val_2, val_3, val_1)
}
"#);
}

#[test]
fn operators_compute_in_types_they_take() {
    assert_snapshot!(emitted(&[(DType::I8, &["1", "3", "4", "4"])], |cx, x| {
        vec![cx.relu(x[0]), cx.softmax(x[0], attrs::Softmax::default())]
    }), @r#"
main_graph (int8[1,3,4,4] x0) => (int8[1,3,4,4] val_0, int8[1,3,4,4] val_1)
{
  val_0 = Relu (x0)
  val_2 = Cast <to: int = 1> (x0)
  val_3 = Softmax (val_2)
  val_1 = Cast <to: int = 3> (val_3)
}
"#);
}

/// Beside an input that is of one type for all.
#[test]
fn reductions_compute_in_types_they_take() {
    assert_snapshot!(emitted(&[(DType::I8, &["s0", "2"])], |cx, x| {
        vec![cx.reduce(Reduction::Sum, x[0], &[0], false)]
    }), @r#"
main_graph (int8[s0,2] x0) => (int8[2] val_0)
<
  int64[1] val_1 = {0}
>
{
  val_2 = Cast <to: int = 6> (x0)
  val_3 = ReduceSum <keepdims: int = 0> (val_2, val_1)
  val_0 = Cast <to: int = 3> (val_3)
}
"#);
}

#[test]
fn nothing_to_do_emits_nothing() {
    let text = emitted(&[(F, &["s0", "3"])], |cx, x| {
        let same = cx.reshape(
            cx.transpose(cx.expand(cx.cast(x[0], F), &[e("s0"), e("3")]), &[0, 1]),
            &[e("s0"), e("3")],
        );
        let same = cx.slice(cx.mul(cx.add(same, 0), 1), 0, &e("0"), &e("s0 + 1"), 1);
        vec![cx.identity(same)]
    });
    assert_snapshot!(text, @r#"
main_graph (float[s0,3] x0) => (float[s0,3] val_0)
{
  val_0 = Identity (x0)
}
"#);
}

#[test]
fn bodies_see_the_values_around_them() {
    assert_snapshot!(emitted(&[(F, &["s0", "3"]), (F, &["3"])], |cx, x| {
        let row = Type::tensor(F, [e("3")]);
        let body = cx.region(&[row.clone(), row], |inputs| {
            let sum = cx.add(inputs[0], cx.mul(inputs[1], x[1]));
            vec![sum, sum]
        });
        let init = cx.full(&[e("3")], 0, F);
        cx.scan_op(2, &[init, x[0]], body, 1, Default::default()).to_vec()
    }), @r#"
main_graph (float[s0,3] x0, float[3] x1) => (float[3] val_0, float[s0,3] val_1)
<
  float val_2 = {0.0},
  int64[1] val_3 = {3}
>
{
  val_9 = Expand (val_2, val_3)
  val_0, val_1 = Scan <body: graph = body (float[3] val_4, float[3] val_5) => (float[3] val_7, float[3] val_8)
  {
    val_6 = Mul (val_5, x1)
    val_7 = Add (val_4, val_6)
    val_8 = Identity (val_7)
  }, num_scan_inputs: int = 1> (val_9, x0)
}
"#);
}

#[test]
fn faults_name_what_cannot_be_done() {
    let found = faults(|cx| {
        let x = input(cx, &["2", "3"]);
        cx.dim(x, 2);
        cx.size(&e("s9"));
        cx.add(x, cx.full(&[e("5")], 1, F));
        cx.close_region(&[]);
    });
    assert_snapshot!(found, @r#"
value 0: float[2,3] has no dimension 2
the size s9 cannot be computed from the inputs
Add: sizes 3 and 5 do not broadcast
no region is open that could be closed
"#);
}

/// Each is reported by inference, and what follows still has a type.
#[test]
fn sizes_that_cannot_be() {
    let found = faults(|cx| {
        let of = |sizes: &[&str]| input(cx, sizes);
        let (x, image, three) = (of(&["2", "4"]), of(&["1", "3", "4", "4"]), of(&["3"]));
        cx.matmul(x, three);
        cx.concat(&[x, of(&["2", "3"])], 0);
        cx.conv(image, of(&["8", "2", "3", "3"]), None, Default::default());
        cx.max_pool(image, &[5, 5], Default::default());
        cx.reshape(x, &[e("3"), e("3")]);
        cx.take(x, 1, &e("9"));
        cx.split(x, 1, &[e("3"), e("3")]);
        cx.top_k(x, cx.ints(&[5]), Default::default());
        let indices = cx.full(&[e("3"), e("1")], 0, DType::I64);
        cx.gather_elements(x, indices, attrs::GatherElements { axis: 1 });
        let y = of(&["1", "4", "2"]);
        let y = cx.instance_normalization(y, three, three, Default::default());
        assert_eq!(cx.shape(y)[..], [e("1"), e("4"), e("2")]);
    });
    assert_snapshot!(found, @"
MatMul: sizes 4 and 3 must be equal
Concat: sizes 4 and 3 must be equal
Conv: sizes 3 and 2 must be equal
MaxPool: a window of 5 is larger than the padded size of 4
8 elements cannot be reshaped to 9
index 9 is out of bounds for a size of 4
Split: sizes 6 and 4 must be equal
TopK: size 5 exceeds 4
GatherElements: size 3 exceeds 2
InstanceNormalization: sizes 4 and 3 must be equal
");
}

#[test]
fn a_size_that_is_always_1_broadcasts() {
    let mut constraints = Constraints::new();
    constraints.constrain(&e("s6"), Range { min: Some(2), max: None });
    let mut model = Model::new(26);
    let cx = Builder::new(&mut model, InsertPoint::End(Model::MAIN), constraints);
    let (one, none) = ([e("(Min(1, s6 - 1)//2) + 1")], [e("Min(1, s6 - 1)//2")]);
    assert_eq!(cx.broadcast_shapes(&one, &none), none);
    assert_eq!(cx.broadcast_shapes(&none, &one), none);
}

#[test]
fn the_verifier_refuses() {
    let mut model = Model::new(20);
    let (x, late) = (model.add_input(Model::MAIN, Some(Type::tensor(F, []))), model.add_region());
    let inner = model.add_input(late, Some(Type::tensor(F, [])));
    let at = InsertPoint::End(Model::MAIN);
    for (op, inputs) in [
        ("Swish", vec![Some(x)]),
        ("Add", vec![Some(x)]),
        ("Relu", vec![Some(inner)]),
        ("BitwiseNot", vec![Some(x)]),
        ("NoSuchOperator", vec![Some(x)]),
    ] {
        model.add_node(at, op, &inputs, Default::default(), 1);
    }
    assert_snapshot!(errors(&model), @r#"
Swish: opset 20 has no operator Swish
Add: Add needs input 1
Relu: uses an unnamed value before it is defined
BitwiseNot: BitwiseNot of opset 18 does not take float32 as X
NoSuchOperator: opset 20 has no operator NoSuchOperator
"#);
}

/// The diagnostics of a call on `x: float[2,3]` and `u`, a tensor of unknown rank.
#[test]
fn wrong_axes_are_diagnostics() {
    type Call = fn(&Builder, Value, Value);
    macro_rules! calls {
        (|$cx:ident, $x:ident, $u:ident| $($call:expr => $error:expr;)*) => {
            [$((
                (|$cx: &Builder, $x: Value, $u: Value| { _ = ($x, $u, $call) }) as Call,
                $error.to_string(),
            )),*]
        };
    }
    const END: usize = usize::MAX;
    fn n(i: i64) -> Expr {
        Expr::int(i)
    }
    let no = |axis: usize| format!("`x`: float[2,3] has no dimension {axis}");
    let twice = "dimension 0 of `x`: float[2,3] is given twice";
    let unknown = "the rank of `u`: float[] is not known";
    let cases = calls![|cx, x, u|
        cx.split(x, 9, &[n(1), n(1)]) => no(9);
        cx.split(u, 0, &[n(1), n(1)]) => unknown;
        cx.split(x, 0, &[]) => "there is nothing to split into";
        cx.halves(x, 9) => no(9);
        cx.halves(u, 0) => unknown;
        cx.transpose(x, &[0, 0]) => twice;
        cx.transpose(x, &[2, 0]) => no(2);
        cx.transpose(x, &[]) => "[] does not permute the dimensions of `x`: float[2,3]";
        cx.transpose(x, &[0]) => "[0] does not permute the dimensions of `x`: float[2,3]";
        cx.transpose(x, &[0, 1, 2]) => no(2);
        cx.transpose(u, &[1, 0]) => unknown;
        cx.swap_axes(x, 0, 9) => no(9);
        cx.swap_axes(x, 9, 9) => no(9);
        cx.squeeze(x, &[7]) => no(7);
        cx.squeeze(x, &[0]) => "dimension 0 of `x`: float[2,3] is 2, and must be 1";
        cx.squeeze(u, &[0]) => unknown;
        cx.unsqueeze(x, &[3]) => no(3);
        cx.unsqueeze(x, &[0, 0]) => twice;
        cx.unsqueeze(u, &[0]) => unknown;
        cx.expand(x, &[n(2), n(7)]) => "sizes 3 and 7 do not broadcast";
        cx.expand(x, &[n(2), n(1)]) => "sizes 3 and 1 do not broadcast";
        cx.expand(x, &[n(3)]) => "`x`: float[2,3] has more than 1 dimensions";
        cx.slice(x, 0, &n(0), &n(1), 0) => "the step of a slice must be positive, but is 0";
        cx.slice(x, 0, &n(0), &n(1), i64::MIN)
            => "the step of a slice must be positive, but is -9223372036854775808";
        cx.slice(x, 9, &n(0), &n(1), 1) => no(9);
        cx.slice(x, END, &n(0), &n(1), 1) => no(END);
        cx.slice(u, 0, &n(0), &n(1), 1) => unknown;
        cx.take(x, 9, &n(0)) => no(9);
        cx.take(x, 0, &n(2)) => "index 2 is out of bounds for a size of 2";
        cx.gather(x, cx.ints(&[0]), 9) => no(9);
        cx.gather(u, cx.ints(&[0]), END) => format!("`u`: float[] has no dimension {END}");
        cx.concat(&[x, x], 9) => no(9);
        cx.concat(&[x], 9) => no(9);
        cx.concat(&[], 0) => "there is nothing to concatenate";
        cx.reduce(Reduction::Sum, x, &[2], false) => no(2);
        cx.reduce(Reduction::Sum, x, &[0, 0], false) => twice;
        // Unknown sizes may be right.
        cx.gather(u, cx.ints(&[0]), 5) => "";
        cx.concat(&[u, u], 5) => "";
        cx.reduce(Reduction::Sum, u, &[5], false) => "";
        cx.swap_axes(x, 1, 1) => "";
        cx.expand(x, &[e("s0"), n(2), n(3)]) => "";
    ];
    for (i, (call, expected)) in cases.into_iter().enumerate() {
        let mut model = Model::new(26);
        let tensor = |shape| Some(Type::Tensor(TensorType { dtype: F, shape }));
        let x = model.add_input(Model::MAIN, tensor(Some(vec![n(2), n(3)])));
        let u = model.add_input(Model::MAIN, tensor(None));
        (model[x].name, model[u].name) = (Some("x".into()), Some("u".into()));
        let batch = model.add_input(Model::MAIN, tensor(Some(vec![e("s0")])));
        let found = model.build(InsertPoint::End(Model::MAIN), |cx| {
            cx.bind_dims(batch);
            call(cx, x, u);
        });
        let found = found.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(found, expected, "case {i}");
    }
}
