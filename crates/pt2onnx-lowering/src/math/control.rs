//! `Loop` and `Scan` for lowerings, with values that are carried from step to step.

use crate::Cx;
use crate::math::reduce::may_be_empty_along;
use crate::math::shape::pad_to;
use pt2onnx_ir::{Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

/// Runs `body` at most `trips` times, or without a limit if that is `None`, by `Loop`. The body
/// gets the number of the step and the carried values; it returns whether to go on (`None`: yes)
/// and the new carried values, whose types must not change.
pub fn repeat(
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
pub fn any(cx: &Cx, x: Value) -> Value {
    let count = cx.reduce(Reduction::Sum, cx.cast(x, DType::I64), &[], false);
    cx.greater(count, 0)
}

/// Runs `step` on the state and each slice of `inputs` along `axis`, by `Scan`, and returns the
/// states after each step, stacked along `axis`. The state begins as `initial` and has the shape of
/// the first input's slices. Inputs with fewer dimensions must be vectors; their slices are
/// numbers.
pub fn scan(
    cx: &Cx,
    axis: usize,
    inputs: &[Value],
    initial: &[Scalar],
    step: impl FnOnce(&[Value], &[Value]) -> Vec<Value>,
) -> Vec<Value> {
    let wanted = cx.shape(inputs[0]);
    let rank = wanted.len();
    if wanted[axis].as_int() == Some(0) {
        let vector = |v: Value| cx.rank(v) < rank;
        let empty = |&v: &Value| if vector(v) { cx.full(&wanted, 0, cx.dtype(v)) } else { v };
        return inputs.iter().map(empty).collect();
    }
    let others: Vec<usize> = (0..rank).filter(|&a| a != axis).collect();
    if axis != 0 && may_be_empty_along(cx, inputs[0], &others) {
        // ONNX Runtime ends if slices are empty, unless they are along the first dimension.
        let first: Vec<usize> = std::iter::once(axis).chain(others).collect();
        let moved: Vec<Value> = inputs
            .iter()
            .map(|&v| if cx.rank(v) < rank { v } else { cx.transpose(v, &first) })
            .collect();
        let mut back: Vec<usize> = (1..=axis).collect();
        back.push(0);
        back.extend(axis + 1..rank);
        let found = scan(cx, 0, &moved, initial, step);
        return found.into_iter().map(|v| cx.transpose(v, &back)).collect();
    }
    scan_slices(cx, axis, inputs, initial, step)
}

/// [`scan`] where slices are not empty.
fn scan_slices(
    cx: &Cx,
    axis: usize,
    inputs: &[Value],
    initial: &[Scalar],
    step: impl FnOnce(&[Value], &[Value]) -> Vec<Value>,
) -> Vec<Value> {
    let wanted = cx.shape(inputs[0]);
    let rank = wanted.len();
    // ONNX Runtime refuses sequences of length 0: what may be one gets an element more.
    let may_be_empty = may_be_empty_along(cx, inputs[0], &[axis]);
    let longer = |v: &Value| {
        if may_be_empty {
            pad_to(cx, *v, if cx.rank(*v) < rank { 0 } else { axis }, &(&wanted[axis] + 1))
        } else {
            *v
        }
    };
    let inputs: Vec<Value> = inputs.iter().map(longer).collect();
    let dims = cx.shape(inputs[0]);
    let slice: Vec<Expr> =
        dims.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, d)| d.clone()).collect();
    let state = |v: &Value| Type::tensor(cx.dtype(*v), slice.clone());
    let (mut given, mut types): (Vec<Value>, Vec<Type>) = inputs
        .iter()
        .zip(initial)
        .map(|(v, s)| (cx.full(&slice, *s, cx.dtype(*v)), state(v)))
        .unzip();
    let n = given.len();
    let mut axes = Vec::with_capacity(n);
    for v in &inputs {
        let vector = cx.rank(*v) < dims.len();
        given.push(*v);
        types.push(if vector { Type::tensor(cx.dtype(*v), []) } else { state(v) });
        axes.push(if vector { 0 } else { axis as i64 });
    }
    let body = cx.region(&types, |values| {
        let (states, slices) = values.split_at(n);
        let next = step(states, slices);
        // A region's outputs are distinct values.
        let copies: Vec<Value> = next.iter().map(|&v| cx.identity(v)).collect();
        next.into_iter().chain(copies).collect()
    });
    let options = attrs::Scan {
        scan_input_axes: Some(axes),
        scan_output_axes: Some(vec![axis as i64; n]),
        ..Default::default()
    };
    let found = cx.scan_op(2 * n, &given, body, n as i64, options);
    for (i, &value) in found.iter().enumerate() {
        let ty = match i.checked_sub(n) {
            Some(j) => Type::tensor(cx.dtype(inputs[j]), dims.clone()),
            None => types[i].clone(),
        };
        cx.set_type(value, ty);
    }
    let cropped = |v| cx.slice(v, axis, &Expr::int(0), &wanted[axis], 1);
    found.into_iter().skip(n).map(cropped).collect()
}

/// `step(.. step(step(initial, x[0]), x[1]) .., x[n - 1])`, by `Scan` over the first dimension.
/// `initial` is neutral.
pub fn fold(cx: &Cx, x: Value, initial: Scalar, step: impl FnOnce(Value, Value) -> Value) -> Value {
    let slice = cx.shape(x).split_first().map(|(_, rest)| rest.to_vec()).unwrap_or_default();
    let ty = Type::tensor(cx.dtype(x), slice.clone());
    let body = cx.region(&[ty.clone(), ty.clone()], |values| vec![step(values[0], values[1])]);
    let start = cx.full(&slice, initial, cx.dtype(x));
    let x = if may_be_empty_along(cx, x, &[0]) {
        cx.concat(&[cx.unsqueeze(start, &[0]), x], 0)
    } else {
        x
    };
    let found = cx.scan_op(1, &[start, x], body, 1, attrs::Scan::default());
    cx.set_type(found[0], ty);
    found[0]
}
