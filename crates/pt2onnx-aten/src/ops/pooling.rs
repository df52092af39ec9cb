//! Pooling over spatial windows.

use super::convolution::{batched, per_dim};
use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
        adaptive_avg_pool
    ),
    aten!(
        "aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
        adaptive_avg_pool
    ),
    aten!(
        "aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
        adaptive_avg_pool
    ),
    aten!(
        "aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor",
        max_pool::<1>
    ),
    aten!(
        "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
        max_pool::<2>
    ),
    aten!(
        "aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
        max_pool::<3>
    ),
];

/// `MaxPool`; no stride means the kernel's size.
fn max_pool<const N: usize>(
    cx: &Cx,
    x: Value,
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    ceil_mode: bool,
) -> Lowered {
    let kernel = per_dim(&kernel, N);
    let stride = if stride.is_empty() {
        kernel.clone()
    } else {
        per_dim(&stride, N)
    };
    let padding = per_dim(&padding, N);
    let options = attrs::MaxPool {
        strides: Some(stride),
        pads: Some([&padding[..], &padding[..]].concat()),
        dilations: Some(per_dim(&dilation, N)),
        ceil_mode,
        ..Default::default()
    };
    Ok(batched(cx, x, N, |x| {
        cx.max_pool(x, &kernel, options.clone())
    }))
}

/// Means of windows that divide each dimension as evenly as can be. Over everything it is one mean; else, along each
/// dimension, a product with the matrix of the windows, whose sizes must be known for that.
fn adaptive_avg_pool(cx: &Cx, x: Value, output_size: Vec<Expr>) -> Lowered {
    let first = cx.rank(x) - output_size.len().min(cx.rank(x));
    if output_size.iter().all(|s| s.as_int() == Some(1)) {
        let axes: Vec<usize> = (first..cx.rank(x)).collect();
        return Ok(cx.reduce("ReduceMean", x, &axes, true));
    }
    let mut result = x;
    for (i, to) in output_size.iter().enumerate() {
        let axis = first + i;
        let from = cx.dim(x, axis as i64);
        if from == *to {
            continue;
        }
        let (Some(from), Some(to)) = (from.as_int(), to.as_int()) else {
            let what = format!(
                "adaptive pooling of a dynamic dimension ({from}) to a size ({to}) other than 1"
            );
            return Err(LowerError::unsupported(what));
        };
        let last = cx.rank(x) - 1;
        let windows = cx.cast(cx.constant(window_means(from, to)?), cx.dtype(x));
        result = cx.swap_axes(
            cx.matmul(cx.swap_axes(result, axis, last), windows),
            axis,
            last,
        );
    }
    Ok(result)
}

/// Column `j` of the `from` x `to` matrix holds `1 / n` for the `n` elements of window `j`.
fn window_means(from: i64, to: i64) -> Lowered<Tensor> {
    let mut matrix = vec![0f32; (from * to).max(0) as usize];
    for j in 0..to {
        let (start, end) = (j * from / to, ((j + 1) * from + to - 1) / to);
        for i in start..end {
            matrix[(i * to + j) as usize] = 1.0 / (end - start) as f32;
        }
    }
    let shape = vec![from.max(0) as usize, to.max(0) as usize];
    Tensor::from_slice(shape, &matrix).map_err(|e| LowerError::unsupported(e.to_string()))
}
