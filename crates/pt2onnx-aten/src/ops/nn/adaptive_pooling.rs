//! Adaptive pooling: means and largest elements of windows that divide each dimension as evenly as
//! possible.

use crate::math::pool::{Windows, arg_of_window, largest, largest_of_windows, merge_last};
use crate::math::reduce::{Extreme, extreme};
use crate::math::shape::constant;
use crate::math::window::{adaptive, adaptive_length, batched, product_along};
use crate::meta::{self, sized};
use crate::{AtenOp, Cx, Lowered, checks, cx::Outputs, op};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_adaptive_avg_pool2d, adaptive_avg_pool),
    op!(aten::_adaptive_avg_pool3d, adaptive_avg_pool),
    op!(aten::adaptive_avg_pool1d, adaptive_avg_pool, meta = meta_adaptive),
    op!(aten::adaptive_avg_pool2d, adaptive_avg_pool, meta = meta_adaptive),
    op!(aten::adaptive_avg_pool3d, adaptive_avg_pool, meta = meta_adaptive),
    op!(aten::adaptive_max_pool1d, adaptive_max_pool),
    op!(aten::adaptive_max_pool2d, adaptive_max_pool),
    op!(aten::adaptive_max_pool3d, adaptive_max_pool),
];

/// The sizes of the windows of adaptive pooling, if along each dimension all windows have one size.
fn even_windows(cx: &Cx, x: Value, output_size: &[Expr]) -> Option<Vec<i64>> {
    let shape = cx.shape(x);
    let spatial = shape.get(shape.len().checked_sub(output_size.len())?..)?;
    let pairs = spatial.iter().zip(output_size);
    let even = pairs.map(|(from, to)| match (from.as_int(), to.as_int()?) {
        (Some(from), to @ 1..) if from > 0 && from % to == 0 => Some(from / to),
        _ => None,
    });
    even.collect()
}

/// The means of windows that divide each dimension as evenly as possible: one mean if the output
/// size is 1, an `AveragePool` if all windows have one size, else a product with the matrix of
/// [`window_means`] along each dimension.
fn adaptive_avg_pool(cx: &Cx, x: Value, output_size: Vec<Expr>) -> Lowered {
    let n = output_size.len();
    let rank = cx.rank(x);
    let first = rank.saturating_sub(n);
    if output_size.iter().all(|s| s.as_int() == Some(1)) {
        let axes: Vec<usize> = (first..rank).collect();
        return Ok(cx.reduce(Reduction::Mean, x, &axes, true));
    }
    if let Some(kernel) = even_windows(cx, x, &output_size) {
        if kernel.iter().all(|&k| k == 1) {
            return Ok(x);
        }
        let options = attrs::AveragePool { strides: Some(kernel.clone()), ..Default::default() };
        return Ok(batched(cx, x, n, |x| cx.average_pool(x, &kernel, options.clone())));
    }
    if cx.numel(x).as_int() == Some(0) {
        return Ok(cx.full(&cx.out_shape()?, 0, cx.dtype(x)));
    }
    // PyTorch adds up float16 and bfloat16 in float32.
    let wide = match cx.dtype(x) {
        DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let mut result = cx.cast(x, wide);
    for (i, to) in output_size.iter().enumerate() {
        let axis = first + i;
        let from = cx.dim(x, axis as i64);
        if from == *to {
            continue;
        }
        if cx.propagates_nan(x) {
            result = means_of_elements(cx, result, axis, &from, to);
            continue;
        }
        let means = cx.cast(window_means(cx, &from, to), wide);
        result = product_along(cx, result, axis, means);
    }
    Ok(cx.cast(result, cx.dtype(x)))
}

/// The means of the windows of adaptive pooling along `axis`, from the elements of each: in a
/// product with a matrix, NaN and infinities would spread to all windows.
fn means_of_elements(cx: &Cx, x: Value, axis: usize, from: &Expr, to: &Expr) -> Value {
    let (start, end) = adaptive(cx, from, to);
    let length = adaptive_length(from, to);
    let [start, end] = [start, end].map(|v| cx.unsqueeze(v, &[1]));
    let all = cx.add(start, cx.iota(&length));
    let elements = cx.gather(x, cx.minimum(all, cx.sub(end, 1)), axis);
    // A shorter window repeats its last element, which does not count.
    let behind = cx.rank(x) - 1 - axis;
    let spread: Vec<usize> = (2..2 + behind).collect();
    let inside = cx.unsqueeze(cx.less(all, end), &spread);
    let counted = cx.select(inside, elements, 0.0);
    let sums = cx.reduce(Reduction::Sum, counted, &[axis + 1], false);
    let sizes = cx.cast(cx.sub(end, start), cx.dtype(x));
    let sizes = match behind {
        0 => cx.squeeze(sizes, &[1]),
        _ => cx.unsqueeze(sizes, &(2..1 + behind).collect::<Vec<_>>()),
    };
    cx.div(sums, sizes)
}

/// A `(from, to)` matrix: column `j` holds `1 / n` for each of the `n` elements of window `j`, else
/// 0.
fn window_means(cx: &Cx, from: &Expr, to: &Expr) -> Value {
    if let (Some(from), Some(to)) = (from.as_int(), to.as_int()) {
        let mut matrix = vec![0f64; from.saturating_mul(to).max(0) as usize];
        for j in 0..to {
            let (start, end) = (j * from / to, ((j + 1) * from + to - 1) / to);
            for i in start..end {
                matrix[(i * to + j) as usize] = 1.0 / (end - start) as f64;
            }
        }
        return constant(cx, &[from, to], &matrix);
    }
    let (start, end) = adaptive(cx, from, to);
    let i = cx.unsqueeze(cx.iota(from), &[1]);
    let inside = cx.and(cx.greater_or_equal(i, start), cx.less(i, end));
    let share = |v| cx.cast(v, DType::F64);
    cx.div(share(inside), share(cx.sub(end, start)))
}

/// The largest elements of windows that divide each dimension as evenly as possible, and their
/// indices in the channel.
fn adaptive_max_pool(cx: &Cx, x: Value, output_size: Vec<Expr>) -> Lowered<Outputs> {
    let n = output_size.len();
    let by_operator = !cx.propagates_nan(x);
    if let Some(kernel) = even_windows(cx, x, &output_size).filter(|_| by_operator) {
        let stride = kernel.clone();
        let (padding, dilation) = (vec![0; n], vec![1; n]);
        let windows = Windows { kernel, stride, padding, dilation, ceil_mode: false };
        return Ok(largest_of_windows(cx, x, &windows));
    }
    let shape = cx.shape(x);
    if output_size.iter().all(|s| s.as_int() == Some(1)) {
        let axes: Vec<usize> = (shape.len().saturating_sub(n)..shape.len()).collect();
        let values = extreme(cx, Extreme::Max, x, &axes, true);
        let found = cx.is_used(1).then(|| {
            let channels = merge_last(cx, x, n);
            let last = cx.rank(channels) - 1;
            cx.unsqueeze(arg_of_window(cx, channels, last, false), &axes)
        });
        return Ok([Some(values), found].into());
    }
    if let Some(kernel) = even_windows(cx, x, &output_size).filter(|_| !cx.is_used(1)) {
        let first = shape.len() - n;
        let sizes = output_size.iter().zip(kernel).flat_map(|(to, k)| [to.clone(), Expr::int(k)]);
        let windows =
            cx.reshape(x, &shape[..first].iter().cloned().chain(sizes).collect::<Vec<_>>());
        let axes: Vec<usize> = (0..n).map(|i| first + 2 * i + 1).collect();
        return Ok(extreme(cx, Extreme::Max, windows, &axes, false).into());
    }
    let spatial = shape[shape.len().saturating_sub(n)..].to_vec();
    let positions: Vec<Value> = spatial
        .iter()
        .zip(&output_size)
        .map(|(from, to)| {
            let (start, end) = adaptive(cx, from, to);
            let offsets = cx.iota(&adaptive_length(from, to));
            // A window shorter than the longest repeats its last element.
            let all = cx.add(cx.unsqueeze(start, &[1]), offsets);
            cx.minimum(all, cx.unsqueeze(cx.sub(end, 1), &[1]))
        })
        .collect();
    Ok(largest(cx, x, &spatial, &positions, 0))
}

fn meta_adaptive(cx: &Cx, x: Value, output_size: Vec<Expr>) -> Lowered {
    let n = meta::spatial(cx, x, output_size.len())?;
    let kept = cx.shape(x).into_iter().take(cx.rank(x) - n);
    Ok(sized(cx, x, &kept.chain(output_size).collect::<Vec<_>>()))
}

checks! {
    // Windows of several sizes.
    "aten.adaptive_avg_pool1d(x: f16[1, 2, 5], [3]) -> f16[1, 2, 3]" => "
    val_0 = Cast <to: int = 1> (x)
    val_1 = Add (int64[3,1] {0, 1, 3}, [0, 1, 2])
    val_2 = Sub (int64[3,1] {2, 4, 5}, 1)
    val_3 = Min (val_1, val_2)
    val_4 = Gather <axis: int = 2> (val_0, val_3)
    val_5 = Less (val_1, int64[3,1] {2, 4, 5})
    val_6 = Where (val_5, val_4, 0.0)
    val_7 = ReduceSum <keepdims: int = 0> (val_6, [3])
    val_8 = Sub (int64[3,1] {2, 4, 5}, int64[3,1] {0, 1, 3})
    val_9 = Cast <to: int = 1> (val_8)
    val_10 = Squeeze (val_9, [1])
    val_11 = Div (val_7, val_10)
    adaptive_avg_pool1d = Cast <to: int = 10> (val_11)
    ";

    // NaN stays in its windows.
    "aten.adaptive_avg_pool1d(x: f32[1, 2, 5], [3]) -> f32[1, 2, 3]", assume_finite => "
    val_0 = double[5,3] {0.5, 0.0, 0.0, 0.5, 0.3333333333333333, 0.0, 0.0, 0.3333333333333333, 0.0, 0.0, 0.3333333333333333, 0.5, 0.0, 0.0, 0.5}
    val_1 = Cast <to: int = 1> (val_0)
    adaptive_avg_pool1d = MatMul (x, val_1)
    ";
    "aten.adaptive_max_pool1d(x: f32[s0, 2, 4], [2]) -> (f32[s0, 2, 2], None)" => "
    val_0 = Reshape (x, [0, 2, 2, 2])
    val_1 = ReduceMax <keepdims: int = 0> (val_0, [3])
    val_2 = IsNaN (val_0)
    val_3 = ReduceMax <keepdims: int = 0> (val_2, [3])
    adaptive_max_pool1d_0 = Where (val_3, NaN, val_1)
    ";
    "aten.adaptive_max_pool1d(x: f32[1, 2, 4], [2]) -> (f32[1, 2, 2], i64[1, 2, 2])" => "
    val_0 = Add (int64[2,1] {0, 2}, [0, 1])
    val_1 = Sub ([2, 4], 1)
    val_2 = Unsqueeze (val_1, [1])
    val_3 = Min (val_0, val_2)
    val_4 = Gather <axis: int = 2> (x, val_3)
    val_5 = ReduceMax <keepdims: int = 0> (val_4, [3])
    val_6 = IsNaN (val_4)
    val_7 = ReduceMax <keepdims: int = 0> (val_6, [3])
    adaptive_max_pool1d_0 = Where (val_7, NaN, val_5)
    val_8 = IsNaN (val_4)
    val_9 = ReduceMax <keepdims: int = 1> (val_8, [3])
    val_10 = Cast <to: int = 1> (val_8)
    val_11 = Where (val_9, val_10, val_4)
    val_12 = ArgMax <axis: int = 3> (val_11)
    val_13 = IsNaN (val_4)
    val_14 = Cast <to: int = 2> (val_13)
    val_15 = ArgMax <axis: int = 3, select_last_index: int = 1> (val_14)
    val_16 = IsNaN (val_4)
    val_17 = ReduceMax <keepdims: int = 1> (val_16, [3])
    val_18 = Where (val_17, val_15, val_12)
    val_19 = Expand (val_3, [1, 2, 1, 1])
    val_20 = GatherElements <axis: int = 3> (val_19, val_18)
    adaptive_max_pool1d_1 = Squeeze (val_20, [3])
    ";
}
