//! Recursive filters: each result depends on the results before it.

use crate::{AtenOp, Cx, Lowered, checks, op};
use pt2onnx_ir::{Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[op!(
    "torchaudio::_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor padded_output_waveform) -> Tensor",
    lfilter_core_loop
)];

/// `y[t] = x[t] - sum(a[i] * y[t - n + 1 + i], i = 0 .. n - 1)` by a `Scan` over the samples of
/// `x`, `(batch, channels, samples)`. Its state is the last `n - 1` results. `a` is `(channels,
/// n)`. `y` has the `n - 1` results before the first sample, and what is in the places of the new
/// ones counts in their sums.
fn lfilter_core_loop(cx: &Cx, x: Value, a: Value, y: Value) -> Lowered {
    let (zero, one) = (Expr::int(0), Expr::int(1));
    let dtype = cx.dtype(x);
    let order = &cx.dim(a, 1) - &one;
    let own = cx.slice(a, 1, &order, &cx.dim(a, 1), 1);
    let places = cx.slice(y, 2, &order, &cx.dim(y, 2), 1);
    let x = cx.sub(x, cx.mul(places, own));
    if order.as_int() == Some(0) {
        return Ok(x);
    }
    let a = cx.slice(a, 1, &zero, &order, 1);
    let start = cx.slice(y, 2, &zero, &order, 1);
    let shape = cx.shape(x);
    let state = Type::tensor(dtype, cx.shape(start));
    let body = cx.region(&[state, Type::tensor(dtype, &shape[..2])], |values| {
        let (before, sample) = (values[0], values[1]);
        let sum = cx.reduce(Reduction::Sum, cx.mul(before, a), &[2], false);
        let new = cx.sub(sample, sum);
        let kept = cx.slice(before, 2, &one, &order, 1);
        vec![cx.concat(&[kept, cx.unsqueeze(new, &[2])], 2), new]
    });
    let axes = || Some(vec![2]);
    let options =
        attrs::Scan { scan_input_axes: axes(), scan_output_axes: axes(), ..Default::default() };
    let found = cx.scan_op(2, &[start, x], body, 1, options);
    cx.set_type(found[1], Type::tensor(dtype, shape));
    Ok(cx.concat(&[start, found[1]], 2))
}

checks! {
    // A scan over samples.
    "torchaudio._lfilter_core_loop(x: f32[2, 1, s0], a: f32[1, 3], y: f32[2, 1, s0 + 2]) -> f32[2, 1, s0 + 2]" => "
    val_0 = Slice (a, [2], [3], [1])
    val_1 = Shape <start: int = 2, end: int = 3> (y)
    val_2 = Slice (y, [2], val_1, [2])
    val_3 = Mul (val_2, val_0)
    val_4 = Sub (x, val_3)
    val_5 = Slice (a, [0], [2], [1])
    val_6 = Slice (y, [0], [2], [2])
    val_7, val_8 = Scan <body: graph = body (float[2,1,2] val_9, float[2,1] val_10) => (float[2,1,2] val_11, float[2,1] val_12)
    {
      val_13 = Mul (val_9, val_5)
      val_14 = ReduceSum <keepdims: int = 0> (val_13, [2])
      val_12 = Sub (val_10, val_14)
      val_15 = Slice (val_9, [1], [2], [2])
      val_16 = Unsqueeze (val_12, [2])
      val_11 = Concat <axis: int = 2> (val_15, val_16)
    }, num_scan_inputs: int = 1, scan_input_axes: ints = [2], scan_output_axes: ints = [2]> (val_6, val_4)
    _lfilter_core_loop = Concat <axis: int = 2> (val_6, val_8)
    ";
}
