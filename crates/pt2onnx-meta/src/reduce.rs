//! Infers the types of the results of ops that reduce dimensions.

use crate::stand_ins::{sized, typed, with_size};
use pt2onnx_ir::Value;
use pt2onnx_lowering::{AtenOp, Cx, Lowered, arguments, op};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static RULES: &[AtenOp] = &[
    op!(aten::all, truth),
    op!(aten::all_dim, truth),
    op!(aten::all_dims, truth),
    op!(aten::any, truth),
    op!(aten::any_dim, truth),
    op!(aten::any_dims, truth),
    op!(aten::cumulative_trapezoid_dx, cumulative_trapezoid),
    op!(aten::cumulative_trapezoid_x, cumulative_trapezoid),
    op!(aten::diff, diff),
    op!(aten::frobenius_norm_dim, norm),
    op!(aten::gradient_array, gradient),
    op!(aten::gradient_scalararray, gradient),
    op!(aten::gradient_scalarint, gradient),
    op!(aten::gradient_scalarrayarray, gradient),
    op!(aten::gradient_scalarrayint, gradient),
    op!(aten::gradient_tensorarray, gradient),
    op!(aten::gradient_tensorarrayint, gradient),
    op!(aten::linalg_matrix_norm, norm),
    op!(aten::linalg_matrix_norm_str_ord, norm),
    op!(aten::linalg_norm, norm),
    op!(aten::linalg_norm_ord_str, norm),
    op!(aten::linalg_vector_norm, norm),
    op!(aten::logsumexp, logsumexp),
    op!(aten::mean, mean),
    op!(aten::mean_dim, mean),
    op!(aten::nanmean, mean),
    op!(aten::nansum, sum),
    op!(aten::norm_Scalar, norm),
    op!(aten::norm_ScalarOpt_dim, norm),
    op!(aten::norm_ScalarOpt_dim_dtype, norm),
    op!(aten::norm_ScalarOpt_dtype, norm),
    op!(aten::nuclear_norm, norm),
    op!(aten::nuclear_norm_dim, norm),
    op!(aten::prod, sum),
    op!(aten::prod_dim_int, sum),
    op!(aten::special_logsumexp, logsumexp),
    op!(aten::std, norm),
    op!(aten::std_correction, norm),
    op!(aten::std_dim, norm),
    op!(aten::std_mean, deviation_and_mean),
    op!(aten::std_mean_correction, deviation_and_mean),
    op!(aten::std_mean_dim, deviation_and_mean),
    op!(aten::sum, sum),
    op!(aten::sum_dim_IntList, sum),
    op!(aten::trace, trace),
    op!(aten::trapezoid_dx, trapezoid),
    op!(aten::trapezoid_x, trapezoid),
    op!(aten::trapz_dx, trapezoid),
    op!(aten::trapz_x, trapezoid),
    op!(aten::var, norm),
    op!(aten::var_correction, norm),
    op!(aten::var_dim, norm),
    op!(aten::var_mean, deviation_and_mean),
    op!(aten::var_mean_correction, deviation_and_mean),
    op!(aten::var_mean_dim, deviation_and_mean),
];

arguments! {
    struct Reduced { input: Value, dim: Option<Vec<i64>>, keepdim: Option<bool>, dtype: Option<DType> }
    struct Diff { input: Value, n: i64, dim: i64, prepend: Option<Value>, append: Option<Value> }
    struct Dims { input: Value, dim: Option<Vec<i64>> }
    struct Trapezoid { y: Value, x: Option<Value>, dim: i64 }
}

/// The sizes without the reduced dimensions, or with 1 for them.
fn reduced(cx: &Cx, args: &Reduced) -> Lowered<Vec<Expr>> {
    let axes = cx.axes(args.input, args.dim.as_deref())?;
    let keep = args.keepdim.unwrap_or(false);
    let size = |(i, d)| if axes.contains(&i) { keep.then(|| Expr::int(1)) } else { Some(d) };
    Ok(cx.shape(args.input).into_iter().enumerate().filter_map(size).collect())
}

/// The type of sums: integers become int64.
pub(crate) fn sum_type(cx: &Cx, x: Value) -> DType {
    let dtype = cx.dtype(x);
    if dtype.is_int() || dtype == DType::Bool { DType::I64 } else { dtype }
}

fn sum(cx: &Cx, args: Reduced) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or(sum_type(cx, args.input)), &reduced(cx, &args)?))
}

fn mean(cx: &Cx, args: Reduced) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or(cx.dtype(args.input)), &reduced(cx, &args)?))
}

fn logsumexp(cx: &Cx, args: Reduced) -> Lowered {
    Ok(typed(cx, cx.float_type(cx.dtype(args.input)), &reduced(cx, &args)?))
}

/// The real type of norms and deviations.
fn norm(cx: &Cx, args: Reduced) -> Lowered {
    let dtype = args.dtype.unwrap_or(cx.dtype(args.input)).to_real();
    Ok(typed(cx, dtype, &reduced(cx, &args)?))
}

fn deviation_and_mean(cx: &Cx, args: Reduced) -> Lowered<[Value; 2]> {
    Ok([norm(cx, args.clone())?, mean(cx, args)?])
}

/// The type is bool, but uint8 for uint8.
fn truth(cx: &Cx, args: Reduced) -> Lowered {
    let dtype = if cx.dtype(args.input) == DType::U8 { DType::U8 } else { DType::Bool };
    Ok(typed(cx, dtype, &reduced(cx, &args)?))
}

fn trace(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, sum_type(cx, x), &[]))
}

/// The type of the trapezoids between neighbours.
fn trapezoids(cx: &Cx, args: &Trapezoid) -> DType {
    let operands = [Some(args.y), args.x].into_iter().flatten().map(Into::into).collect::<Vec<_>>();
    cx.float_type(cx.result_type(&operands))
}

fn trapezoid(cx: &Cx, args: Trapezoid) -> Lowered {
    let y = typed(cx, trapezoids(cx, &args), &cx.shape(args.y));
    let dim = Some(vec![args.dim]);
    mean(cx, Reduced { input: y, dim, keepdim: None, dtype: None })
}

fn cumulative_trapezoid(cx: &Cx, args: Trapezoid) -> Lowered {
    let y = typed(cx, trapezoids(cx, &args), &cx.shape(args.y));
    let axis = cx.axis(y, args.dim)?;
    Ok(sized(cx, y, &with_size(cx, y, axis, cx.dim(y, axis as i64) - 1)))
}

/// Differences of neighbours, `n` times.
fn diff(cx: &Cx, args: Diff) -> Lowered {
    let axis = cx.axis(args.input, args.dim)?;
    // PyTorch joins nothing then.
    if args.n == 0 {
        return Ok(args.input);
    }
    let parts: Vec<Value> =
        [args.prepend, Some(args.input), args.append].into_iter().flatten().collect();
    let total = Expr::sum(parts.iter().map(|&v| cx.dim(v, axis as i64)));
    let left = cx.constraints().simplify(&Expr::max(&(total - args.n), &Expr::ZERO));
    let operands: Vec<_> = parts.iter().map(|&v| v.into()).collect();
    Ok(typed(cx, cx.result_type(&operands), &with_size(cx, args.input, axis, left)))
}

/// A tensor as the operand for each dimension.
fn gradient(cx: &Cx, args: Dims) -> Lowered<Vec<Value>> {
    let count = args.dim.map_or(cx.rank(args.input), |dims| dims.len());
    let dtype = cx.float_type(cx.dtype(args.input));
    Ok((0..count).map(|_| typed(cx, dtype, &cx.shape(args.input))).collect())
}
