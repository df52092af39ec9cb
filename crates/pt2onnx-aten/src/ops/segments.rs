//! Reductions over consecutive segments, and what a program reads out of tensors as numbers.

use super::common_reduce::{highest, lowest, reduce};
use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
    aten!("aten::_local_scalar_dense(Tensor self) -> Scalar", item),
    aten!("aten::item(Tensor self) -> Scalar", item),
    aten!(
        "aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
        segment_reduce
    ),
];

/// The only element, 0-d: the driver binds it to the program's symbol.
fn item(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.reshape(x, &[]))
}

/// Each element is added (multiplied, compared) to its segment's by `ScatterElements`.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn segment_reduce(
    cx: &Cx,
    data: Value,
    how: String,
    lengths: Option<Value>,
    _indices: Option<Value>,
    offsets: Option<Value>,
    axis: i64,
    _unsafe: bool,
    initial: Option<Scalar>,
) -> Lowered {
    let axis = cx.axis(data, axis)?;
    let rank = cx.rank(data);
    // Narrow floats are summed up in float32.
    let narrow = cx.dtype(data);
    let data = match narrow {
        DType::F16 | DType::BF16 => cx.cast(data, DType::F32),
        _ => data,
    };
    let dtype = cx.dtype(data);
    let (lengths, ends) = match (lengths, offsets) {
        (Some(lengths), _) => {
            let lengths = cx.cast(lengths, DType::I64);
            let ends = cx.cum_sum(lengths, cx.scalar(axis as i64, DType::I64), Default::default());
            (lengths, ends)
        }
        (None, Some(offsets)) => {
            let offsets = cx.cast(offsets, DType::I64);
            let [from, to] = super::common_reduce::neighbours(cx, offsets, axis, 1);
            (cx.sub(to, from), to)
        }
        _ => {
            return Err(LowerError::unsupported("segments without lengths or offsets"));
        }
    };
    // The segment of an element: how many segments end before it.
    let n = cx.dim(data, axis as i64);
    let place = cx.cast(cx.iota(&n), DType::I64);
    let over = cx.less_or_equal(cx.unsqueeze(ends, &[axis]), cx.unsqueeze(place, &[1]));
    let segment = reduce(cx, Reduction::Sum, cx.cast(over, DType::I64), &[axis + 1], false);
    let (reduction, identity) = match how.as_str() {
        "sum" | "mean" => ("add", Scalar::Int(0)),
        "prod" => ("mul", Scalar::Int(1)),
        "max" => ("max", lowest(dtype)),
        "min" => ("min", highest(dtype)),
        _ => {
            return Err(LowerError::unsupported(format!("segments reduced by `{how}`")));
        }
    };
    // One segment more takes what lies behind the last one.
    let shape = cx.out_shape()?;
    let mut all = shape.clone();
    all[axis] = &all[axis] + 1;
    let start = cx.full(&all, initial.unwrap_or(identity), dtype);
    let lead: Vec<usize> = (axis + 1..rank).collect();
    let indices = cx.expand(cx.unsqueeze(segment, &lead), &cx.shape(data));
    let options = attrs::ScatterElements { axis: axis as i64, reduction };
    let found = cx.scatter_elements(start, indices, data, options);
    let found = cx.slice(found, axis, &Expr::int(0), &shape[axis], 1);
    let lengths = cx.unsqueeze(lengths, &lead);
    let found = match (how.as_str(), initial) {
        ("mean", initial) => {
            let mean = cx.div(found, cx.cast(lengths, dtype));
            // An empty segment is its initial value.
            initial.map_or(mean, |i| cx.select(cx.equal(lengths, 0), i, mean))
        }
        _ => found,
    };
    Ok(cx.cast(found, narrow))
}
