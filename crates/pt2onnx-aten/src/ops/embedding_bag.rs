//! Rows of a table, looked up and reduced bag by bag.

use crate::{AtenOp, Cx, LowerError, Lowered, cx::Outputs, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        with_padding_number
    ),
    aten!(
        "aten::_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        with_padding_number
    ),
    aten!(
        "aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
        |cx: &Cx, w: Value, i: Value, o: Value, mode: i64, scales: Option<Value>, last: bool| {
            embedding_bag(cx, w, i, o, mode, scales, last, None)
        }
    ),
    aten!(
        "aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
        embedding_bag
    ),
    aten!(
        "aten::embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
        embedding_renorm
    ),
];

#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn with_padding_number(
    cx: &Cx,
    weight: Value,
    indices: Value,
    offsets: Value,
    mode: i64,
    scales: Option<Value>,
    include_last_offset: bool,
    padding: i64,
) -> Lowered<Outputs> {
    let padding = (padding >= 0).then_some(padding);
    embedding_bag(cx, weight, indices, offsets, mode, scales, include_last_offset, padding)
}

/// Rows scattered to their bags: added up, or the largest kept. An index belongs to the last bag that starts at it or before.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn embedding_bag(
    cx: &Cx,
    weight: Value,
    indices: Value,
    offsets: Value,
    mode: i64,
    scales: Option<Value>,
    include_last_offset: bool,
    padding: Option<i64>,
) -> Lowered<Outputs> {
    if cx.rank(indices) != 1 {
        return Err(LowerError::unsupported("indices of bags that are no vector"));
    }
    let dtype = cx.dtype(weight);
    let (indices, mut starts) = (cx.cast(indices, DType::I64), cx.cast(offsets, DType::I64));
    let mut bags = cx.dim(offsets, 0);
    if include_last_offset {
        bags = bags - 1;
        starts = cx.slice(starts, 0, &Expr::int(0), &bags, 1);
    }
    let count = cx.dim(indices, 0);
    // How many bags start at each index or before it.
    let begun = cx.less_or_equal(starts, cx.unsqueeze(cx.iota(&count), &[1]));
    let bag = cx.sub(cx.reduce(Reduction::Sum, cx.cast(begun, DType::I64), &[1], true), 1);
    let padding = padding.map(|p| match (p, cx.dim(weight, 0).as_int()) {
        (p @ ..0, Some(rows)) => p + rows,
        (p, _) => p,
    });
    let is_padding = padding.map(|p| cx.unsqueeze(cx.equal(indices, p), &[1]));
    let mut rows = cx.gather(weight, indices, 0);
    if let Some(scales) = scales {
        rows = cx.mul(rows, cx.unsqueeze(scales, &[1]));
    }
    let width = cx.dim(weight, 1);
    // Halves are reduced in float32.
    let wide = match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    };
    let reduced = |values, start: f64, reduction| {
        let empty = cx.full(&[bags.clone(), cx.dim(values, 1)], start, wide);
        let values = cx.cast(values, wide);
        cx.scatter_nd(empty, bag, values, attrs::ScatterND { reduction })
    };
    let without_padding = |values, instead: f64| match is_padding {
        Some(is_padding) => cx.select(is_padding, instead, values),
        None => values,
    };
    // Rows that count, for each bag.
    let sizes = || {
        let ones = cx.full(&[count.clone(), Expr::int(1)], 1, dtype);
        reduced(without_padding(ones, 0.0), 0.0, "add")
    };
    let result = match mode {
        0 => reduced(without_padding(rows, 0.0), 0.0, "add"),
        1 => {
            let sums = reduced(without_padding(rows, 0.0), 0.0, "add");
            let sizes = sizes();
            cx.div(sums, cx.maximum(sizes, 1.0))
        }
        2 => {
            let largest =
                reduced(without_padding(rows, f64::NEG_INFINITY), f64::NEG_INFINITY, "max");
            cx.select(cx.greater(sizes(), 0.0), largest, 0.0)
        }
        other => {
            return Err(LowerError::unsupported(format!("there is no mode {other}")));
        }
    };
    cx.set_type(result, pt2onnx_ir::Type::tensor(wide, [bags, width]));
    Ok(cx.cast(result, dtype).into())
}

/// Rows that are looked up and longer than `max_norm` are shortened to it (ATen/native/Embedding.cpp).
fn embedding_renorm(cx: &Cx, x: Value, indices: Value, max_norm: f64, norm_type: f64) -> Lowered {
    let norm = if norm_type == 1.0 {
        cx.reduce(Reduction::L1, x, &[1], true)
    } else if norm_type == 2.0 {
        cx.reduce(Reduction::L2, x, &[1], true)
    } else if norm_type == f64::INFINITY {
        cx.reduce(Reduction::Max, cx.abs(x), &[1], true)
    } else {
        let sums = cx.reduce(Reduction::Sum, cx.pow(cx.abs(x), norm_type), &[1], true);
        cx.pow(sums, 1.0 / norm_type)
    };
    let factor = cx.div(max_norm, cx.add(norm, 1e-7));
    let shortened = cx.select(cx.greater(norm, max_norm), cx.mul(x, factor), x);
    let flat = cx.reshape(cx.cast(indices, DType::I64), &[cx.numel(indices), Expr::int(1)]);
    let rows = cx.gather(shortened, cx.squeeze(flat, &[1]), 0);
    Ok(cx.scatter_nd(x, flat, rows, attrs::ScatterND::default()))
}
