//! Reductions over consecutive segments, and tensors of one element read as numbers.

use crate::math::precision::widened;
use crate::math::reduce::{extremes_with_nan, highest, lowest, neighbours, reduce, running_sums};
use crate::{AtenOp, Cx, LowerError, Lowered, arguments, checks, op};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_local_scalar_dense, item),
    op!(aten::item, item),
    op!(aten::segment_reduce, segment_reduce),
];

/// The only element, as a 0-d tensor. The driver binds it to the program's symbol.
fn item(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.reshape(x, &[]))
}

arguments! {
    /// Arguments of `segment_reduce`.
    struct SegmentArgs {
        data: Value,
        reduce: String,
        lengths: Option<Value>,
        offsets: Option<Value>,
        axis: i64,
        initial: Option<Scalar>,
    }
}

/// Sums, means, products or extremes over consecutive segments of `axis`. The segments have the
/// given lengths, or lie between the given offsets. `ScatterElements` reduces each element into the
/// result of its segment.
fn segment_reduce(cx: &Cx, args: SegmentArgs) -> Lowered {
    let SegmentArgs { data, reduce: how, lengths, offsets, axis, initial, .. } = args;
    let axis = cx.axis(data, axis)?;
    let rank = cx.rank(data);
    // Narrow floats are summed up in float32.
    let narrow = cx.dtype(data);
    let dtype = widened(narrow);
    let data = cx.cast(data, dtype);
    let (lengths, ends) = match (lengths, offsets) {
        (Some(lengths), _) => {
            let lengths = cx.cast(lengths, DType::I64);
            (lengths, running_sums(cx, lengths, axis))
        }
        (None, Some(offsets)) => {
            let offsets = cx.cast(offsets, DType::I64);
            let [from, to] = neighbours(cx, offsets, axis, 1);
            (cx.sub(to, from), to)
        }
        _ => return Err(LowerError::unsupported("segment_reduce needs `lengths` or `offsets`")),
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
            return Err(LowerError::unsupported(format!(
                "reducing segments by `{how}` is not supported"
            )));
        }
    };
    // One more segment collects the elements after the last one.
    let segments = cx.dim(ends, axis as i64);
    let mut all = cx.shape(data);
    all[axis] = &segments + 1;
    let start = cx.full(&all, initial.unwrap_or(identity), dtype);
    let lead: Vec<usize> = (axis + 1..rank).collect();
    let indices = cx.expand(cx.unsqueeze(segment, &lead), &cx.shape(data));
    let scatter = |start, data, reduction| {
        let options = attrs::ScatterElements { axis: axis as i64, reduction };
        cx.scatter_elements(start, indices, data, options)
    };
    let found = match reduction {
        "max" | "min" if cx.propagates_nan(data) => {
            let write = |how| move |start, data| scatter(start, data, how);
            extremes_with_nan(cx, [start, data], write(reduction), write("max"))
        }
        _ => scatter(start, data, reduction),
    };
    let found = cx.slice(found, axis, &Expr::int(0), &segments, 1);
    let lengths = cx.unsqueeze(lengths, &lead);
    if how != "mean" {
        return Ok(cx.cast(found, narrow));
    }
    let mean = cx.div(found, cx.cast(lengths, dtype));
    // An empty segment is its initial value.
    let mean = initial.map_or(mean, |i| cx.select(cx.equal(lengths, 0), i, mean));
    Ok(cx.cast(mean, narrow))
}

checks! {
    // Means of segments by lengths.
    "aten.segment_reduce(x: f32[s0], 'mean', lengths = n: i64[2]) -> f32[2]" => r#"
    val_0 = CumSum (n, 0)
    val_1 = Shape <start: int = 0, end: int = 1> (x)
    val_2 = Reshape (val_1, [])
    val_3 = Range (0, val_2, 1)
    val_4 = Unsqueeze (val_0, [0])
    val_5 = Unsqueeze (val_3, [1])
    val_6 = LessOrEqual (val_4, val_5)
    val_7 = Cast <to: int = 7> (val_6)
    val_8 = ReduceSum <keepdims: int = 0> (val_7, [1])
    val_9 = Expand (0.0, [3])
    val_10 = ScatterElements <reduction: string = "add"> (val_9, val_8, x)
    val_11 = Slice (val_10, [0], [2], [0])
    val_12 = Cast <to: int = 1> (n)
    segment_reduce = Div (val_11, val_12)
    "#;
}
