//! Random numbers. ONNX's generators have no seed that would give PyTorch's numbers: only distributions are the same.

use super::common_reduce::top_k;
use crate::{AtenOp, Cx, Lowered, TensorOrScalar, complex::Mode, registry::aten};
use pt2onnx_ir::{Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
        |cx: &Cx, p: Value| bernoulli(cx, p, p)
    ),
    aten!(
        "aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
        bernoulli
    ),
    aten!(
        "aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
        bernoulli_p
    ),
    aten!(
        "aten::cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor",
        |cx: &Cx, x: Value, median: f64, sigma: f64| {
            shaped(cx, x, |u| {
                let angle = cx.mul(cx.sub(u, 0.5), std::f64::consts::PI);
                cx.add(cx.mul(cx.tan(angle), sigma), median)
            })
        }
    ),
    aten!(
        "aten::exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
        |cx: &Cx, x: Value, lambda: f64| {
            shaped(cx, x, |u| cx.div(cx.log(one_minus(cx, u)), -lambda))
        }
    ),
    aten!(
        "aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
        |cx: &Cx, x: Value, p: f64| {
            shaped(cx, x, |u| {
                let tries = cx.ceil(cx.div(cx.log(one_minus(cx, u)), (1.0 - p).ln()));
                cx.maximum(tries, 1.0)
            })
        }
    ),
    aten!(
        "aten::log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor",
        |cx: &Cx, x: Value, mean: f64, std: f64| -> Lowered {
            let dtype = cx.dtype(x);
            Ok(cx.exp(scaled(cx, normal(cx, &cx.shape(x), dtype), mean, std)))
        }
    ),
    aten!(
        "aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
        multinomial
    ),
    aten!(
        "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
        |cx: &Cx, mean: Value, std: Value| { normal_of(cx, mean.into(), std.into()) }
    ),
    aten!(
        "aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
        |cx: &Cx, mean: Value, std: Scalar| { normal_of(cx, mean.into(), std.into()) }
    ),
    aten!(
        "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
        |cx: &Cx, mean: Scalar, std: Value| { normal_of(cx, mean.into(), std.into()) }
    ),
    aten!(
        "aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, mean: f64, std: f64, size: Vec<Expr>, _: Option<DType>| -> Lowered {
            Ok(scaled(cx, normal(cx, &size, cx.out_dtype()?), mean, std))
        }
    ),
    aten!(
        "aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
        |cx: &Cx, x: Value, mean: f64, std: f64| -> Lowered {
            Ok(scaled(cx, normal(cx, &cx.shape(x), cx.out_dtype()?), mean, std))
        },
        parts
    ),
    aten!(
        "aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, size: Vec<Expr>, _: Option<DType>| -> Lowered {
            Ok(uniform(cx, &size, cx.out_dtype()?))
        },
        parts
    ),
    aten!(
        "aten::rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, size: Vec<Expr>, _: Option<DType>| -> Lowered {
            Ok(uniform(cx, &size, cx.out_dtype()?))
        },
        parts
    ),
    aten!(
        "aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |cx: &Cx, x: Value, _: Option<DType>| -> Lowered {
            generate_like(cx, "RandomUniform", "RandomUniformLike", x)
        },
        parts
    ),
    aten!(
        "aten::rand_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |cx: &Cx, x: Value, _: Option<DType>| -> Lowered {
            generate_like(cx, "RandomUniform", "RandomUniformLike", x)
        },
        parts
    ),
    aten!(
        "aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, high: Expr, size: Vec<Expr>, _: Option<DType>| integers(
            cx,
            &Expr::int(0),
            &high,
            &size
        )
    ),
    aten!(
        "aten::randint.generator(SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, high: Expr, size: Vec<Expr>, _: Option<DType>| integers(
            cx,
            &Expr::int(0),
            &high,
            &size
        )
    ),
    aten!(
        "aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, low: Expr, high: Expr, size: Vec<Expr>, _: Option<DType>| integers(
            cx, &low, &high, &size
        )
    ),
    aten!(
        "aten::randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, low: Expr, high: Expr, size: Vec<Expr>, _: Option<DType>| integers(
            cx, &low, &high, &size
        )
    ),
    aten!(
        "aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |cx: &Cx, x: Value, high: Expr, _: Option<DType>| integers(
            cx,
            &Expr::int(0),
            &high,
            &cx.shape(x)
        )
    ),
    aten!(
        "aten::randint_like.generator(Tensor self, SymInt high, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |cx: &Cx, x: Value, high: Expr, _: Option<DType>| integers(
            cx,
            &Expr::int(0),
            &high,
            &cx.shape(x)
        )
    ),
    aten!(
        "aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |cx: &Cx, x: Value, low: Expr, high: Expr, _: Option<DType>| integers(
            cx,
            &low,
            &high,
            &cx.shape(x)
        )
    ),
    aten!(
        "aten::randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |cx: &Cx, x: Value, low: Expr, high: Expr, _: Option<DType>| integers(
            cx,
            &low,
            &high,
            &cx.shape(x)
        )
    ),
    aten!(
        "aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, size: Vec<Expr>, _: Option<DType>| -> Lowered {
            Ok(normal(cx, &size, cx.out_dtype()?))
        },
        parts
    ),
    aten!(
        "aten::randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, size: Vec<Expr>, _: Option<DType>| -> Lowered {
            Ok(normal(cx, &size, cx.out_dtype()?))
        },
        parts
    ),
    aten!(
        "aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |cx: &Cx, x: Value, _: Option<DType>| -> Lowered { normal_like(cx, x) },
        parts
    ),
    aten!(
        "aten::randn_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |cx: &Cx, x: Value, _: Option<DType>| -> Lowered { normal_like(cx, x) },
        parts
    ),
    aten!(
        "aten::random(Tensor self, *, Generator? generator=None) -> Tensor",
        |cx: &Cx, x: Value| {
            // Up to what the type holds exactly.
            let most: i64 = match cx.dtype(x) {
                DType::Bool => 2,
                DType::F16 => (1 << 11) + 1,
                DType::BF16 => (1 << 8) + 1,
                DType::F32 => (1 << 24) + 1,
                DType::F64 => (1 << 53) + 1,
                DType::I8 => 1 << 7,
                DType::U8 => 1 << 8,
                DType::I16 => 1 << 15,
                DType::I32 => 1 << 31,
                _ => i64::MAX,
            };
            integers(cx, &Expr::int(0), &Expr::int(most), &cx.shape(x))
        }
    ),
    aten!(
        "aten::random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor",
        |cx: &Cx, x: Value, high: i64| integers(cx, &Expr::int(0), &Expr::int(high), &cx.shape(x))
    ),
    aten!(
        "aten::randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        randperm
    ),
    aten!(
        "aten::randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        randperm
    ),
    aten!(
        "aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
        |cx: &Cx, x: Value, from: f64, to: f64| -> Lowered {
            Ok(scaled(cx, uniform(cx, &cx.shape(x), cx.dtype(x)), from, to - from))
        },
        parts
    ),
];

/// ONNX draws float16, float32 and float64 only.
fn drawn(dtype: DType) -> DType {
    match dtype {
        DType::F64 | DType::F16 => dtype,
        _ => DType::F32,
    }
}

/// One of the two generators over `dims`: sizes that are known are an attribute, others are those of a tensor of zeros.
fn generate(
    cx: &Cx,
    fixed: &'static str,
    like: &'static str,
    dims: &[Expr],
    dtype: DType,
) -> Value {
    let wide = drawn(dtype);
    let known: Option<Vec<i64>> = dims.iter().map(Expr::as_int).collect();
    let value = match known {
        Some(sizes) => {
            let given = [("shape".into(), sizes.into()), onnx_type(wide)];
            cx.emit1(fixed, &[], given.into_iter().collect())
        }
        None => {
            let zeros = cx.full(dims, 0, wide);
            cx.emit1(like, &[Some(zeros)], Default::default())
        }
    };
    cx.set_type(value, Type::tensor(wide, dims));
    cx.cast(value, dtype)
}

/// The attribute `dtype` for a type that is [`drawn`].
fn onnx_type(dtype: DType) -> (std::borrow::Cow<'static, str>, pt2onnx_ir::Attribute) {
    let number = match dtype {
        DType::F64 => 11i64,
        DType::F16 => 10,
        _ => 1,
    };
    ("dtype".into(), number.into())
}

/// [`uniform`] or [`normal`] numbers of `x`'s shape in the recorded type.
fn generate_like(cx: &Cx, fixed: &'static str, like: &'static str, x: Value) -> Lowered {
    let dtype = cx.out_dtype()?;
    let dims = cx.shape(x);
    if dims.iter().all(Expr::is_static) || !cx.dtype(x).is_float() {
        return Ok(generate(cx, fixed, like, &dims, dtype));
    }
    let wide = drawn(dtype);
    let value = cx.emit1(like, &[Some(x)], [onnx_type(wide)].into_iter().collect());
    cx.set_type(value, Type::tensor(wide, dims));
    Ok(cx.cast(value, dtype))
}

/// From 0 to 1, 1 excluded.
fn uniform(cx: &Cx, dims: &[Expr], dtype: DType) -> Value {
    generate(cx, "RandomUniform", "RandomUniformLike", dims, dtype)
}

/// The standard normal distribution. Of complex numbers each part has half of the variance.
fn normal(cx: &Cx, dims: &[Expr], dtype: DType) -> Value {
    let drawn = generate(cx, "RandomNormal", "RandomNormalLike", dims, dtype);
    match cx.mode() {
        Mode::Part(_) => cx.mul(drawn, std::f64::consts::FRAC_1_SQRT_2),
        _ => drawn,
    }
}

/// [`normal`] numbers of `x`'s shape.
fn normal_like(cx: &Cx, x: Value) -> Lowered {
    match cx.mode() {
        Mode::Real => generate_like(cx, "RandomNormal", "RandomNormalLike", x),
        _ => Ok(normal(cx, &cx.shape(x), cx.out_dtype()?)),
    }
}

fn scaled(cx: &Cx, x: Value, shift: f64, scale: f64) -> Value {
    cx.add(cx.mul(x, scale), shift)
}

/// From uniform numbers of `x`'s shape, float32 at least, to `x`'s type.
fn shaped(cx: &Cx, x: Value, from: impl FnOnce(Value) -> Value) -> Lowered {
    let dtype = cx.out_dtype()?;
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    Ok(cx.cast(from(uniform(cx, &cx.shape(x), wide)), dtype))
}

fn one_minus(cx: &Cx, u: Value) -> Value {
    cx.sub(cx.scalar(1, cx.dtype(u)), u)
}

/// Ones with the probabilities `p`, of `x`'s type. Not by `Bernoulli`: the function that ONNX defines it by, which runtimes
/// without a kernel use, gives ones where the uniform numbers are larger than `p` (onnx 1.23), zeros and ones exchanged.
fn bernoulli(cx: &Cx, x: Value, p: Value) -> Lowered {
    let p = cx.to_float(p);
    let wide = cx.cast(p, drawn(cx.dtype(p)));
    let u = uniform(cx, &cx.shape(x), cx.dtype(wide));
    Ok(cx.cast(cx.less(u, wide), cx.dtype(x)))
}

fn bernoulli_p(cx: &Cx, x: Value, p: f64) -> Lowered {
    bernoulli(cx, x, cx.scalar(p, DType::F32))
}

fn normal_of(cx: &Cx, mean: TensorOrScalar, std: TensorOrScalar) -> Lowered {
    let dtype = cx.out_dtype()?;
    let noise = normal(cx, &cx.out_shape()?, dtype);
    let (mean, std) = (cx.as_tensor(&mean, dtype), cx.as_tensor(&std, dtype));
    Ok(cx.add(cx.mul(noise, std), mean))
}

/// `low + floor(u * (high - low))`, in doubles.
fn integers(cx: &Cx, low: &Expr, high: &Expr, dims: &[Expr]) -> Lowered {
    let span = cx.cast(cx.size(&(high - low)), DType::F64);
    let steps = cx.cast(cx.mul(uniform(cx, dims, DType::F64), span), DType::I64);
    let found = match low.as_int() {
        Some(0) => steps,
        _ => cx.add(steps, cx.size(low)),
    };
    Ok(cx.cast(found, cx.out_dtype()?))
}

/// The order of random numbers.
fn randperm(cx: &Cx, n: Expr, _: Option<DType>) -> Lowered {
    let keys = uniform(cx, std::slice::from_ref(&n), DType::F64);
    let [_, order] = top_k(cx, keys, &n, 0, true, true);
    Ok(cx.cast(order, cx.out_dtype()?))
}

/// With replacement: where uniform numbers fall among the running sums of the weights. Without: the largest of the
/// logarithms of the weights with Gumbel noise (Efraimidis and Spirakis 2006).
fn multinomial(cx: &Cx, weights: Value, n: Expr, replacement: bool) -> Lowered {
    let rank = cx.rank(weights);
    if let (true, 2, Some(sample_size)) = (replacement, rank, n.as_int()) {
        let options = attrs::Multinomial { dtype: 7, sample_size, ..Default::default() };
        let drawn = cx.multinomial(cx.log(cx.cast(weights, DType::F32)), options);
        cx.set_type(drawn, Type::tensor(DType::I64, [cx.dim(weights, 0), n]));
        return Ok(drawn);
    }
    let last = rank - 1;
    let weights = match cx.dtype(weights) {
        DType::F64 => weights,
        _ => cx.cast(weights, DType::F32),
    };
    let dtype = cx.dtype(weights);
    if !replacement {
        let u = one_minus(cx, uniform(cx, &cx.shape(weights), dtype));
        let keys = cx.div(cx.log(u), weights);
        let [_, indices] = top_k(cx, keys, &n, last, true, true);
        return Ok(indices);
    }
    let sums = cx.cum_sum(weights, cx.scalar(last as i64, DType::I64), Default::default());
    let all = cx.slice(sums, last, &(cx.dim(sums, -1) - 1), &cx.dim(sums, -1), 1);
    let mut dims = cx.shape(weights);
    dims[last] = n;
    let drawn = cx.mul(uniform(cx, &dims, dtype), all);
    let passed = cx.less_or_equal(cx.unsqueeze(sums, &[last]), cx.unsqueeze(drawn, &[rank]));
    Ok(cx.reduce(Reduction::Sum, cx.cast(passed, DType::I64), &[rank], false))
}
