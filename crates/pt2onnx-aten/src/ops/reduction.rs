//! Reductions and running sums.

use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        argmax
    ),
    aten!(
        "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        cumsum,
        parts
    ),
    aten!(
        "aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
        diff,
        parts
    ),
    aten!(
        "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        |cx: &Cx, x: Value, dtype: Option<DType>| mean(cx, x, None, false, dtype),
        parts
    ),
    aten!(
        "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        mean,
        parts
    ),
    aten!(
        "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        |cx: &Cx, x: Value, dtype: Option<DType>| sum(cx, x, None, false, dtype),
        parts
    ),
    aten!(
        "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        sum,
        parts
    ),
];

/// `ReduceMean` in the recorded type.
fn mean(cx: &Cx, x: Value, dims: Option<Vec<i64>>, keepdim: bool, _: Option<DType>) -> Lowered {
    reduce(cx, "ReduceMean", x, dims, keepdim)
}

/// `ReduceSum` in the recorded type: integers and bools sum up as int64.
fn sum(cx: &Cx, x: Value, dims: Option<Vec<i64>>, keepdim: bool, _: Option<DType>) -> Lowered {
    reduce(cx, "ReduceSum", x, dims, keepdim)
}

fn reduce(cx: &Cx, op: &'static str, x: Value, dims: Option<Vec<i64>>, keepdim: bool) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    match cx.axes(x, dims.as_deref())?.as_slice() {
        [] => Ok(x),
        axes => Ok(cx.reduce(op, x, axes, keepdim)),
    }
}

/// `ArgMax`: the first of equals, along `dim` or over all elements.
fn argmax(cx: &Cx, x: Value, dim: Option<i64>, keepdim: bool) -> Lowered {
    let Some(dim) = dim else {
        let flat = cx.reshape(x, &[cx.numel(x)]);
        let found = cx.arg_max(
            flat,
            attrs::ArgMax {
                axis: 0,
                keepdims: false,
                ..Default::default()
            },
        );
        let ones = if keepdim {
            vec![Expr::int(1); cx.rank(x)]
        } else {
            vec![]
        };
        return Ok(cx.reshape(found, &ones));
    };
    let axis = cx.axis(x, dim)? as i64;
    if cx.rank(x) == 0 {
        return Ok(cx.scalar(0, DType::I64));
    }
    Ok(cx.arg_max(
        x,
        attrs::ArgMax {
            axis,
            keepdims: keepdim,
            ..Default::default()
        },
    ))
}

/// `CumSum` in the recorded type; a 0-d tensor is its own sum.
fn cumsum(cx: &Cx, x: Value, dim: i64, _: Option<DType>) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let axis = cx.axis(x, dim)?;
    match cx.rank(x) {
        0 => Ok(x),
        _ => Ok(cx.cum_sum(x, cx.scalar(axis as i64, DType::I64), Default::default())),
    }
}

/// Differences of neighbours along `dim`, `n` times over; of bools, whether they differ.
fn diff(
    cx: &Cx,
    x: Value,
    n: i64,
    dim: i64,
    prepend: Option<Value>,
    append: Option<Value>,
) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let parts: Vec<Value> = [prepend, Some(x), append].into_iter().flatten().collect();
    let mut result = cx.concat(&parts, axis);
    for _ in 0..n {
        let size = cx.dim(result, axis as i64);
        if size.as_int() == Some(0) {
            return Err(LowerError::unsupported("differences of an empty dimension"));
        }
        let later = cx.slice(result, axis, &Expr::int(1), &size, 1);
        let earlier = cx.slice(result, axis, &Expr::int(0), &(size - 1), 1);
        result = match cx.dtype(x) {
            DType::Bool => cx.xor(later, earlier),
            _ => cx.sub(later, earlier),
        };
    }
    Ok(result)
}
