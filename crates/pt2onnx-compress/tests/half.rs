//! Graphs in float16: which nodes stay in float32. ONNX Runtime computes much of float16 in
//! float32, so that its numbers cannot show it.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests")]

use pt2onnx_compress::{Options, Precision, compress};
use pt2onnx_ir::{Model, verify};

fn half(options: Options, opset: u32, graph: &str) -> String {
    let text = format!("<ir_version: 10, opset_import: [\"\" : {opset}, \"local\" : 1]>\n{graph}");
    let mut model: Model = text.parse().unwrap_or_else(|e| panic!("{e}"));
    pt2onnx_opt::infer_types(&mut model);
    compress(&mut model, &Options { precision: Precision::Float16, ..options }).unwrap();
    model.assign_names();
    verify(&model).unwrap();
    let text = model.to_string();
    text.split_once(">\n").unwrap().1.to_owned()
}

fn halved(graph: &str) -> String {
    half(Options::default(), 21, graph)
}

#[test]
fn means_of_squares() {
    insta::assert_snapshot!(halved(
        "g (float[N,4] x) => (float[N,4] y) <float _e = {1e-6}, int64[1] _i = {-1}, float[4] w = {1, 2, 3, 4}> {
            s = Mul (x, x) m = ReduceMean (s, _i) a = Add (m, _e) r = Sqrt (a) d = Div (x, r) y = Mul (d, w) }"
    ), @"
g (float[N,4] x) => (float[N,4] y)
<
  float _e = {1e-6},
  int64[1] _i = {-1},
  float16[4] w = {1.0, 2.0, 3.0, 4.0}
>
{
  val_1 = Cast <to: int = 10> (x)
  s = Mul (x, x)
  m = ReduceMean (s, _i)
  a = Add (m, _e)
  r = Sqrt (a)
  val_2 = Cast <to: int = 10> (r)
  d = Div (val_1, val_2)
  val_0 = Mul (d, w)
  y = Cast <to: int = 1> (val_0)
}
");
    // A square that nothing sums is infinite in float16, too.
    insta::assert_snapshot!(halved(
        "g (float[N,4] x) => (float[N,4] y) <float _c = {0.5}> { s = Mul (x, x) t = Mul (s, x) y = Mul (t, _c) }"
    ), @"
g (float[N,4] x) => (float[N,4] y)
<
  float16 _c = {0.5}
>
{
  val_1 = Cast <to: int = 10> (x)
  s = Mul (val_1, val_1)
  t = Mul (s, val_1)
  val_0 = Mul (t, _c)
  y = Cast <to: int = 1> (val_0)
}
");
}

#[test]
fn positions() {
    insta::assert_snapshot!(halved(
        "g (float[N,2] x, bool[N] m) => (float[N,2] y, float[N] z) <int64 _a = {0}, float[3,1] _p = {0, 2048, 2049}, float[2] _t = {1, 0.5}> {
            f = Mul (_p, _t) c = Cos (f) i = ReduceMax (c) y = Mul (x, i)
            b = Cast <to: int = 1> (m) d = Cast <to: int = 11> (b) e = CumSum (d, _a) h = Cast <to: int = 1> (e) s = Sin (h) z = Neg (s) }"
    ), @"
g (float[N,2] x, bool[N] m) => (float[N,2] y, float[N] z)
<
  int64 _a = {0},
  float[3,1] _p = {0.0, 2048.0, 2049.0},
  float[2] _t = {1.0, 0.5}
>
{
  val_1 = Cast <to: int = 10> (x)
  f = Mul (_p, _t)
  c = Cos (f)
  i = ReduceMax (c)
  val_2 = Cast <to: int = 10> (i)
  val_0 = Mul (val_1, val_2)
  y = Cast <to: int = 1> (val_0)
  b = Cast <to: int = 10> (m)
  d = Cast <to: int = 11> (b)
  e = CumSum (d, _a)
  h = Cast <to: int = 1> (e)
  s = Sin (h)
  z = Neg (s)
}
");
}

/// Positions that are scaled by an input.
#[test]
fn positions_that_move() {
    insta::assert_snapshot!(halved(
        "g (float[N,2] x) => (float[N,2] y) <float[2] _p = {5, 2049}> { a = Mul (_p, x) b = Cos (a) c = Tanh (b) y = Neg (c) }"
    ), @"
g (float[N,2] x) => (float[N,2] y)
<
  float[2] _p = {5.0, 2049.0}
>
{
  a = Mul (_p, x)
  b = Cos (a)
  val_1 = Cast <to: int = 10> (b)
  c = Tanh (val_1)
  val_0 = Neg (c)
  y = Cast <to: int = 1> (val_0)
}
");
}

/// Small numbers: each element of a quotient or a scale counts, of a bias none.
#[test]
fn small_constants() {
    insta::assert_snapshot!(halved(
        "g (float[1,2] x, int8[1,2] q) => (float[1,2] y, float[1,2] z) <
            float[2,2] w = {1, 2, 3, 4}, float[2] b = {1e-9, 0}, float[2] _d = {1, 1e-8}, float[2] _s = {1, 2e-8}, float[2] _e = {1e-12, 0}> {
            a = Gemm (x, w, b) c = Div (a, _d) y = Add (c, _e) z = DequantizeLinear (q, _s) }"
    ), @"
g (float[1,2] x, int8[1,2] q) => (float[1,2] y, float[1,2] z)
<
  float[2] _d = {1.0, 1e-8},
  float[2] _s = {1.0, 2e-8},
  float[2] _e = {1e-12, 0.0},
  float16[2,2] w = {1.0, 2.0, 3.0, 4.0},
  float16[2] b = {0.0, 0.0}
>
{
  val_0 = Cast <to: int = 10> (x)
  a = Gemm (val_0, w, b)
  val_1 = Cast <to: int = 1> (a)
  c = Div (val_1, _d)
  y = Add (c, _e)
  z = DequantizeLinear (q, _s)
}
");
}

#[test]
fn masks_have_room() {
    insta::assert_snapshot!(halved(
        "g (float[1,2] x) => (float[1,2] y) <float[2] _m = {0, -3.4e38}> { y = Add (x, _m) }"
    ), @"
g (float[1,2] x) => (float[1,2] y)
<
  float16[2] _m = {0.0, -32752.0}
>
{
  val_1 = Cast <to: int = 10> (x)
  val_0 = Add (val_1, _m)
  y = Cast <to: int = 1> (val_0)
}
");
}

#[test]
fn unknown_types() {
    insta::assert_snapshot!(halved(
        "g (float[1,2] x, float[1,2] z, bool c) => (float[1,2] y, float[1,2] w) {
            u = local.F (x) v = Add (u, z) y = Neg (v)
            s = If (c) <then_branch = t () => (p) { p = local.F (x) }, else_branch = e () => (q) { q = Neg (x) }> w = Mul (s, z) }"
    ), @"
g (float[1,2] x, float[1,2] z, bool c) => (float[1,2] y, float[1,2] w)
{
  u = local.F (x)
  v = Add (u, z)
  val_1 = Cast <to: int = 10> (v)
  val_0 = Neg (val_1)
  y = Cast <to: int = 1> (val_0)
  s = If <then_branch: graph = t () => (p)
  {
    p = local.F (x)
  }, else_branch: graph = e () => (float[1,2] q)
  {
    q = Neg (x)
  }> (c)
  w = Mul (s, z)
}
");
}

/// A batch normalization of opset 7 that lists its statistics: nothing is known of what it gives.
#[test]
fn results_of_unknown_types() {
    let graph = "g (float[N,2] x) => (float[2,N] y) <float[2] w = {1, 2}> {
        n, a, b, c, d = BatchNormalization (x, w, w, w, w)
        y = Transpose (n)
    }";
    let half = half(Options::default(), 8, graph);
    assert!(!half.contains("Cast") && !half.contains("float16"), "{half}");
}

/// Inputs and constants, too.
#[test]
fn outputs_keep_their_names() {
    let graph = "g (float[2] x) => (float[2] y, float[2] x, float[2] c)
        <float[2] c = {1, 2}> { y = Relu (x) }";
    let interface = |half: String| half.lines().next().map(str::to_owned);
    let said = interface(halved(graph));
    assert_eq!(said.as_deref(), Some("g (float[2] x) => (float[2] y, float[2] x, float[2] c)"));
    let options = Options { cast_io: true, ..Options::default() };
    let said = interface(half(options, 21, graph));
    let wanted = "g (float16[2] x) => (float16[2] y, float16[2] x, float16[2] c)";
    assert_eq!(said.as_deref(), Some(wanted));
}

#[test]
fn operators_without_float16() {
    insta::assert_snapshot!(half(
        Options::default(), 26,
        "g (float[1,2] x) => (int32[1,2] y, float[1,2] z) { a = Neg (x) y = BitCast <to: int = 6> (a) z = MeanVarianceNormalization <axes: ints = [0]> (a) }"
    ), @"
g (float[1,2] x) => (int32[1,2] y, float[1,2] z)
{
  val_0 = Cast <to: int = 10> (x)
  a = Neg (val_0)
  val_1 = Cast <to: int = 1> (a)
  y = BitCast <to: int = 6> (val_1)
  z = MeanVarianceNormalization <axes: ints = [0]> (val_1)
}
");
}

/// Names of weights and operators that stay.
#[test]
fn quantised_numbers() {
    insta::assert_snapshot!(halved(
        "g (float[N,4] x) => (float[N,8] y, float[N,1] z) <float s = {0.5}, uint8 o = {3}, uint8[4,1] w = {1, 2, 3, 4}> {
            q = QuantizeLinear (x, s, o) d = DequantizeLinear (q, s, o) c = Concat <axis: int = 1> (d, d) r = QuantizeLinear (c, s, o)
            y = DequantizeLinear (r, s, o) v = DequantizeLinear (w, s, o) z = MatMul (x, v) }"
    ), @"
g (float[N,4] x) => (float[N,8] y, float[N,1] z)
<
  float s_float32 = {0.5},
  uint8 o = {3},
  uint8[4,1] w = {1, 2, 3, 4},
  float16 s = {0.5}
>
{
  val_1 = Cast <to: int = 10> (x)
  q = QuantizeLinear (x, s_float32, o)
  d = DequantizeLinear (q, s_float32, o)
  c = Concat <axis: int = 1> (d, d)
  r = QuantizeLinear (c, s_float32, o)
  y = DequantizeLinear (r, s_float32, o)
  v = DequantizeLinear (w, s, o)
  val_0 = MatMul (val_1, v)
  z = Cast <to: int = 1> (val_0)
}
");
}

#[test]
fn nodes_that_are_left_out_stay_in_float32() {
    let graph = "g (float[1,2] x) => (float[1,2] y) <float[2,2] v = {1, 2, 3, 4}, float[2,2] w = {1, 2, 3, 4}> {
        a = MatMul (x, v) b = MatMul (a, w) c = Relu (b) y = Neg (c) }";
    let out = |exclude: &[&str], include: &[&str]| {
        let text = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect();
        half(
            Options { exclude: text(exclude), include: text(include), ..Options::default() },
            21,
            graph,
        )
    };
    insta::assert_snapshot!(out(&["w", "Relu"], &[]), @"
g (float[1,2] x) => (float[1,2] y)
<
  float[2,2] w = {1.0, 2.0, 3.0, 4.0},
  float16[2,2] v = {1.0, 2.0, 3.0, 4.0}
>
{
  val_1 = Cast <to: int = 10> (x)
  a = MatMul (val_1, v)
  val_2 = Cast <to: int = 1> (a)
  b = MatMul (val_2, w)
  c = Relu (b)
  val_3 = Cast <to: int = 10> (c)
  val_0 = Neg (val_3)
  y = Cast <to: int = 1> (val_0)
}
");
    insta::assert_snapshot!(out(&[], &["w"]), @"
g (float[1,2] x) => (float[1,2] y)
<
  float16[2,2] v = {1.0, 2.0, 3.0, 4.0},
  float16[2,2] w = {1.0, 2.0, 3.0, 4.0}
>
{
  val_1 = Cast <to: int = 10> (x)
  a = MatMul (val_1, v)
  b = MatMul (a, w)
  c = Relu (b)
  val_0 = Neg (c)
  y = Cast <to: int = 1> (val_0)
}
");
    insta::assert_snapshot!(out(&[], &["MatMul"]), @"
g (float[1,2] x) => (float[1,2] y)
<
  float16[2,2] v = {1.0, 2.0, 3.0, 4.0},
  float16[2,2] w = {1.0, 2.0, 3.0, 4.0}
>
{
  val_0 = Cast <to: int = 10> (x)
  a = MatMul (val_0, v)
  b = MatMul (a, w)
  val_1 = Cast <to: int = 1> (b)
  c = Relu (val_1)
  y = Neg (c)
}
");
}

#[test]
fn loops_of_values_of_unknown_type_stay_as_they_are() {
    for graph in [
        // Inputs.
        "g (float[2] x, int64 n) => (float[2] y) <float[2] l> {
            a = local.Unknown (x)
            l = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
                d = Identity (c) t = Tanh (s)
            }> (n, \"\", a)
            y = Relu (l)
        }",
        // Results of the body.
        "g (float[2] x, int64 n) => (float[2] y) <float[2] l> {
            l = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, t) {
                d = Identity (c) t = local.Unknown (s)
            }> (n, \"\", x)
            y = Relu (l)
        }",
    ] {
        let text = halved(graph);
        assert!(text.contains("float[2] s) =>") && !text.contains("float16[2] s"), "{text}");
    }
}
