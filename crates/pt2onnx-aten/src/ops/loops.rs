//! `Loop` for lowerings: values carried from step to step.

use crate::Cx;
use pt2onnx_ir::{Reduction, Type, Value};
use pt2onnx_tensor::DType;

/// Steps `body` at most `trips` times (any number of times where that is `None`). `body` is given the number of the step and
/// the carried values, and gives whether to go on (`None`: yes) and the values to carry; their types stay what they are.
pub(super) fn repeat(
    cx: &Cx,
    trips: Option<Value>,
    carried: &[Value],
    body: impl FnOnce(Value, &[Value]) -> (Option<Value>, Vec<Value>),
) -> Vec<Value> {
    let mut types = vec![Type::tensor(DType::I64, []), Type::tensor(DType::Bool, [])];
    types.extend(carried.iter().filter_map(|&v| cx.type_of(v)));
    let region = cx.region(&types, |inputs| {
        let (go_on, next) = body(inputs[0], &inputs[2..]);
        // The condition must not be an input of the body as it is.
        let go_on = go_on.unwrap_or_else(|| cx.identity(inputs[1]));
        std::iter::once(go_on).chain(next).collect()
    });
    let start = cx.scalar(true, DType::Bool);
    let results = cx.loop_op(carried.len(), trips, start, carried, region);
    for (&result, &value) in results.iter().zip(carried) {
        if let Some(ty) = cx.type_of(value) {
            cx.set_type(result, ty);
        }
    }
    results.into_iter().collect()
}

/// Whether any element of a bool tensor is true, also of an empty one.
pub(super) fn any(cx: &Cx, x: Value) -> Value {
    let count = cx.reduce(Reduction::Sum, cx.cast(x, DType::I64), &[], false);
    cx.greater(count, 0)
}
