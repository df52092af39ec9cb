//! Random numbers. They have PyTorch's distributions, not PyTorch's values: no seed makes ONNX's
//! generators give those.

use crate::math::reduce::running_sums;
use crate::math::sort::{Order, numbers_first};
use crate::meta::{self, broadcast, typed};
use crate::{
    AtenOp, Cx, LowerError, Lowered, TensorOrScalar, args::Ignored, arguments, checks, cx::Mode, op,
};
use pt2onnx_ir::{Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::bernoulli, bernoulli),
    op!(aten::bernoulli_Tensor, bernoulli),
    op!(aten::bernoulli_p, bernoulli),
    op!(aten::cauchy, cauchy),
    op!(aten::exponential, exponential),
    op!(aten::geometric, geometric),
    op!(aten::log_normal, log_normal),
    op!(aten::multinomial, multinomial),
    op!(aten::normal_Tensor_Tensor, normal_of, meta = meta_normal),
    op!(aten::normal_Tensor_float, normal_of, meta = meta_normal),
    op!(aten::normal_float_Tensor, normal_of, meta = meta_normal),
    op!(aten::normal_float_float, normal_of_size, meta = meta::made),
    op!(aten::normal_functional, normal_functional, parts),
    op!(aten::rand, rand, parts, meta = meta::made),
    op!(aten::rand_generator, rand, parts, meta = meta::made),
    op!(aten::rand_like, rand_like, parts, meta = meta::made),
    op!(aten::rand_like_generator, rand_like, parts, meta = meta::made),
    op!(aten::randint, randint, meta = meta_made_integers, low = 0),
    op!(aten::randint_generator, randint, meta = meta_made_integers, low = 0),
    op!(aten::randint_low, randint, meta = meta_made_integers),
    op!(aten::randint_low_generator, randint, meta = meta_made_integers),
    op!(aten::randint_like, randint, meta = meta::made, low = 0),
    op!(aten::randint_like_generator, randint, meta = meta::made, low = 0),
    op!(aten::randint_like_low_dtype, randint, meta = meta::made),
    op!(aten::randint_like_low_generator_dtype, randint, meta = meta::made),
    op!(aten::randn, randn, parts, meta = meta::made),
    op!(aten::randn_generator, randn, parts, meta = meta::made),
    op!(aten::randn_like, randn_like, parts, meta = meta::made),
    op!(aten::randn_like_generator, randn_like, parts, meta = meta::made),
    op!(aten::random, random, meta = meta::same),
    op!(aten::random_to, random_to, meta = meta::same),
    op!(aten::randperm, randperm, meta = meta_permutation),
    op!(aten::randperm_generator, randperm, meta = meta_permutation),
    op!(aten::uniform, uniform, parts),
];

arguments! {
    /// Arguments of random integers: sizes, or a tensor whose sizes they get.
    struct RandintArgs {
        input: Option<Value>,
        low: Expr,
        high: Expr,
        size: Option<Vec<Expr>>,
        dtype: Ignored,
    }
}

/// Integers from `low` to `high`, `high` excluded.
fn randint(cx: &Cx, args: RandintArgs) -> Lowered {
    let like = args.input.map(|x| cx.shape(x).to_vec());
    let size = args.size.or(like).unwrap_or_default();
    integers(cx, &args.low, &args.high, &size)
}

/// Integers from 0 to the largest one up to which the type of `x` is exact.
fn random(cx: &Cx, x: Value) -> Lowered {
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
    random_to(cx, x, most)
}

/// Integers from 0 to `high`, `high` excluded, in the shape of `x`.
fn random_to(cx: &Cx, x: Value, high: i64) -> Lowered {
    integers(cx, &Expr::int(0), &Expr::int(high), &cx.shape(x))
}

/// Uniform numbers from 0 to 1, 1 excluded.
fn rand(cx: &Cx, size: Vec<Expr>, _: Ignored) -> Lowered {
    Ok(uniform_of(cx, &size, cx.out_dtype()?))
}

/// [`rand`] in the shape of `x`.
fn rand_like(cx: &Cx, x: Value, _: Ignored) -> Lowered {
    generate_like(cx, "RandomUniform", "RandomUniformLike", x)
}

/// Numbers of the standard normal distribution.
fn randn(cx: &Cx, size: Vec<Expr>, _: Ignored) -> Lowered {
    Ok(normal_numbers(cx, &size, cx.out_dtype()?))
}

/// [`randn`] in the shape of `x`.
fn randn_like(cx: &Cx, x: Value, _: Ignored) -> Lowered {
    match cx.mode() {
        Mode::Real => generate_like(cx, "RandomNormal", "RandomNormalLike", x),
        _ => Ok(normal_numbers(cx, &cx.shape(x), cx.out_dtype()?)),
    }
}

/// Uniform numbers from `from` to `to`, in the shape of `x`.
fn uniform(cx: &Cx, x: Value, from: f64, to: f64) -> Lowered {
    Ok(scaled(cx, uniform_of(cx, &cx.shape(x), cx.dtype(x)), from, to - from))
}

/// Normal numbers in the shape of `x`.
fn normal_functional(cx: &Cx, x: Value, mean: f64, std: f64) -> Lowered {
    Ok(scaled(cx, normal_numbers(cx, &cx.shape(x), cx.out_dtype()?), mean, std))
}

/// Normal numbers with that mean and standard deviation.
fn normal_of_size(cx: &Cx, mean: f64, std: f64, size: Vec<Expr>, _: Ignored) -> Lowered {
    Ok(scaled(cx, normal_numbers(cx, &size, cx.out_dtype()?), mean, std))
}

/// `e^(mean + std * n)` of normal `n`.
fn log_normal(cx: &Cx, x: Value, mean: f64, std: f64) -> Lowered {
    let dtype = cx.dtype(x);
    Ok(cx.exp(scaled(cx, normal_numbers(cx, &cx.shape(x), dtype), mean, std)))
}

/// Numbers of the Cauchy distribution, `median + sigma tan(pi (u - 1/2))` of uniform `u`.
fn cauchy(cx: &Cx, x: Value, median: f64, sigma: f64) -> Lowered {
    shaped(cx, x, |u| {
        let angle = cx.mul(cx.sub(u, 0.5), std::f64::consts::PI);
        cx.add(cx.mul(cx.tan(angle), sigma), median)
    })
}

/// Numbers of the exponential distribution, `-log(1 - u) / lambda` of uniform `u`.
fn exponential(cx: &Cx, x: Value, lambda: f64) -> Lowered {
    shaped(cx, x, |u| cx.div(cx.log(one_minus(cx, u)), -lambda))
}

/// Numbers of the geometric distribution, `ceil(log(1 - u) / log(1 - p))` of uniform `u`, 1 at
/// least.
fn geometric(cx: &Cx, x: Value, p: f64) -> Lowered {
    shaped(cx, x, |u| {
        let tries = cx.ceil(cx.div(cx.log(one_minus(cx, u)), (1.0 - p).ln()));
        cx.maximum(tries, 1.0)
    })
}

/// The type that random numbers for `dtype` are drawn in: ONNX draws float16, float32 and float64.
fn drawn(dtype: DType) -> DType {
    match dtype {
        DType::F64 | DType::F16 => dtype,
        _ => DType::F32,
    }
}

/// Random numbers of sizes `dims`: by the operator `fixed`, which has the sizes as an attribute, if
/// all are known, otherwise by `like`, which takes a tensor of zeros of these sizes.
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

/// The attribute `dtype` of a generator, for a type that [`drawn`] gives.
fn onnx_type(dtype: DType) -> (std::borrow::Cow<'static, str>, pt2onnx_ir::Attribute) {
    let number = match dtype {
        DType::F64 => 11i64,
        DType::F16 => 10,
        _ => 1,
    };
    ("dtype".into(), number.into())
}

/// Random numbers with the sizes of `x`, in the recorded type.
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

/// Uniform numbers from 0 to 1, 1 excluded, of sizes `dims`.
fn uniform_of(cx: &Cx, dims: &[Expr], dtype: DType) -> Value {
    generate(cx, "RandomUniform", "RandomUniformLike", dims, dtype)
}

/// Standard normal numbers of sizes `dims`. Each part of a complex number has half of the variance.
fn normal_numbers(cx: &Cx, dims: &[Expr], dtype: DType) -> Value {
    let drawn = generate(cx, "RandomNormal", "RandomNormalLike", dims, dtype);
    match cx.mode() {
        Mode::Part(_) => cx.mul(drawn, std::f64::consts::FRAC_1_SQRT_2),
        _ => drawn,
    }
}

fn scaled(cx: &Cx, x: Value, shift: f64, scale: f64) -> Value {
    cx.add(cx.mul(x, scale), shift)
}

/// `from(u)` of uniform numbers `u` with the sizes of `x`, computed in float32 or float64, in the
/// type of `x`.
fn shaped(cx: &Cx, x: Value, from: impl FnOnce(Value) -> Value) -> Lowered {
    let dtype = cx.out_dtype()?;
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    Ok(cx.cast(from(uniform_of(cx, &cx.shape(x), wide)), dtype))
}

fn one_minus(cx: &Cx, u: Value) -> Value {
    cx.sub(cx.scalar(1, cx.dtype(u)), u)
}

/// 1 with the probability `p`, otherwise 0, in the type of `x`. Without `p`, `x` has the
/// probabilities. ONNX's `Bernoulli` is not used: the function that defines it (onnx 1.23), which
/// runtimes without a kernel run, exchanges zeros and ones.
fn bernoulli(cx: &Cx, x: Value, p: Option<TensorOrScalar>) -> Lowered {
    let p = match p {
        None => x,
        Some(TensorOrScalar::Tensor(p)) => p,
        Some(number) => cx.as_tensor(&number, DType::F32),
    };
    let p = cx.to_float(p);
    let wide = cx.cast(p, drawn(cx.dtype(p)));
    let u = uniform_of(cx, &cx.shape(x), cx.dtype(wide));
    Ok(cx.cast(cx.less(u, wide), cx.dtype(x)))
}

/// Normal numbers of these means and standard deviations.
fn normal_of(cx: &Cx, mean: TensorOrScalar, std: TensorOrScalar) -> Lowered {
    let dtype = cx.out_dtype()?;
    let noise = normal_numbers(cx, &cx.out_shape()?, dtype);
    let (mean, std) = (cx.as_tensor(&mean, dtype), cx.as_tensor(&std, dtype));
    Ok(cx.add(cx.mul(noise, std), mean))
}

/// `low + floor(u * (high - low))` of uniform `u`, computed in float64.
fn integers(cx: &Cx, low: &Expr, high: &Expr, dims: &[Expr]) -> Lowered {
    let span = cx.cast(cx.size(&(high - low)), DType::F64);
    let steps = cx.cast(cx.mul(uniform_of(cx, dims, DType::F64), span), DType::I64);
    let found = match low.as_int() {
        Some(0) => steps,
        _ => cx.add(steps, cx.size(low)),
    };
    Ok(cx.cast(found, cx.out_dtype()?))
}

/// A random permutation of the integers below `n`: the order of random numbers.
fn randperm(cx: &Cx, n: Expr, _: Ignored) -> Lowered {
    let keys = uniform_of(cx, std::slice::from_ref(&n), DType::F64);
    let [_, order] = numbers_first(cx, keys, &n, Order { axis: 0, largest: true, sorted: true });
    Ok(cx.cast(order, cx.out_dtype()?))
}

/// Indices drawn with the probabilities `weights`. With replacement: the place of a uniform number
/// among the running sums of the weights. Without: the indices of the `n` largest `log(u) / weight`
/// of uniform `u` (Efraimidis and Spirakis 2006).
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
        let u = one_minus(cx, uniform_of(cx, &cx.shape(weights), dtype));
        let keys = cx.div(cx.log(u), weights);
        let [_, indices] =
            numbers_first(cx, keys, &n, Order { axis: last, largest: true, sorted: true });
        return Ok(indices);
    }
    let sums = running_sums(cx, weights, last);
    let all = cx.slice(sums, last, &(cx.dim(sums, -1) - 1), &cx.dim(sums, -1), 1);
    let mut dims = cx.shape(weights);
    dims[last] = n;
    let drawn = cx.mul(uniform_of(cx, &dims, dtype), all);
    let passed = cx.less_or_equal(cx.unsqueeze(sums, &[last]), cx.unsqueeze(drawn, &[rank]));
    Ok(cx.reduce(Reduction::Sum, cx.cast(passed, DType::I64), &[rank], false))
}

/// int64 if no type is given.
fn meta_made_integers(cx: &Cx, args: meta::Made) -> Lowered {
    meta::made(cx, meta::Made { dtype: args.dtype.or(Some(DType::I64)), ..args })
}

/// The sizes of both operands together, the type of the first tensor.
fn meta_normal(cx: &Cx, mean: TensorOrScalar, std: TensorOrScalar) -> Lowered {
    let tensors = [mean, std].into_iter().filter_map(|o| match o {
        TensorOrScalar::Tensor(v) => Some(v),
        _ => None,
    });
    let tensors: Vec<Value> = tensors.collect();
    let first = tensors.first().ok_or_else(|| LowerError::unsupported("it has no tensor"))?;
    let shapes: Vec<_> = tensors.iter().map(|&v| cx.shape(v)).collect();
    Ok(typed(cx, cx.dtype(*first), &broadcast(cx, &shapes)))
}

fn meta_permutation(cx: &Cx, n: Expr, dtype: Option<DType>) -> Lowered {
    Ok(typed(cx, dtype.unwrap_or(DType::I64), &[n]))
}

checks! {
    // Integers from uniform doubles.
    "aten.randint.low(3, 10, [4]) -> i64[4]" => "
    val_0 = Cast <to: int = 11> (7)
    val_1 = RandomUniform <shape: ints = [4], dtype: int = 11> ()
    val_2 = Mul (val_1, val_0)
    val_3 = Cast <to: int = 7> (val_2)
    randint = Add (val_3, 3)
    ";

    // Each part has half of the variance.
    "aten.randn_like(x: c64[s0]) -> c64[s0]" => "
    val_0 = Gather <axis: int = 1> (x, 0)
    val_1 = Shape <start: int = 0, end: int = 1> (x)
    val_2 = Expand (0.0, val_1)
    val_3 = RandomNormalLike (val_2)
    val_4 = Mul (val_3, 0.70710677)
    val_5 = Gather <axis: int = 1> (x, 1)
    val_6 = Expand (0.0, val_1)
    val_7 = RandomNormalLike (val_6)
    val_8 = Mul (val_7, 0.70710677)
    val_9 = Unsqueeze (val_4, [1])
    val_10 = Unsqueeze (val_8, [1])
    randn_like = Concat <axis: int = 1> (val_9, val_10)
    ";
}
