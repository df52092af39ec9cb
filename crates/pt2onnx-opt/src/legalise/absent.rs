//! Operators that all opsets have and some runtimes lack, by others.

use super::{Emitted, attributes, input};
use pt2onnx_ir::{Builder, Node, Value, attrs};
use pt2onnx_tensor::DType;

type Emit = fn(&Builder, &Node) -> Emitted;

/// The nodes that take the place of an operator, in the canonical form.
pub(super) fn replacement(op: &str) -> Option<Emit> {
    match op {
        "Pad" => Some(cropped),
        "ReduceLogSumExp" => Some(log_sum_exp),
        _ => None,
    }
}

/// `Pad` with pads below 0: a slice, and a `Pad` with the others.
fn cropped(cx: &Builder, node: &Node) -> Emitted {
    let (x, pads) = (input(node, 0)?, input(node, 1)?);
    let pads = cx.model().const_ints(pads).ok_or("its pads are computed")?;
    let given = attrs::Pad::read(node)?;
    if given.mode != "constant" || node.input(3).is_some() || pads.iter().all(|&pad| pad >= 0) {
        return Err("it has another mode, or axes".into());
    }
    let (begins, ends) = pads.split_at(pads.len() / 2);
    let cut: Vec<usize> = (0..begins.len()).filter(|&i| begins[i] < 0 || ends[i] < 0).collect();
    let start = |&i: &usize| (-begins[i]).max(0);
    let end = |&i: &usize| if ends[i] < 0 { ends[i] } else { i64::MAX };
    let list = |of: &dyn Fn(&usize) -> i64| cx.ints(&cut.iter().map(of).collect::<Vec<_>>());
    let (starts, ends, axes) = (list(&start), list(&end), list(&|&i| i as i64));
    let inside =
        cx.emit1("Slice", &[Some(x), Some(starts), Some(ends), Some(axes)], attributes([]));
    let rest: Vec<i64> = pads.iter().map(|&pad| pad.max(0)).collect();
    if rest.iter().all(|&pad| pad == 0) {
        return Ok(vec![inside]);
    }
    let inputs = [Some(inside), Some(cx.ints(&rest)), node.input(2)];
    Ok(vec![cx.emit1("Pad", &inputs, node.attributes.clone())])
}

/// `ReduceLogSumExp`, shifted by the maximum, without which the sum overflows. Infinite maxima
/// shift by the largest number.
fn log_sum_exp(cx: &Builder, node: &Node) -> Emitted {
    let (x, kind) = (input(node, 0)?, cx.dtype(input(node, 0)?));
    let reduced = |op: &'static str, x: Value, keepdims: bool| {
        let keepdims = attributes([("keepdims", i64::from(keepdims).into())]);
        cx.emit1(op, &[Some(x), node.input(1)], keepdims)
    };
    let given = attrs::ReduceLogSumExp::read(node)?;
    if given.noop_with_empty_axes || !matches!(kind, DType::F32 | DType::F64) {
        return Err("it is of other elements than float32 and float64, or of no axes".into());
    }
    let largest = if kind == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
    let bounds = [-largest, largest].map(|bound| Some(cx.scalar(bound, kind)));
    let clipped =
        |most: Value| cx.emit1("Clip", &[Some(most), bounds[0], bounds[1]], attributes([]));
    let most = clipped(reduced("ReduceMax", x, true));
    let sum = reduced("ReduceSum", cx.exp(cx.sub(x, most)), given.keepdims);
    let most = if given.keepdims { most } else { clipped(reduced("ReduceMax", x, false)) };
    Ok(vec![cx.add(cx.log(sum), most)])
}
