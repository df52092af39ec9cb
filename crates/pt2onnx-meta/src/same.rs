//! Ops whose result has the sizes of an operand, or the sizes to which the operands broadcast.

use crate::stand_ins::{broadcast, sized, typed};
use pt2onnx_ir::Value;
use pt2onnx_lowering::{AtenOp, Cx, Lowered, arguments, op};
use pt2onnx_tensor::DType;

pub(crate) static RULES: &[AtenOp] = &[
    op!(aten::_cast_Byte, like, dtype = DType::U8),
    op!(aten::_cast_Char, like, dtype = DType::I8),
    op!(aten::_cast_Double, like, dtype = DType::F64),
    op!(aten::_cast_Float, like, dtype = DType::F32),
    op!(aten::_cast_Half, like, dtype = DType::F16),
    op!(aten::_cast_Int, like, dtype = DType::I32),
    op!(aten::_cast_Long, like, dtype = DType::I64),
    op!(aten::_cast_Short, like, dtype = DType::I16),
    op!(aten::_conj, same),
    op!(aten::_conj_copy, same),
    op!(aten::_conj_physical, same),
    op!(aten::_fake_quantize_learnable_per_channel_affine, same),
    op!(aten::_fake_quantize_learnable_per_tensor_affine, same),
    op!(aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams, with_mask),
    op!(aten::_fft_c2c, same),
    op!(aten::_index_put_impl, same),
    op!(aten::_is_all_true, one_truth),
    op!(aten::_to_copy, like),
    op!(aten::_unsafe_index_put, same),
    op!(aten::_unsafe_index_put_hacked_twin, same),
    op!(aten::_unsafe_masked_index_put_accumulate, same),
    op!(aten::alias, same),
    op!(aten::alias_copy, same),
    op!(aten::alpha_dropout, same),
    op!(aten::as_strided_scatter, same),
    op!(aten::chalf, chalf),
    op!(aten::clone, same),
    op!(aten::conj, same),
    op!(aten::conj_physical, same),
    op!(aten::contiguous, same),
    op!(aten::copy, same),
    op!(aten::cumprod, counted),
    op!(aten::cumsum, counted),
    op!(aten::detach, same),
    op!(aten::diagonal_scatter, same),
    op!(aten::dropout, same),
    op!(aten::empty_like, like),
    op!(aten::expand_as, as_other),
    op!(aten::fake_quantize_per_channel_affine, same),
    op!(aten::fake_quantize_per_channel_affine_cachemask, with_mask),
    op!(aten::fake_quantize_per_tensor_affine, same),
    op!(aten::fake_quantize_per_tensor_affine_cachemask, with_mask),
    op!(aten::fake_quantize_per_tensor_affine_tensor_qparams, same),
    op!(aten::feature_alpha_dropout, same),
    op!(aten::feature_dropout, same),
    op!(aten::fft_fftshift, same),
    op!(aten::fft_ifftshift, same),
    op!(aten::fill_Scalar, same),
    op!(aten::fill_Tensor, same),
    op!(aten::flip, same),
    op!(aten::full_like, like),
    op!(aten::fused_moving_avg_obs_fake_quant, same),
    op!(aten::index_add, same),
    op!(aten::index_copy, same),
    op!(aten::index_fill_int_Scalar, same),
    op!(aten::index_put, same),
    op!(aten::index_put_hacked_twin, same),
    op!(aten::lift, same),
    op!(aten::lift_fresh, same),
    op!(aten::lift_fresh_copy, same),
    op!(aten::linalg_cholesky, same),
    op!(aten::linalg_matrix_sqrth, same),
    op!(aten::log_softmax_int, like),
    op!(aten::logcumsumexp, same),
    op!(aten::masked_fill_Scalar, masked),
    op!(aten::masked_fill_Tensor, masked),
    op!(aten::masked_scatter, masked),
    op!(aten::neg, same),
    op!(aten::ones_like, like),
    op!(aten::positive, same),
    op!(aten::put, same),
    op!(aten::rand_like, like),
    op!(aten::rand_like_generator, like),
    op!(aten::randint_like, like),
    op!(aten::randint_like_generator, like),
    op!(aten::randint_like_low_dtype, like),
    op!(aten::randint_like_low_generator_dtype, like),
    op!(aten::randn_like, like),
    op!(aten::randn_like_generator, like),
    op!(aten::random, same),
    op!(aten::random_from, same),
    op!(aten::random_to, same),
    op!(aten::reshape_as, as_other),
    op!(aten::resize_as, as_other),
    op!(aten::resolve_conj, same),
    op!(aten::resolve_neg, same),
    op!(aten::roll, same),
    op!(aten::scatter_add, same),
    op!(aten::scatter_src, same),
    op!(aten::select_scatter, same),
    op!(aten::slice_scatter, same),
    op!(aten::softmax_int, like),
    op!(aten::to_device, like),
    op!(aten::to_dtype, like),
    op!(aten::to_dtype_layout, like),
    op!(aten::to_other, to_other),
    op!(aten::to_prim_other, same),
    op!(aten::tril, same),
    op!(aten::triu, same),
    op!(aten::type_as, to_other),
    op!(aten::view_as, as_other),
    op!(aten::zeros_like, like),
    op!(quantized_decomposed::choose_qparams_tensor, chosen),
    op!(quantized_decomposed::choose_qparams_symmetric_tensor, chosen),
    op!(quantized_decomposed::dequantize_per_channel, dequantized),
    op!(quantized_decomposed::dequantize_per_tensor, dequantized),
    op!(quantized_decomposed::dequantize_per_tensor_tensor, dequantized),
    op!(quantized_decomposed::dequantize_per_tensor_tensor2, dequantized),
];

/// Type and sizes of the operand.
fn same(cx: &Cx, x: Value) -> Lowered {
    Ok(sized(cx, x, &cx.shape(x)))
}

arguments! {
    struct Dequantized { input: Value, out_dtype: Option<DType> }
    struct Like { input: Value, dtype: Option<DType> }
}

/// The sizes of the operand, and the type that is given.
fn like(cx: &Cx, args: Like) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or(cx.dtype(args.input)), &cx.shape(args.input)))
}

/// [`like`], and integers become int64.
fn counted(cx: &Cx, args: Like) -> Lowered {
    let dtype = args.dtype.unwrap_or(crate::reduce::sum_type(cx, args.input));
    Ok(typed(cx, dtype, &cx.shape(args.input)))
}

/// Half-precision complex numbers.
fn chalf(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, DType::C32, &cx.shape(x)))
}

/// The type of `x`, the sizes of `other`.
fn as_other(cx: &Cx, x: Value, other: Value) -> Lowered {
    Ok(sized(cx, x, &cx.shape(other)))
}

/// The sizes of `x`, the type of `other`.
fn to_other(cx: &Cx, x: Value, other: Value) -> Lowered {
    Ok(sized(cx, other, &cx.shape(x)))
}

/// The type of `x`, broadcast with the mask.
fn masked(cx: &Cx, x: Value, mask: Value) -> Lowered {
    let shapes = [x, mask].map(|v| cx.shape(v).into_iter().collect());
    Ok(sized(cx, x, &broadcast(cx, &shapes)))
}

fn one_truth(cx: &Cx) -> Lowered {
    Ok(typed(cx, DType::Bool, &[]))
}

/// The values, and where they are within the range.
fn with_mask(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    Ok([same(cx, x)?, typed(cx, DType::Bool, &cx.shape(x))])
}

/// A scale and a zero point.
fn chosen(cx: &Cx) -> Lowered<[Value; 2]> {
    let one = [pt2onnx_symbolic::Expr::ONE];
    Ok([typed(cx, DType::F64, &one), typed(cx, DType::I64, &one)])
}

fn dequantized(cx: &Cx, args: Dequantized) -> Lowered {
    Ok(typed(cx, args.out_dtype.unwrap_or(DType::F32), &cx.shape(args.input)))
}
