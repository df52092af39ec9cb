//! Infers the types of the results of layers: pooling, convolution, resizing, normalisation.

use crate::stand_ins::{fresh, sized, typed, unknown};
use pt2onnx_ir::Value;
use pt2onnx_lowering::{AtenOp, Cx, Lowered, arguments, cx::Outputs, op};
use pt2onnx_symbolic::{Expr, Func};
use pt2onnx_tensor::DType;

pub(crate) static RULES: &[AtenOp] = &[
    op!(aten::_batch_norm_with_update, batch_norm_reserve),
    op!(aten::_convolution, convolution),
    op!(aten::_convolution_deprecated, convolution),
    op!(aten::_native_batch_norm_legit, batch_norm),
    op!(aten::_native_batch_norm_legit_no_stats, batch_norm),
    op!(aten::_native_batch_norm_legit_no_training, batch_norm_known),
    op!(aten::_native_multi_head_attention, multi_head),
    op!(aten::_pack_padded_sequence, pack),
    op!(aten::_pad_packed_sequence, unpack),
    op!(aten::_scaled_dot_product_flash_attention_for_cpu, flash_attention),
    op!(aten::_upsample_bicubic2d_aa, resized),
    op!(aten::_upsample_bicubic2d_aa_vec, resized),
    op!(aten::_upsample_bilinear2d_aa, resized),
    op!(aten::_upsample_bilinear2d_aa_vec, resized),
    op!(aten::_upsample_lanczos2d_aa, resized),
    op!(aten::_upsample_lanczos2d_aa_vec, resized),
    op!(aten::_upsample_nearest_exact1d, resized),
    op!(aten::_upsample_nearest_exact1d_vec, resized),
    op!(aten::_upsample_nearest_exact2d, resized),
    op!(aten::_upsample_nearest_exact2d_vec, resized),
    op!(aten::_upsample_nearest_exact3d, resized),
    op!(aten::_upsample_nearest_exact3d_vec, resized),
    op!(aten::adaptive_avg_pool1d, adaptive),
    op!(aten::adaptive_avg_pool2d, adaptive),
    op!(aten::adaptive_avg_pool3d, adaptive),
    op!(aten::avg_pool1d, pool),
    op!(aten::avg_pool2d, pool),
    op!(aten::avg_pool3d, pool),
    op!(aten::conv_transpose1d, conv_transpose, n = 1),
    op!(aten::conv_transpose2d_input, conv_transpose, n = 2),
    op!(aten::conv_transpose3d_input, conv_transpose, n = 3),
    op!(aten::convolution, convolution),
    op!(aten::gru_data, recurrent),
    op!(aten::im2col, im2col),
    op!(aten::lstm_data, lstm),
    op!(aten::max_pool1d, pool),
    op!(aten::max_pool1d_with_indices, pool_indices),
    op!(aten::max_pool2d, pool),
    op!(aten::max_pool2d_with_indices, pool_indices),
    op!(aten::max_pool3d, pool),
    op!(aten::max_pool3d_with_indices, pool_indices),
    op!(aten::native_batch_norm, batch_norm),
    op!(aten::native_group_norm, group_norm),
    op!(aten::native_layer_norm, layer_norm),
    op!(aten::rnn_relu_data, recurrent),
    op!(aten::rnn_tanh_data, recurrent),
    op!(aten::slow_conv_transpose2d, conv_transpose, n = 2),
    op!(aten::slow_conv_transpose3d, conv_transpose, n = 3),
    op!(aten::upsample_bicubic2d, resized),
    op!(aten::upsample_bicubic2d_vec, resized),
    op!(aten::upsample_bilinear2d, resized),
    op!(aten::upsample_bilinear2d_vec, resized),
    op!(aten::upsample_linear1d, resized),
    op!(aten::upsample_linear1d_vec, resized),
    op!(aten::upsample_nearest1d, resized),
    op!(aten::upsample_nearest1d_vec, resized),
    op!(aten::upsample_nearest2d, resized),
    op!(aten::upsample_nearest2d_vec, resized),
    op!(aten::upsample_nearest3d, resized),
    op!(aten::upsample_nearest3d_vec, resized),
    op!(aten::upsample_trilinear3d, resized),
    op!(aten::upsample_trilinear3d_vec, resized),
    op!(torchvision::ps_roi_align, regions_of_channels),
    op!(torchvision::ps_roi_pool, regions_of_channels),
    op!(torchvision::roi_pool, regions),
];

arguments! {
    struct Pool {
        input: Value, kernel_size: Vec<i64>, stride: Vec<i64>, padding: Vec<i64>,
        dilation: Option<Vec<i64>>, ceil_mode: bool,
    }
    struct Transposed {
        input: Value, weight: Value, stride: Vec<i64>, padding: Vec<i64>, output_padding: Vec<i64>,
        groups: Option<i64>, dilation: Vec<i64>, n: i64,
    }
    struct Convolution {
        input: Value, weight: Value, stride: Vec<i64>, padding: Vec<i64>, output_padding: Vec<i64>,
        groups: i64, dilation: Vec<i64>, transposed: bool,
    }
    struct MultiHead {
        query: Value, key: Value, num_head: i64, need_weights: bool, average_attn_weights: bool,
    }
    struct BatchNorm { input: Value, weight: Option<Value>, training: Option<bool> }
    struct Regions { input: Value, rois: Value, pooled_height: Expr, pooled_width: Expr }
    struct Padded { data: Value, batch_sizes: Value, batch_first: bool, total_length: Expr }
    struct Recurrent { data: Value, hx: Value, bidirectional: bool }
    struct Lstm { data: Value, hx: Vec<Value>, bidirectional: bool }
    struct Resized { input: Value, output_size: Option<Vec<Expr>>, scale_factors: Option<Vec<f64>> }
    struct Columns {
        input: Value, kernel_size: Vec<i64>, dilation: Vec<i64>, padding: Vec<i64>, stride: Vec<i64>,
    }
    struct LayerNorm { input: Value, normalized_shape: Vec<Expr> }
    struct GroupNorm { input: Value, group: i64 }
}

/// Number `i` of a list. A single number holds for all dimensions.
fn nth(list: &[i64], i: usize, default: i64) -> i64 {
    list.get(i).or(list.first()).copied().unwrap_or(default)
}

/// The number of windows along a dimension. A last window may reach past the end, but does not
/// start there.
fn windows(
    size: &Expr,
    kernel: i64,
    stride: i64,
    padding: i64,
    dilation: i64,
    ceil: bool,
) -> Lowered<Expr> {
    let reach = dilation * (kernel - 1) + 1;
    let room = size + (2 * padding - reach);
    let count = |room: Expr| room.floor_div(&Expr::int(stride)) + 1;
    let count = match ceil {
        false => count(room),
        true if stride + padding <= reach => count(room + (stride - 1)),
        // As many as start in front of the last padding.
        true => Expr::min(&count(room + (stride - 1)), &count(size + (padding - 1))),
    };
    match count.as_int() {
        Some(..=0) => unknown("a window that is larger than what it moves over"),
        _ => Ok(count),
    }
}

fn pool(cx: &Cx, args: Pool) -> Lowered {
    let mut size: Vec<Expr> = cx.shape(args.input).into_iter().collect();
    let n = spatial(cx, args.input, args.kernel_size.len())?;
    let dilation = args.dilation.unwrap_or_default();
    let first = size.len() - n;
    for (i, d) in size[first..].iter_mut().enumerate() {
        let kernel = nth(&args.kernel_size, i, 1);
        let stride = nth(&args.stride, i, kernel);
        *d = windows(
            d,
            kernel,
            stride,
            nth(&args.padding, i, 0),
            nth(&dilation, i, 1),
            args.ceil_mode,
        )?;
    }
    Ok(sized(cx, args.input, &size))
}

/// The number of spatial dimensions. A list of one number may hold for all of them.
fn spatial(cx: &Cx, x: Value, given: usize) -> Lowered<usize> {
    match cx.rank(x).checked_sub(given) {
        Some(1 | 2) => Ok(given),
        _ => unknown("it is not known which dimensions are spatial"),
    }
}

fn pool_indices(cx: &Cx, args: Pool) -> Lowered<[Value; 2]> {
    let values = pool(cx, args)?;
    Ok([values, typed(cx, DType::I64, &cx.shape(values))])
}

fn adaptive(cx: &Cx, x: Value, output_size: Vec<Expr>) -> Lowered {
    let n = spatial(cx, x, output_size.len())?;
    let kept = cx.shape(x).into_iter().take(cx.rank(x) - n);
    Ok(sized(cx, x, &kept.chain(output_size).collect::<Vec<_>>()))
}

fn conv_transpose(cx: &Cx, args: Transposed) -> Lowered {
    let n = args.n as usize;
    let mut size: Vec<Expr> = cx.shape(args.input).into_iter().collect();
    let Some(first) = size.len().checked_sub(n).filter(|&f| f > 0) else {
        return unknown("it has too few dimensions");
    };
    size[first - 1] = cx.dim(args.weight, 1) * args.groups.unwrap_or(1);
    for i in 0..n {
        let kernel = cx.dim(args.weight, 2 + i as i64);
        let reach = (kernel - 1) * nth(&args.dilation, i, 1) + 1;
        let shift = nth(&args.output_padding, i, 0) - 2 * nth(&args.padding, i, 0);
        size[first + i] = (&size[first + i] - 1) * nth(&args.stride, i, 1) + reach + shift;
    }
    Ok(sized(cx, args.input, &size))
}

/// The given size, or `floor(size * factor)`.
fn resized(cx: &Cx, args: Resized) -> Lowered {
    let from: Vec<Expr> = cx.shape(args.input).into_iter().collect();
    let mut size: Vec<Expr> = from.iter().take(2).cloned().collect();
    let scaled = |(d, factor): (&Expr, &f64)| match (d.as_int(), factor.fract() == 0.0) {
        (Some(n), _) => Expr::int((n as f64 * factor).floor() as i64),
        (None, true) => d * (*factor as i64),
        // A factor such as 0.5 or 0.25.
        (None, false) if (1.0 / factor).fract() == 0.0 => {
            d.floor_div(&Expr::int((1.0 / factor) as i64))
        }
        _ => {
            let size = Expr::call(Func::ToFloat, vec![d.clone()]);
            Expr::call(Func::TruncToInt, vec![size * Expr::float(*factor)])
        }
    };
    let given =
        args.output_size.as_ref().map(Vec::len).or(args.scale_factors.as_ref().map(Vec::len));
    if given != from.len().checked_sub(2) {
        return unknown("it does not resize the dimensions after the first two");
    }
    match (args.output_size, args.scale_factors) {
        (Some(given), _) => size.extend(given),
        (None, Some(factors)) => {
            size.extend(from[2..].iter().zip(&factors).map(scaled));
        }
        (None, None) => return unknown("it has no size"),
    }
    Ok(sized(cx, args.input, &size))
}

/// The elements of each window as a column.
fn im2col(cx: &Cx, args: Columns) -> Lowered {
    let mut size: Vec<Expr> = cx.shape(args.input).into_iter().collect();
    let n = spatial(cx, args.input, 2)?;
    let spatial = size.split_off(size.len() - n);
    let mut count = Expr::int(1);
    let mut area = 1;
    for (i, d) in spatial.iter().enumerate() {
        let kernel = nth(&args.kernel_size, i, 1);
        let stride = nth(&args.stride, i, 1);
        area *= kernel;
        count = count
            * windows(
                d,
                kernel,
                stride,
                nth(&args.padding, i, 0),
                nth(&args.dilation, i, 1),
                false,
            )?;
    }
    let channels = size.pop().unwrap_or(Expr::int(1));
    size.extend([channels * area, count]);
    Ok(sized(cx, args.input, &size))
}

/// The result, and mean and inverse deviation with 1 for the normalised dimensions.
fn layer_norm(cx: &Cx, args: LayerNorm) -> Lowered<[Value; 3]> {
    let x = args.input;
    let mut size: Vec<Expr> = cx.shape(x).into_iter().collect();
    let kept = size.len().saturating_sub(args.normalized_shape.len());
    size[kept..].fill(Expr::int(1));
    let statistic = || sized(cx, x, &size);
    Ok([sized(cx, x, &cx.shape(x)), statistic(), statistic()])
}

fn group_norm(cx: &Cx, args: GroupNorm) -> Lowered<[Value; 3]> {
    let x = args.input;
    let size = [cx.dim(x, 0), Expr::int(args.group)];
    let statistic = || sized(cx, x, &size);
    Ok([sized(cx, x, &cx.shape(x)), statistic(), statistic()])
}

/// The result, and mean and inverse deviation of each channel if they are those of the batch.
fn batch_norm(cx: &Cx, args: BatchNorm) -> Lowered<[Value; 3]> {
    let x = args.input;
    let training = args.training.unwrap_or(true);
    let size = [if training { cx.dim(x, 1) } else { Expr::ZERO }];
    if args.weight.is_some_and(|w| cx.dtype(w) != cx.dtype(x)) {
        return unknown("its weight has another type than its input");
    }
    let statistic = || sized(cx, x, &size);
    Ok([sized(cx, x, &cx.shape(x)), statistic(), statistic()])
}

fn batch_norm_reserve(cx: &Cx, args: BatchNorm) -> Lowered<[Value; 4]> {
    let [x, mean, deviation] = batch_norm(cx, args)?;
    Ok([x, mean, deviation, typed(cx, DType::U8, &[Expr::ZERO])])
}

/// The result, and the weights of all heads or their mean, if wanted.
fn multi_head(cx: &Cx, args: MultiHead) -> Lowered<Outputs> {
    let [batch, from, to] =
        [(args.query, 0), (args.query, 1), (args.key, 1)].map(|(x, i)| cx.dim(x, i));
    let heads = (!args.average_attn_weights).then(|| Expr::int(args.num_head));
    let size: Vec<Expr> = [batch].into_iter().chain(heads).chain([from, to]).collect();
    let weights = args.need_weights.then(|| sized(cx, args.query, &size));
    Ok([Some(sized(cx, args.query, &cx.shape(args.query))), weights].into())
}

/// The result, and the logarithm of the sum of each row.
fn flash_attention(cx: &Cx, q: Value) -> Lowered<[Value; 2]> {
    let mut size: Vec<Expr> = cx.shape(q).into_iter().collect();
    let dtype = if cx.dtype(q) == DType::F64 { DType::F64 } else { DType::F32 };
    size.pop();
    Ok([sized(cx, q, &cx.shape(q)), typed(cx, dtype, &size)])
}

fn convolution(cx: &Cx, args: Convolution) -> Lowered {
    let Convolution { input, weight, stride, padding, output_padding, groups, dilation, .. } = args;
    let n = cx.rank(weight).saturating_sub(2);
    if args.transposed {
        let (n, groups) = (n as i64, Some(groups));
        return conv_transpose(
            cx,
            Transposed { input, weight, stride, padding, output_padding, groups, dilation, n },
        );
    }
    let mut size: Vec<Expr> = cx.shape(input).into_iter().collect();
    let Some(first) = size.len().checked_sub(n).filter(|&f| f > 0) else {
        return unknown("it has too few dimensions");
    };
    size[first - 1] = cx.dim(weight, 0);
    for i in 0..n {
        let reach = (cx.dim(weight, 2 + i as i64) - 1) * nth(&dilation, i, 1) + 1;
        let room = &size[first + i] + 2 * nth(&padding, i, 0) - reach;
        size[first + i] = room.floor_div(&Expr::int(nth(&stride, i, 1))) + 1;
    }
    Ok(sized(cx, input, &size))
}

fn batch_norm_known(cx: &Cx, args: BatchNorm) -> Lowered<[Value; 3]> {
    batch_norm(cx, BatchNorm { training: Some(false), ..args })
}

/// The largest element of each part of a region, and where it was.
fn regions(cx: &Cx, args: Regions) -> Lowered<[Value; 2]> {
    let size = [cx.dim(args.rois, 0), cx.dim(args.input, 1), args.pooled_height, args.pooled_width];
    Ok([sized(cx, args.input, &size), typed(cx, DType::I32, &size)])
}

/// Each part of a region has channels of its own.
fn regions_of_channels(cx: &Cx, args: Regions) -> Lowered<[Value; 2]> {
    let parts = &args.pooled_height * &args.pooled_width;
    let channels = cx.constraints().simplify(&cx.dim(args.input, 1).floor_div(&parts));
    let size = [cx.dim(args.rois, 0), channels, args.pooled_height, args.pooled_width];
    Ok([sized(cx, args.input, &size), typed(cx, DType::I32, &size)])
}

/// The steps of all sequences, one after the other, and the number of sequences that have each
/// step.
fn pack(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    let steps = cx.shape(x).into_iter().skip(2);
    let size: Vec<Expr> = std::iter::once(fresh(cx)).chain(steps).collect();
    Ok([sized(cx, x, &size), typed(cx, DType::I64, &[fresh(cx)])])
}

/// The padded sequences, and their lengths.
fn unpack(cx: &Cx, args: Padded) -> Lowered<[Value; 2]> {
    let batch = fresh(cx);
    let given = args.total_length;
    let time = match cx.constraints().decide(&Expr::call(Func::Gt, vec![given.clone(), Expr::ZERO]))
    {
        Some(true) => given,
        Some(false) => cx.numel(args.batch_sizes),
        None => fresh(cx),
    };
    let mut size = vec![time, batch.clone()];
    if args.batch_first {
        size.swap(0, 1);
    }
    size.extend(cx.shape(args.data).into_iter().skip(1));
    Ok([sized(cx, args.data, &size), typed(cx, DType::I64, &[batch])])
}

/// The output of each packed step, as wide as the state in each direction, and the last state.
fn recurrent(cx: &Cx, args: Recurrent) -> Lowered<[Value; 2]> {
    let width = cx.dim(args.hx, -1) * if args.bidirectional { 2 } else { 1 };
    let output = sized(cx, args.data, &[cx.dim(args.data, 0), width]);
    Ok([output, sized(cx, args.hx, &cx.shape(args.hx))])
}

fn lstm(cx: &Cx, args: Lstm) -> Lowered<[Value; 3]> {
    let [hx, state] = args.hx[..] else {
        return unknown("it takes two states");
    };
    let Lstm { data, bidirectional, .. } = args;
    let [output, last] = recurrent(cx, Recurrent { data, hx, bidirectional })?;
    Ok([output, last, sized(cx, state, &cx.shape(state))])
}
