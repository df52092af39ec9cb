//! Reductions: sums, products, extremes, `all` and `any`, counts.

use crate::math::complex::crossed;
use crate::math::control::fold;
use crate::math::matrix::product::{by_halves, product};
use crate::math::reduce::{
    Extreme, all_axes, any_true, extreme, is_empty_along, may_be_empty_along, mean_of, reduce,
};
use crate::math::shape::flat;
use crate::math::sort::arg_extreme;
use crate::meta::{self, typed};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, args::Ignored, arguments, checks, op};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_aminmax, aminmax, keepdim = false),
    op!(aten::_aminmax_dim, aminmax),
    op!(aten::_is_all_true, truth(Extreme::Min), meta = meta_truth, keepdim = false),
    op!(aten::all, truth(Extreme::Min), meta = meta_truth, keepdim = false),
    op!(aten::all_dim, truth(Extreme::Min), meta = meta_truth),
    op!(aten::all_dims, truth(Extreme::Min), meta = meta_truth),
    op!(aten::amax, extreme_of(Extreme::Max)),
    op!(aten::amin, extreme_of(Extreme::Min)),
    op!(aten::aminmax, aminmax),
    op!(aten::any, truth(Extreme::Max), meta = meta_truth, keepdim = false),
    op!(aten::any_dim, truth(Extreme::Max), meta = meta_truth),
    op!(aten::any_dims, truth(Extreme::Max), meta = meta_truth),
    op!(aten::argmax, arg(Extreme::Max)),
    op!(aten::argmin, arg(Extreme::Min)),
    op!(aten::count_nonzero, count_nonzero),
    op!(aten::count_nonzero_dim_IntList, count_nonzero),
    op!(aten::logsumexp, logsumexp, complex = logsumexp_complex, meta = meta_logsumexp),
    op!(aten::max, extreme_of(Extreme::Max), keepdim = false),
    op!(aten::max_dim, extreme_with_index(Extreme::Max)),
    op!(aten::mean, mean, complex = mean_complex, meta = meta::mean, keepdim = false),
    op!(aten::mean_dim, mean, complex = mean_complex, meta = meta::mean),
    op!(aten::min, extreme_of(Extreme::Min), keepdim = false),
    op!(aten::min_dim, extreme_with_index(Extreme::Min)),
    op!(aten::nanmean, nanmean, complex = nanmean_complex, meta = meta::mean),
    op!(aten::nansum, nansum, meta = meta::sum),
    op!(aten::prod, prod, complex = prod_complex, meta = meta::sum, keepdim = false),
    op!(aten::prod_dim_int, prod, complex = prod_complex, meta = meta::sum),
    op!(aten::special_logsumexp, logsumexp, complex = logsumexp_complex, meta = meta_logsumexp),
    op!(aten::sum, sum, parts, meta = meta::sum, keepdim = false),
    op!(aten::sum_dim_IntList, sum, parts, meta = meta::sum),
    op!(aten::sum_to_size, sum_to_size, parts, meta = meta_sum_to_size),
    op!(aten::trace, trace, parts, meta = meta_trace),
];

arguments! {
    /// Arguments of reductions of real tensors. Without `dim`, they are over all dimensions.
    struct ReduceArgs {
        input: Value,
        dim: Option<Vec<i64>>,
        keepdim: bool,
        dtype: Ignored,
    }

    /// Arguments of reductions of real and complex tensors. Without `dim`, they are over all
    /// dimensions.
    struct ComplexReduceArgs {
        input: Complex,
        dim: Option<Vec<i64>>,
        keepdim: bool,
        dtype: Ignored,
    }
}

/// The mean in the recorded type. It is NaN for no elements.
fn mean(cx: &Cx, args: ReduceArgs) -> Lowered {
    let x = cx.cast(args.input, cx.out_dtype()?);
    let axes = cx.axes(x, args.dim.as_deref())?;
    if is_empty_along(cx, x, &axes) {
        return Ok(cx.full(&cx.out_shape()?, f64::NAN, cx.dtype(x)));
    }
    Ok(mean_of(cx, x, &axes, args.keepdim))
}

/// The sum of complex numbers, divided by how many they are. In PyTorch that number is complex,
/// too.
fn mean_complex(cx: &Cx, args: ComplexReduceArgs) -> Lowered {
    let x = args.input.cast(cx, cx.out_dtype()?);
    let axes = cx.axes(x.re, args.dim.as_deref())?;
    if is_empty_along(cx, x.re, &axes) {
        let nan = cx.full(&cx.out_shape()?, f64::NAN, cx.dtype(x.re));
        return Ok(cx.pairs(Complex::new(nan, nan)));
    }
    let mean = mean_of(cx, x.as_pairs(cx), &axes, args.keepdim);
    Ok(if cx.propagates_nan(mean) { crossed(cx, mean, mean) } else { mean })
}

/// The sum in the recorded type, which is int64 for integers and bools.
fn sum(cx: &Cx, args: ReduceArgs) -> Lowered {
    let x = cx.cast(args.input, cx.out_dtype()?);
    let axes = cx.axes(x, args.dim.as_deref())?;
    Ok(reduce(cx, Reduction::Sum, x, &axes, args.keepdim))
}

/// The product in the recorded type. Products of integers wrap on overflow in PyTorch, but ONNX
/// Runtime's `ReduceProd` computes in float64.
fn prod(cx: &Cx, args: ReduceArgs) -> Lowered {
    let dtype = cx.out_dtype()?;
    let x = cx.cast(args.input, dtype);
    let axes = cx.axes(x, args.dim.as_deref())?;
    if dtype.is_float() || dtype == DType::Bool || axes.is_empty() {
        return Ok(reduce(cx, Reduction::Prod, x, &axes, args.keepdim));
    }
    let wide = cx.cast(x, DType::I64);
    let whole = |product: Value| if args.keepdim { cx.unsqueeze(product, &axes) } else { product };
    let product = if let (1, Some(sizes)) = (cx.rank(wide), cx.contents(wide)) {
        whole(cx.size(&Expr::product(sizes)))
    } else if let Some(product) = few_factors(cx, wide, &axes) {
        if args.keepdim { product } else { cx.squeeze(product, &axes) }
    } else if !may_be_empty_along(cx, x, &all_axes(cx, x)) {
        whole(factor_by_factor(cx, wide, &axes))
    } else {
        reduce(cx, Reduction::Prod, wide, &axes, args.keepdim)
    };
    Ok(cx.cast(product, dtype))
}

/// The product of few integers along each axis, which keeps size 1.
fn few_factors(cx: &Cx, x: Value, axes: &[usize]) -> Option<Value> {
    let few =
        |&axis: &usize| cx.dim(x, axis as i64).as_int().is_some_and(|n| (1..=32).contains(&n));
    let product = || axes.iter().fold(x.into(), |x: Complex, &axis| by_halves(cx, x, axis));
    axes.iter().all(few).then(|| product().re)
}

/// The product of integers by a `Scan` of `Mul`, which takes no empty tensors.
fn factor_by_factor(cx: &Cx, x: Value, axes: &[usize]) -> Value {
    match axes {
        [axis] => {
            let others = (0..cx.rank(x)).filter(|a| a != axis);
            let order: Vec<usize> = std::iter::once(*axis).chain(others).collect();
            fold(cx, cx.transpose(x, &order), Scalar::Int(1), |a, b| cx.mul(a, b))
        }
        _ => fold(cx, flat(cx, x), Scalar::Int(1), |a, b| cx.mul(a, b)),
    }
}

/// [`prod`] of complex numbers.
fn prod_complex(cx: &Cx, args: ComplexReduceArgs) -> Lowered {
    let x = args.input.cast(cx, cx.out_dtype()?);
    if cx.rank(x.re) == 0 {
        return Ok(cx.pairs(x));
    }
    let x = match args.dim.as_deref() {
        Some(&[dim]) => {
            let axis = cx.axis(x.re, dim)?;
            let others = (0..cx.rank(x.re)).filter(|a| *a != axis);
            let order: Vec<usize> = others.chain([axis]).collect();
            x.map(|v| cx.transpose(v, &order))
        }
        _ => x.map(|v| flat(cx, v)),
    };
    let (product, shape) = (product(cx, x), cx.out_shape()?);
    Ok(cx.pairs(product.map(|v| cx.reshape(v, &shape))))
}

/// The sum of all elements that are not NaN.
fn nansum(cx: &Cx, args: ReduceArgs) -> Lowered {
    let x = args.input;
    let input = if cx.dtype(x).is_float() { cx.select(cx.is_nan(x), 0.0, x) } else { x };
    sum(cx, ReduceArgs { input, ..args })
}

/// The mean of all elements that are not NaN.
fn nanmean(cx: &Cx, args: ReduceArgs) -> Lowered {
    let axes = cx.axes(args.input, args.dim.as_deref())?;
    let numbers = cx.cast(cx.not(cx.is_nan(args.input)), cx.out_dtype()?);
    let known = reduce(cx, Reduction::Sum, numbers, &axes, args.keepdim);
    Ok(cx.div(nansum(cx, args)?, known))
}

/// [`nanmean`] of complex numbers, which are NaN if a part is.
fn nanmean_complex(cx: &Cx, args: ComplexReduceArgs) -> Lowered {
    let (x, keepdim) = (args.input, args.keepdim);
    let axes = cx.axes(x.re, args.dim.as_deref())?;
    let nan = cx.or(cx.is_nan(x.re), cx.is_nan(x.imag(cx)));
    let numbers = cx.cast(cx.not(nan), cx.dtype(x.re));
    let known = reduce(cx, Reduction::Sum, numbers, &axes, keepdim);
    let part =
        |v| cx.div(reduce(cx, Reduction::Sum, cx.select(nan, 0.0, v), &axes, keepdim), known);
    Ok(cx.pairs(x.map(part)))
}

/// The largest or smallest element, or NaN.
const fn extreme_of(of: Extreme) -> impl Fn(&Cx, ReduceArgs) -> Lowered + Copy {
    move |cx, args| {
        let axes = cx.axes(args.input, args.dim.as_deref())?;
        Ok(extreme(cx, of, args.input, &axes, args.keepdim))
    }
}

/// The smallest and the largest element. Without `dim`, `keepdim` keeps all dimensions.
fn aminmax(cx: &Cx, args: ReduceArgs) -> Lowered<[Value; 2]> {
    Ok([extreme_of(Extreme::Min)(cx, args.clone())?, extreme_of(Extreme::Max)(cx, args)?])
}

/// The extreme along `dim`, or NaN, and the index of its first occurrence, each if it is read.
const fn extreme_with_index(
    of: Extreme,
) -> impl Fn(&Cx, Value, i64, bool) -> Lowered<[Option<Value>; 2]> + Copy {
    move |cx, x, dim, keepdim| {
        let axis = cx.axis(x, dim)?;
        if cx.rank(x) == 0 {
            return Ok([Some(x), Some(cx.scalar(0, DType::I64))]);
        }
        let values = cx.is_used(0).then(|| extreme(cx, of, x, &[axis], keepdim));
        let indices = cx.is_used(1).then(|| arg_extreme(cx, of, x, axis, keepdim));
        Ok([values, indices])
    }
}

/// The index of the first extreme, or of the first NaN, along `dim` or among all elements.
const fn arg(of: Extreme) -> impl Fn(&Cx, Value, Option<i64>, bool) -> Lowered + Copy {
    move |cx, x, dim, keepdim| {
        let Some(dim) = dim else {
            let found = arg_extreme(cx, of, flat(cx, x), 0, false);
            let ones = if keepdim { vec![Expr::int(1); cx.rank(x)] } else { vec![] };
            return Ok(cx.reshape(found, &ones));
        };
        let axis = cx.axis(x, dim)?;
        if cx.rank(x) == 0 {
            return Ok(cx.scalar(0, DType::I64));
        }
        Ok(arg_extreme(cx, of, x, axis, keepdim))
    }
}

/// Whether all elements (`Min`) or any element (`Max`) is not 0. Here, an empty list of dimensions
/// means no dimension. The result of uint8 is uint8.
const fn truth(of: Extreme) -> impl Fn(&Cx, ComplexReduceArgs) -> Lowered + Copy {
    move |cx, args| {
        let x = args.input;
        let axes = match args.dim.as_deref() {
            Some([]) => vec![],
            dims => cx.axes(x.re, dims)?,
        };
        if is_empty_along(cx, x.re, &axes) {
            return Ok(cx.full(&cx.out_shape()?, matches!(of, Extreme::Min), cx.out_dtype()?));
        }
        let truth = x.truth(cx);
        let found = match of {
            Extreme::Max => any_true(cx, truth, &axes, args.keepdim),
            Extreme::Min if may_be_empty_along(cx, truth, &axes) => {
                cx.not(any_true(cx, cx.not(truth), &axes, args.keepdim))
            }
            Extreme::Min => reduce(cx, Reduction::Min, truth, &axes, args.keepdim),
        };
        Ok(cx.cast(found, cx.out_dtype()?))
    }
}

/// How many elements are not 0.
fn count_nonzero(cx: &Cx, x: Complex, dim: Option<Vec<i64>>) -> Lowered {
    let axes = cx.axes(x.re, dim.as_deref())?;
    let ones = cx.cast(x.truth(cx), DType::I64);
    Ok(reduce(cx, Reduction::Sum, ones, &axes, false))
}

/// `log(sum(exp(x)))`: `ReduceLogSumExp`. It is minus infinity for no elements. In ONNX Runtime,
/// the order of the elements decides whether a NaN makes the result NaN.
fn logsumexp(cx: &Cx, x: Value, dims: Vec<i64>, keepdim: bool) -> Lowered {
    let x = cx.to_float(x);
    let axes = cx.axes(x, Some(&dims))?;
    if is_empty_along(cx, x, &axes) {
        return Ok(cx.full(&cx.out_shape()?, f64::NEG_INFINITY, cx.dtype(x)));
    }
    let found = reduce(cx, Reduction::LogSumExp, x, &axes, keepdim);
    if axes.is_empty() || !cx.propagates_nan(x) {
        return Ok(found);
    }
    Ok(cx.select(any_true(cx, cx.is_nan(x), &axes, keepdim), f64::NAN, found))
}

/// [`logsumexp`] of complex numbers: `m + log(sum(exp(x - m)))`, where `m` is the largest real
/// part, or 0 if that is infinite.
fn logsumexp_complex(cx: &Cx, x: Complex, dims: Vec<i64>, keepdim: bool) -> Lowered {
    let axes = cx.axes(x.re, Some(&dims))?;
    let largest = reduce(cx, Reduction::Max, x.re, &axes, true);
    let largest = cx.select(cx.is_inf(largest, Default::default()), 0.0, largest);
    let powers = Complex::new(cx.sub(x.re, largest), x.im).exp(cx);
    let sum = powers.map(|part| reduce(cx, Reduction::Sum, part, &axes, keepdim));
    let shift = if keepdim { largest } else { cx.squeeze(largest, &axes) };
    Ok(cx.pairs(sum.log(cx).shift(cx, shift)))
}

/// The sum over the dimensions that `size` lacks, and over those where it has 1.
fn sum_to_size(cx: &Cx, x: Value, size: Vec<Expr>) -> Lowered {
    let shape = cx.shape(x);
    let lead = shape.len().checked_sub(size.len()).ok_or_else(|| {
        LowerError::unsupported("a sum cannot have more dimensions than what is summed up")
    })?;
    let one = Expr::int(1);
    let to_one = |i: usize| size[i - lead] == one && shape[i] != one;
    let axes: Vec<usize> = (0..shape.len()).filter(|&i| i < lead || to_one(i)).collect();
    let summed = reduce(cx, Reduction::Sum, cx.cast(x, cx.out_dtype()?), &axes, true);
    Ok(cx.squeeze(summed, &(0..lead).collect::<Vec<_>>()))
}

/// The sum of the diagonal, which is every `columns + 1`-th element of the flattened matrix.
fn trace(cx: &Cx, x: Value) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let (rows, columns) = (cx.dim(x, 0), cx.dim(x, 1));
    let (step, length) = (&columns + 1, Expr::min(&rows, &columns));
    let flat = flat(cx, x);
    let diagonal = match step.as_int() {
        Some(step) => cx.slice(flat, 0, &Expr::int(0), &(length * step), step),
        None => {
            let indices = cx.mul(cx.cast(cx.iota(&length), DType::I64), cx.size(&step));
            cx.gather(flat, indices, 0)
        }
    };
    Ok(reduce(cx, Reduction::Sum, diagonal, &[0], false))
}

fn meta_logsumexp(cx: &Cx, args: meta::Reduced) -> Lowered {
    Ok(typed(cx, cx.float_type(cx.dtype(args.input)), &args.sizes(cx)?))
}

/// The type is bool, but uint8 for uint8.
fn meta_truth(cx: &Cx, args: meta::Reduced) -> Lowered {
    let dtype = if cx.dtype(args.input) == DType::U8 { DType::U8 } else { DType::Bool };
    Ok(typed(cx, dtype, &args.sizes(cx)?))
}

fn meta_trace(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, meta::sum_type(cx, x), &[]))
}

fn meta_sum_to_size(cx: &Cx, x: Value, size: Vec<Expr>) -> Lowered {
    Ok(typed(cx, meta::sum_type(cx, x), &size))
}

checks! {
    // NaN in one part of a mean spreads to the other.
    "aten.mean.dim(x: c64[3, 4], [1]) -> c64[3]" => "
    val_0 = Gather <axis: int = 2> (x, 0)
    val_1 = Gather <axis: int = 2> (x, 1)
    val_2 = ReduceMean <keepdims: int = 0> (x, [1])
    val_3 = Gather <axis: int = 1> (val_2, [1, 0])
    val_4 = Mul (val_3, [-0.0, 0.0])
    mean = Add (val_2, val_4)
    ";
    "aten.mean.dim(x: c64[3, 4], [1]) -> c64[3]", assume_finite => "
    val_0 = Gather <axis: int = 2> (x, 0)
    val_1 = Gather <axis: int = 2> (x, 1)
    mean = ReduceMean <keepdims: int = 0> (x, [1])
    ";

    // Bools are summed as int64.
    "aten.sum(x: b8[s0, 3]) -> i64[]" => "
    val_0 = Cast <to: int = 7> (x)
    sum = ReduceSum <keepdims: int = 0> (val_0)
    ";

    // An empty list of dimensions is none for all.
    "aten.all.dims(x: f32[s0, 3], []) -> b8[s0, 3]" => "all = Cast <to: int = 9> (x)";

    // Extremes keep NaN.
    "aten.amax(x: f32[s0, 3], [1]) -> f32[s0]" => "
    val_0 = ReduceMax <keepdims: int = 0> (x, [1])
    val_1 = IsNaN (x)
    val_2 = ReduceMax <keepdims: int = 0> (val_1, [1])
    amax = Where (val_2, NaN, val_0)
    ";

    // Bools are ordered as bytes.
    "aten.argmin(x: b8[s0, 3], 1, True) -> i64[s0, 1]" => "
    val_0 = Cast <to: int = 2> (x)
    argmin = ArgMin <axis: int = 1> (val_0)
    ";

    // Nothing may be left.
    "aten.mean(x: f32[u0]) -> f32[]" => "
    val_0 = ReduceSum <keepdims: int = 0> (x)
    val_1 = Shape <start: int = 0, end: int = 1> (x)
    val_2 = Reshape (val_1, [])
    val_3 = Cast <to: int = 1> (val_2)
    mean = Div (val_0, val_3)
    ";
    "aten.all(x: b8[u0]) -> b8[]" => "
    val_0 = Not (x)
    val_1 = Cast <to: int = 7> (val_0)
    val_2 = ReduceSum <keepdims: int = 0> (val_1)
    val_3 = Greater (val_2, 0)
    all = Not (val_3)
    ";
    "aten.prod.dim_int(x: i64[4, 3], 1) -> i64[4]" => "
    val_0, val_1, val_2 = Split <axis: int = 1> (x, [1, 1, 1])
    val_3 = Mul (val_0, val_1)
    val_4 = Mul (val_3, val_2)
    prod = Squeeze (val_4, [1])
    ";

    // Complex numbers whose count is dynamic.
    "aten.prod.dim_int(x: c64[s0, 2], 0) -> c64[2]" => "
    val_0 = Gather <axis: int = 2> (x, 0)
    val_1 = Gather <axis: int = 2> (x, 1)
    val_2 = Transpose <perm: ints = [1, 0]> (val_0)
    val_3 = Transpose <perm: ints = [1, 0]> (val_1)
    val_4 = Expand (1.0, [2])
    val_5 = Expand (0.0, [2])
    val_6 = Shape <start: int = 0, end: int = 1> (x)
    val_7 = Reshape (val_6, [])
    val_8, val_9 = Loop <body: graph = body (int64 val_10, bool val_11, float[2] val_12, float[2] val_13) => (bool val_14, float[2] val_15, float[2] val_16)
    {
      val_17 = Unsqueeze (val_10, [0])
      val_18 = Gather <axis: int = 1> (val_2, val_17)
      val_19 = Squeeze (val_18, [1])
      val_20 = Gather <axis: int = 1> (val_3, val_17)
      val_21 = Squeeze (val_20, [1])
      val_22 = Mul (val_12, val_19)
      val_23 = Mul (val_13, val_21)
      val_15 = Sub (val_22, val_23)
      val_24 = Mul (val_12, val_21)
      val_25 = Mul (val_13, val_19)
      val_16 = Add (val_24, val_25)
      val_14 = Identity (true)
    }> (val_7, true, val_4, val_5)
    val_26 = Unsqueeze (val_8, [1])
    val_27 = Unsqueeze (val_9, [1])
    prod = Concat <axis: int = 1> (val_26, val_27)
    ";
}
