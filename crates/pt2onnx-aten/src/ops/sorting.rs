//! Order along a dimension: sorting, the k-th, medians, quantiles, the most frequent.

use super::common_reduce::{
    Extreme, along, any_nan, arg_extreme, flat, gather_elements, reduce, sort, sorted_values, top_k,
};
use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
        |cx: &Cx, x: Value, dim: i64, descending: bool| -> Lowered {
            Ok(sort(cx, x, cx.axis(x, dim)?, descending)[1])
        }
    ),
    aten!(
        "aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
        |cx: &Cx, x: Value, _: bool, dim: i64, descending: bool| -> Lowered {
            Ok(sort(cx, x, cx.axis(x, dim)?, descending)[1])
        }
    ),
    aten!(
        "aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        |cx: &Cx, x: Value, k: Expr, dim: i64, keepdim: bool| -> Lowered<[Value; 2]> {
            let axis = cx.axis(x, dim)?;
            Ok(kth(cx, x, &k, axis, keepdim))
        }
    ),
    aten!("aten::median(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered {
        Ok(median(cx, flat(cx, x), 0, false)[0])
    }),
    aten!(
        "aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        |cx: &Cx, x: Value, dim: i64, keepdim: bool| -> Lowered<[Value; 2]> {
            Ok(median(cx, x, cx.axis(x, dim)?, keepdim))
        }
    ),
    aten!(
        "aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        mode
    ),
    aten!("aten::msort(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered {
        Ok(sort(cx, x, 0, false)[0])
    }),
    aten!("aten::nanmedian(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered {
        Ok(nanmedian(cx, flat(cx, x), 0, false)[0])
    }),
    aten!(
        "aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        |cx: &Cx, x: Value, dim: i64, keepdim: bool| -> Lowered<[Value; 2]> {
            Ok(nanmedian(cx, x, cx.axis(x, dim)?, keepdim))
        }
    ),
    aten!(
        "aten::nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
        |cx: &Cx, x: Value, q: Value, dim: Option<i64>, keepdim: bool, how: String| {
            quantile(cx, x, q, dim, keepdim, &how, true)
        }
    ),
    aten!(
        "aten::nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
        |cx: &Cx, x: Value, q: f64, dim: Option<i64>, keepdim: bool, how: String| {
            quantile(cx, x, cx.scalar(q, cx.dtype(x)), dim, keepdim, &how, true)
        }
    ),
    aten!(
        "aten::quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
        |cx: &Cx, x: Value, q: Value, dim: Option<i64>, keepdim: bool, how: String| {
            quantile(cx, x, q, dim, keepdim, &how, false)
        }
    ),
    aten!(
        "aten::quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
        |cx: &Cx, x: Value, q: f64, dim: Option<i64>, keepdim: bool, how: String| {
            quantile(cx, x, cx.scalar(q, cx.dtype(x)), dim, keepdim, &how, false)
        }
    ),
    aten!(
        "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
        |cx: &Cx, x: Value, dim: i64, descending: bool| -> Lowered<[Value; 2]> {
            Ok(sort(cx, x, cx.axis(x, dim)?, descending))
        }
    ),
    aten!(
        "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
        |cx: &Cx, x: Value, _: Option<bool>, dim: i64, descending: bool| -> Lowered<[Value; 2]> {
            Ok(sort(cx, x, cx.axis(x, dim)?, descending))
        }
    ),
    aten!(
        "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
        topk
    ),
];

/// `TopK`. A 0-d tensor is its own largest.
fn topk(cx: &Cx, x: Value, k: Expr, dim: i64, largest: bool, sorted: bool) -> Lowered<[Value; 2]> {
    let axis = cx.axis(x, dim)?;
    Ok(match cx.rank(x) {
        0 => [x, cx.scalar(0, DType::I64)],
        _ => top_k(cx, x, &k, axis, largest, sorted),
    })
}

/// Without dimension `axis`, of which one element is left.
fn drop_axis(cx: &Cx, x: Value, axis: usize, keepdim: bool) -> Value {
    if keepdim { x } else { cx.squeeze(x, &[axis]) }
}

/// The `k`-th smallest, counted from 1: the last of the `k` smallest.
fn kth(cx: &Cx, x: Value, k: &Expr, axis: usize, keepdim: bool) -> [Value; 2] {
    if cx.rank(x) == 0 {
        return [x, cx.scalar(0, DType::I64)];
    }
    let last = k - 1;
    top_k(cx, x, k, axis, false, true).map(|smallest| match keepdim {
        true => cx.slice(smallest, axis, &last, k, 1),
        false => cx.take(smallest, axis, &last),
    })
}

/// The lower one of the two in the middle; the first NaN where there is one.
fn median(cx: &Cx, x: Value, axis: usize, keepdim: bool) -> [Value; 2] {
    if cx.rank(x) == 0 {
        return [x, cx.scalar(0, DType::I64)];
    }
    let n = cx.dim(x, axis as i64);
    if n.as_int() == Some(0) {
        let nothing = cx.full(&[], f64::NAN, cx.dtype(x));
        return [nothing, cx.scalar(0, DType::I64)];
    }
    let k = (n + 1).floor_div(&Expr::int(2));
    let [value, index] = kth(cx, x, &k, axis, keepdim);
    if !cx.dtype(x).is_float() {
        return [value, index];
    }
    let nan = any_nan(cx, x, &[axis], keepdim);
    let first = arg_extreme(cx, Extreme::Max, cx.cast(cx.is_nan(x), DType::U8), axis, keepdim);
    [cx.select(nan, f64::NAN, value), cx.select(nan, first, index)]
}

/// The median of all that is no NaN: in ascending order NaN come last, so that it stands at half of the others' number.
fn nanmedian(cx: &Cx, x: Value, axis: usize, keepdim: bool) -> [Value; 2] {
    if !cx.dtype(x).is_float() || cx.rank(x) == 0 || cx.dim(x, axis as i64).as_int() == Some(0) {
        return median(cx, x, axis, keepdim);
    }
    let known = cx.cast(cx.not(cx.is_nan(x)), DType::I64);
    let known = reduce(cx, Reduction::Sum, known, &[axis], true);
    let rank = cx.div(cx.maximum(cx.sub(known, 1), 0), 2);
    sort(cx, x, axis, false)
        .map(|sorted| drop_axis(cx, gather_elements(cx, sorted, rank, axis), axis, keepdim))
}

/// The smallest of the most frequent elements, and where it stands last.
fn mode(cx: &Cx, x: Value, dim: i64, keepdim: bool) -> Lowered<[Value; 2]> {
    let axis = cx.axis(x, dim)?;
    let rank = cx.rank(x);
    if rank == 0 {
        return Ok([x, cx.scalar(0, DType::I64)]);
    }
    let sorted = sorted_values(cx, x, axis);
    // How many are equal: each with each, the others in a dimension behind `axis`.
    let equal = cx.equal(cx.unsqueeze(sorted, &[axis + 1]), cx.unsqueeze(sorted, &[axis]));
    let counts = reduce(cx, Reduction::Sum, cx.cast(equal, DType::I32), &[axis + 1], false);
    let most = arg_extreme(cx, Extreme::Max, counts, axis, true);
    let value = gather_elements(cx, sorted, most, axis);
    let here = along(cx, cx.cast(cx.iota(&cx.dim(x, axis as i64)), DType::I64), rank, axis);
    let places = cx.select(cx.equal(x, value), here, 0);
    let index = reduce(cx, Reduction::Max, places, &[axis], keepdim);
    Ok([drop_axis(cx, value, axis, keepdim), index])
}

/// Between the two neighbours of `q * (n - 1)` in sorted order; `n` counts all, or what is no NaN.
fn quantile(
    cx: &Cx,
    x: Value,
    q: Value,
    dim: Option<i64>,
    keepdim: bool,
    how: &str,
    ignore_nan: bool,
) -> Lowered {
    let dtype = cx.dtype(x);
    let rank = cx.rank(x);
    let (x, axis) = match dim {
        Some(dim) if rank > 0 => (x, cx.axis(x, dim)?),
        _ => (flat(cx, x), 0),
    };
    let last = cx.rank(x) - 1;
    let axis_last: Vec<usize> = (0..=last).filter(|&a| a != axis).chain([axis]).collect();
    let x = cx.transpose(x, &axis_last);
    let sorted = sorted_values(cx, x, last);
    let spread = flat(cx, q);
    let (ranks, nothing) = if ignore_nan {
        let numbers = cx.cast(cx.not(cx.is_nan(x)), dtype);
        let known = reduce(cx, Reduction::Sum, numbers, &[last], true);
        let ranks = cx.mul(spread, cx.sub(known, 1.0));
        (cx.maximum(ranks, 0.0), cx.equal(known, 0.0))
    } else {
        let end = cx.cast(cx.size(&(cx.dim(x, -1) - 1)), dtype);
        (cx.mul(spread, end), any_nan(cx, x, &[last], true))
    };
    let at = |ranks: Value| match ignore_nan {
        true => gather_elements(cx, sorted, cx.cast(ranks, DType::I64), last),
        false => cx.gather(sorted, cx.cast(ranks, DType::I64), last),
    };
    let found = match how {
        "lower" => at(cx.floor(ranks)),
        "higher" => at(cx.ceil(ranks)),
        "nearest" => at(cx.round(ranks)),
        "linear" | "midpoint" => {
            let below = cx.floor(ranks);
            let (low, high) = (at(below), at(cx.ceil(ranks)));
            let weight = match how {
                "linear" => cx.sub(ranks, below),
                _ => cx.scalar(0.5, dtype),
            };
            cx.add(low, cx.mul(weight, cx.sub(high, low)))
        }
        _ => {
            return Err(LowerError::unsupported(format!("the interpolation `{how}` of quantiles")));
        }
    };
    let found = cx.select(nothing, f64::NAN, found);
    // The quantiles come first where there are several; then `x`'s dimensions without `axis`, or with 1 there.
    let several = usize::from(cx.rank(q) > 0);
    let found = match several {
        1 => cx.transpose(found, &[last].into_iter().chain(0..last).collect::<Vec<_>>()),
        _ => cx.squeeze(found, &[last]),
    };
    Ok(match (keepdim, dim) {
        (false, _) => found,
        (true, Some(_)) if rank > 0 => cx.unsqueeze(found, &[axis + several]),
        _ => cx.unsqueeze(found, &(several..rank + several).collect::<Vec<_>>()),
    })
}
