//! Variances and standard deviations, with their means. The variance of complex numbers is the sum
//! of both parts' variances.

use crate::math::reduce::{is_empty_along, may_be_empty_along, mean_of, reduce, size_of};
use crate::meta;
use crate::{AtenOp, Complex, Cx, Lowered, arguments, checks, op};
use pt2onnx_ir::{Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::std, std, meta = meta::norm, keepdim = false),
    op!(aten::std_correction, std, meta = meta::norm),
    op!(aten::std_dim, std, meta = meta::norm),
    op!(aten::std_mean, std_mean, meta = meta_deviation_and_mean, keepdim = false),
    op!(aten::std_mean_correction, std_mean, meta = meta_deviation_and_mean),
    op!(aten::std_mean_dim, std_mean, meta = meta_deviation_and_mean),
    op!(aten::var, var, meta = meta::norm, keepdim = false),
    op!(aten::var_correction, var, meta = meta::norm),
    op!(aten::var_dim, var, meta = meta::norm),
    op!(aten::var_mean, var_mean, meta = meta_deviation_and_mean, keepdim = false),
    op!(aten::var_mean_correction, var_mean, meta = meta_deviation_and_mean),
    op!(aten::var_mean_dim, var_mean, meta = meta_deviation_and_mean),
];

arguments! {
    /// Arguments of variances. Without `dim`, they are over all dimensions. The divisor is the
    /// number of elements minus the correction.
    struct VarArgs {
        input: Complex,
        dim: Option<Vec<i64>>,
        unbiased: Option<bool>,
        correction: Option<f64>,
        keepdim: bool,
    }
}

impl VarArgs {
    /// The correction. `unbiased` means 1 if true, 0 if false. The default is 1.
    fn correction(&self) -> f64 {
        self.correction.unwrap_or_else(|| f64::from(self.unbiased.unwrap_or(true)))
    }

    /// The dimensions to reduce.
    fn axes(&self, cx: &Cx) -> Lowered<Vec<usize>> {
        cx.axes(self.input.re, self.dim.as_deref())
    }
}

/// `sum(|x - mean|^2) / max(0, n - correction)`, and the mean with all dimensions kept.
fn variance(cx: &Cx, args: &VarArgs, axes: &[usize]) -> (Value, Complex) {
    let (x, by, keepdim) = (args.input, args.correction(), args.keepdim);
    let dtype = cx.dtype(x.re);
    let n = size_of(cx, x.re, axes);
    let mean = |part: Value| mean_of(cx, part, axes, true);
    let means = x.map(mean);
    let wide = matches!(dtype, DType::F32 | DType::F64);
    if by == 0.0 && wide && x.im.is_none() && !axes.is_empty() {
        let off = cx.sub(x.re, means.re);
        return (mean_of(cx, cx.mul(off, off), axes, keepdim), means);
    }
    let freedom = match n.as_int() {
        Some(n) => cx.scalar((n as f64 - by).max(0.0), dtype),
        None => {
            let enough = cx.constraints().prove_ge(&n, &Expr::int(by.ceil() as i64));
            let rest = cx.sub(cx.cast(cx.size(&n), dtype), by);
            if enough { rest } else { cx.maximum(rest, 0.0) }
        }
    };
    let squares = |part: Value, mean: Value| {
        let off = cx.sub(part, mean);
        match axes {
            [] => cx.mul(off, off),
            _ => reduce(cx, Reduction::SumSquare, off, axes, keepdim),
        }
    };
    let re = squares(x.re, means.re);
    let sum = match x.im.zip(means.im) {
        Some((im, mean)) => cx.add(re, squares(im, mean)),
        None => re,
    };
    (cx.div(sum, freedom), means)
}

/// The variance. It is NaN for no elements.
fn var(cx: &Cx, args: VarArgs) -> Lowered {
    let axes = args.axes(cx)?;
    if is_empty_along(cx, args.input.re, &axes) {
        return Ok(cx.full(&cx.out_shape()?, f64::NAN, cx.out_dtype()?));
    }
    Ok(variance(cx, &args, &axes).0)
}

/// The standard deviation: the root of the variance.
fn std(cx: &Cx, args: VarArgs) -> Lowered {
    Ok(cx.sqrt(var(cx, args)?))
}

/// The variance and the mean. They are NaN for no elements.
fn var_mean(cx: &Cx, args: VarArgs) -> Lowered<[Value; 2]> {
    let axes = args.axes(cx)?;
    if is_empty_along(cx, args.input.re, &axes) {
        let nothing = || -> Lowered { Ok(cx.full(&cx.out_shape()?, f64::NAN, cx.out_dtype()?)) };
        let mean = args.input.try_map(|_| nothing())?;
        return Ok([nothing()?, mean.value(cx)]);
    }
    let (var, means) = variance(cx, &args, &axes);
    let part = |x: Value, mean: Value| {
        let mean = if cx.is_used(1) { updated_mean(cx, x, mean, &axes) } else { mean };
        if args.keepdim { mean } else { cx.squeeze(mean, &axes) }
    };
    let im = args.input.im.zip(means.im).map(|(x, mean)| part(x, mean));
    let mean = Complex::new(part(args.input.re, means.re), im);
    Ok([var, mean.value(cx)])
}

/// `mean` of `x` as PyTorch computes it next to a variance: it is updated with each element's
/// distance to it, so that an infinity makes it NaN, unless it is the last element.
fn updated_mean(cx: &Cx, x: Value, mean: Value, axes: &[usize]) -> Value {
    if !cx.propagates_nan(x) || size_of(cx, x, axes) == Expr::int(1) {
        return mean;
    }
    let infinite = cx.cast(cx.is_inf(x, attrs::IsInf::default()), DType::I64);
    let along: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
    let [starts, ends] = [-1, i64::MAX].map(|end| cx.ints(&vec![end; axes.len()]));
    let last = cx.slice_op(infinite, starts, ends, cx.ints(&along), None);
    let last = if may_be_empty_along(cx, x, axes) {
        reduce(cx, Reduction::Sum, last, axes, true)
    } else {
        let one = |a: usize| axes.contains(&a).then(|| Expr::int(1));
        let sizes = cx.shape(x).into_iter().enumerate().map(|(a, n)| one(a).unwrap_or(n));
        cx.set_type(last, Type::tensor(DType::I64, sizes.collect::<Vec<_>>()));
        last
    };
    let only = cx.equal(reduce(cx, Reduction::Sum, infinite, axes, true), last);
    cx.select(only, mean, f64::NAN)
}

/// The standard deviation and the mean.
fn std_mean(cx: &Cx, args: VarArgs) -> Lowered<[Value; 2]> {
    let [var, mean] = var_mean(cx, args)?;
    Ok([cx.sqrt(var), mean])
}

fn meta_deviation_and_mean(cx: &Cx, args: meta::Reduced) -> Lowered<[Value; 2]> {
    Ok([meta::norm(cx, args.clone())?, meta::mean(cx, args)?])
}

checks! {
    // The correction never makes the divisor negative.
    "aten.var.correction(x: f32[s0, 3], [0], correction = 2) -> f32[3]" => "
    val_0 = ReduceSum <keepdims: int = 1> (x, [0])
    val_1 = Shape <start: int = 0, end: int = 1> (x)
    val_2 = Reshape (val_1, [])
    val_3 = Cast <to: int = 1> (val_2)
    val_4 = Div (val_0, val_3)
    val_5 = Cast <to: int = 1> (val_2)
    val_6 = Sub (val_5, 2.0)
    val_7 = Max (val_6, 0.0)
    val_8 = Sub (x, val_4)
    val_9 = ReduceSumSquare <keepdims: int = 0> (val_8, [0])
    var = Div (val_9, val_7)
    ";

    // An infinity that is not the last element makes the mean NaN.
    "aten.var_mean.correction(x: f32[s0, 3], [1]) -> (f32[s0], f32[s0])" => "
    val_0 = ReduceMean <keepdims: int = 1> (x, [1])
    val_1 = Sub (x, val_0)
    val_2 = ReduceSumSquare <keepdims: int = 0> (val_1, [1])
    var_mean_0 = Div (val_2, 2.0)
    val_3 = IsInf (x)
    val_4 = Cast <to: int = 7> (val_3)
    val_5 = Slice (val_4, [-1], [9223372036854775807], [1])
    val_6 = ReduceSum <keepdims: int = 1> (val_4, [1])
    val_7 = Equal (val_6, val_5)
    val_8 = Where (val_7, val_0, NaN)
    var_mean_1 = Squeeze (val_8, [1])
    ";

    // A mean that is assumed finite.
    "aten.var_mean.correction(x: f32[s0, 3], [1]) -> (f32[s0], f32[s0])", assume_finite => "
    val_0 = ReduceMean <keepdims: int = 1> (x, [1])
    val_1 = Sub (x, val_0)
    val_2 = ReduceSumSquare <keepdims: int = 0> (val_1, [1])
    var_mean_0 = Div (val_2, 2.0)
    var_mean_1 = Squeeze (val_0, [1])
    ";

    // Without correction, it is a mean.
    "aten.std(x: f32[4], False) -> f32[]" => "
    val_0 = ReduceMean <keepdims: int = 1> (x)
    val_1 = Sub (x, val_0)
    val_2 = Mul (val_1, val_1)
    val_3 = ReduceMean <keepdims: int = 0> (val_2)
    std = Sqrt (val_3)
    ";

    // Means of complex numbers of dynamic sizes.
    "aten.std_mean.correction(x: c64[s0 + 1], correction = 0, keepdim = True) -> (f32[1], c64[1])" => "
    val_0 = Gather <axis: int = 1> (x, 0)
    val_1 = Gather <axis: int = 1> (x, 1)
    val_2 = ReduceSum <keepdims: int = 1> (val_0)
    val_3 = Shape <start: int = 0, end: int = 1> (x)
    val_4 = Reshape (val_3, [])
    val_5 = Cast <to: int = 1> (val_4)
    val_6 = Div (val_2, val_5)
    val_7 = ReduceSum <keepdims: int = 1> (val_1)
    val_8 = Cast <to: int = 1> (val_4)
    val_9 = Div (val_7, val_8)
    val_10 = Cast <to: int = 1> (val_4)
    val_11 = Sub (val_0, val_6)
    val_12 = ReduceSumSquare <keepdims: int = 1> (val_11)
    val_13 = Sub (val_1, val_9)
    val_14 = ReduceSumSquare <keepdims: int = 1> (val_13)
    val_15 = Add (val_12, val_14)
    val_16 = Div (val_15, val_10)
    val_17 = IsInf (val_1)
    val_18 = Cast <to: int = 7> (val_17)
    val_19 = Slice (val_18, [-1], [9223372036854775807], [0])
    val_20 = ReduceSum <keepdims: int = 1> (val_19)
    val_21 = ReduceSum <keepdims: int = 1> (val_18)
    val_22 = Equal (val_21, val_20)
    val_23 = Where (val_22, val_9, NaN)
    val_24 = IsInf (val_0)
    val_25 = Cast <to: int = 7> (val_24)
    val_26 = Slice (val_25, [-1], [9223372036854775807], [0])
    val_27 = ReduceSum <keepdims: int = 1> (val_26)
    val_28 = ReduceSum <keepdims: int = 1> (val_25)
    val_29 = Equal (val_28, val_27)
    val_30 = Where (val_29, val_6, NaN)
    val_31 = Unsqueeze (val_30, [1])
    val_32 = Unsqueeze (val_23, [1])
    std_mean_1 = Concat <axis: int = 1> (val_31, val_32)
    std_mean_0 = Sqrt (val_16)
    ";
}
