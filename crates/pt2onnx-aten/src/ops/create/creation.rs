//! Tensors from nothing but sizes and numbers.

use crate::math::reduce::{folded, product};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, TensorOrScalar, complex::Mode, op::op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar, Tensor};

pub(crate) static OPS: &[AtenOp] = &[
    op!(
        aten::arange,
        |cx: &Cx, end: TensorOrScalar, dtype: Option<DType>| {
            arange(cx, Scalar::Int(0).into(), end, Scalar::Int(1).into(), dtype)
        },
        parts
    ),
    op!(
        aten::arange_start,
        |cx: &Cx, start: TensorOrScalar, end: TensorOrScalar, dtype: Option<DType>| {
            arange(cx, start, end, Scalar::Int(1).into(), dtype)
        },
        parts
    ),
    op!(aten::arange_start_step, arange, parts),
    op!(
        aten::empty_memory_format,
        |cx: &Cx, size: Vec<Expr>, dtype: Option<DType>| filled(cx, size, dtype, 0),
        parts
    ),
    op!(
        aten::empty_like,
        |cx: &Cx, x: Value, dtype: Option<DType>| filled(cx, cx.shape(x), dtype, 0),
        parts
    ),
    op!(
        aten::empty_permuted,
        |cx: &Cx, size: Vec<Expr>, _: Vec<i64>, dtype: Option<DType>| filled(cx, size, dtype, 0),
        parts
    ),
    op!(
        aten::empty_strided,
        |cx: &Cx, size: Vec<Expr>, _: Vec<Expr>, dtype: Option<DType>| filled(cx, size, dtype, 0),
        parts
    ),
    op!(aten::eye, |cx: &Cx, n: Expr, _: Option<DType>| eye(cx, n.clone(), n), parts),
    op!(aten::eye_m, |cx: &Cx, n: Expr, m: Expr, _: Option<DType>| eye(cx, n, m), parts),
    op!(
        aten::fill_Scalar,
        |cx: &Cx, x: Value, value: TensorOrScalar| full_like(cx, x, value, None),
        parts
    ),
    op!(
        aten::fill_Tensor,
        |cx: &Cx, x: Value, value: TensorOrScalar| full_like(cx, x, value, None),
        parts
    ),
    op!(aten::full, full, parts),
    op!(aten::full_like, full_like, parts),
    op!(aten::hash_tensor, hash_tensor),
    op!(aten::linspace, linspace, parts),
    op!(aten::linspace_Scalar_Tensor, linspace, parts),
    op!(aten::linspace_Tensor_Scalar, linspace, parts),
    op!(aten::linspace_Tensor_Tensor, linspace, parts),
    op!(aten::logspace, logspace, complex = logspace_complex),
    op!(aten::logspace_Scalar_Tensor, logspace, complex = logspace_complex),
    op!(aten::logspace_Tensor_Scalar, logspace, complex = logspace_complex),
    op!(aten::logspace_Tensor_Tensor, logspace, complex = logspace_complex),
    op!(
        aten::new_empty,
        |cx: &Cx, _: Value, size: Vec<Expr>, dtype: Option<DType>| filled(cx, size, dtype, 0),
        parts
    ),
    op!(
        aten::new_empty_strided,
        |cx: &Cx, _: Value, size: Vec<Expr>, _: Vec<Expr>, dtype: Option<DType>| filled(
            cx, size, dtype, 0
        ),
        parts
    ),
    op!(
        aten::new_full,
        |cx: &Cx, _: Value, size: Vec<Expr>, value: TensorOrScalar, dtype: Option<DType>| full(
            cx, size, value, dtype
        ),
        parts
    ),
    op!(
        aten::new_ones,
        |cx: &Cx, _: Value, size: Vec<Expr>, dtype: Option<DType>| filled(cx, size, dtype, 1),
        parts
    ),
    op!(
        aten::new_zeros,
        |cx: &Cx, _: Value, size: Vec<Expr>, dtype: Option<DType>| filled(cx, size, dtype, 0),
        parts
    ),
    op!(
        aten::ones,
        |cx: &Cx, size: Vec<Expr>, dtype: Option<DType>| filled(cx, size, dtype, 1),
        parts
    ),
    op!(
        aten::ones_like,
        |cx: &Cx, x: Value, dtype: Option<DType>| filled(cx, cx.shape(x), dtype, 1),
        parts
    ),
    op!(
        aten::scalar_tensor,
        |cx: &Cx, value: TensorOrScalar, dtype: Option<DType>| full(cx, vec![], value, dtype),
        parts
    ),
    op!(aten::tril_indices, |cx: &Cx, rows: i64, columns: i64, offset: i64, _: Option<DType>| {
        triangle(cx, rows, columns, |i, j| j - i <= offset)
    }),
    op!(aten::triu_indices, |cx: &Cx, rows: i64, columns: i64, offset: i64, _: Option<DType>| {
        triangle(cx, rows, columns, |i, j| j - i >= offset)
    }),
    op!(
        aten::vander,
        |cx: &Cx, x: Value, n: Option<Expr>, increasing: bool| vander(cx, x, n, increasing),
        complex = vander_complex
    ),
    op!(aten::zero, |cx: &Cx, x: Value| filled(cx, cx.shape(x), None, 0), parts),
    op!(
        aten::zeros,
        |cx: &Cx, size: Vec<Expr>, dtype: Option<DType>| filled(cx, size, dtype, 0),
        parts
    ),
    op!(
        aten::zeros_like,
        |cx: &Cx, x: Value, dtype: Option<DType>| filled(cx, cx.shape(x), dtype, 0),
        parts
    ),
];

/// The recorded type says what a missing `dtype` stands for: the default, or that of another tensor.
fn filled(cx: &Cx, size: Vec<Expr>, _: Option<DType>, value: i64) -> Lowered {
    // Imaginary parts are zeros, whatever the number.
    let value = if cx.mode() == Mode::Part(1) { 0 } else { value };
    Ok(cx.full(&size, value, cx.out_dtype()?))
}

fn full(cx: &Cx, size: Vec<Expr>, value: TensorOrScalar, _: Option<DType>) -> Lowered {
    Ok(cx.expand(cx.as_tensor(&value, cx.out_dtype()?), &size))
}

fn full_like(cx: &Cx, x: Value, value: TensorOrScalar, _: Option<DType>) -> Lowered {
    Ok(cx.expand(cx.as_tensor(&value, cx.out_dtype()?), &cx.shape(x)))
}

/// `start + step * i` for each `i` below the length. ONNX's `Range` adds up floats, so those are computed from integers.
fn arange(
    cx: &Cx,
    start: TensorOrScalar,
    end: TensorOrScalar,
    step: TensorOrScalar,
    _: Option<DType>,
) -> Lowered {
    let dtype = cx.out_dtype()?;
    let whole = |t: &TensorOrScalar| {
        matches!(t, TensorOrScalar::Scalar(Scalar::Int(_)) | TensorOrScalar::SymInt(_))
    };
    let int = |t: &TensorOrScalar| cx.as_tensor(t, DType::I64);
    // Into integers, start and step are rounded before, not the sums.
    let truncated = |t: TensorOrScalar| match t {
        TensorOrScalar::Scalar(s) if !dtype.is_float() => Scalar::Int(s.to_i64()).into(),
        other => other,
    };
    if [&start, &end, &step].into_iter().all(whole) {
        return Ok(cx.cast(cx.range(int(&start), int(&end), int(&step)), dtype));
    }
    let length =
        cx.out_shape()?.pop().ok_or_else(|| LowerError::unsupported("a range is a vector"))?;
    let index = cx.range(cx.scalar(0, DType::I64), cx.size(&length), cx.scalar(1, DType::I64));
    let (start, step) = (truncated(start), truncated(step));
    let (wide, start, step) =
        (DType::F64, cx.as_tensor(&start, DType::F64), cx.as_tensor(&step, DType::F64));
    Ok(cx.cast(cx.add(start, cx.mul(cx.cast(index, wide), step)), dtype))
}

/// The identity matrix: where row and column are the same.
fn eye(cx: &Cx, rows: Expr, columns: Expr) -> Lowered {
    let dtype = cx.out_dtype()?;
    if cx.mode() == Mode::Part(1) {
        return Ok(cx.full(&[rows, columns], 0, dtype));
    }
    let index = |n: &Expr| cx.cast(cx.iota(n), DType::I64);
    let same = cx.equal(cx.unsqueeze(index(&rows), &[1]), index(&columns));
    Ok(cx.cast(same, dtype))
}

/// `steps` numbers from `low` to `high`, as PyTorch rounds them: counted from the nearer end.
pub(crate) fn spaced(cx: &Cx, low: Value, high: Value, steps: i64, dtype: DType) -> Value {
    let wide = match dtype {
        DType::F64 => DType::F64,
        d if d.is_float() => DType::F32,
        _ => DType::F64,
    };
    let (low, high) = (cx.cast(low, wide), cx.cast(high, wide));
    let vector = |v| cx.reshape(v, &[Expr::int(1)]);
    if steps <= 1 {
        let only = cx.cast(vector(low), dtype);
        return if steps == 1 { only } else { cx.full(&[Expr::int(0)], 0, dtype) };
    }
    let step = cx.div(cx.sub(high, low), (steps - 1) as f64);
    let (near, far) = (steps / 2, steps - steps / 2);
    let count = |n: i64| cx.cast(cx.iota(&Expr::int(n)), wide);
    let first = cx.add(low, cx.mul(count(near), step));
    // steps - 1 - i, for the places i of the second half.
    let back = cx.sub(cx.scalar(far - 1, wide), count(far));
    let second = cx.sub(high, cx.mul(back, step));
    let all = if near == 0 { second } else { cx.concat(&[first, second], 0) };
    cx.cast(all, dtype)
}

fn linspace(
    cx: &Cx,
    start: TensorOrScalar,
    end: TensorOrScalar,
    steps: i64,
    _: Option<DType>,
) -> Lowered {
    let dtype = cx.out_dtype()?;
    let (low, high) = (ends(cx, &start, dtype), ends(cx, &end, dtype));
    Ok(spaced(cx, low, high, steps, dtype))
}

/// An end of a range. Integers take part as integers.
fn ends(cx: &Cx, end: &TensorOrScalar, dtype: DType) -> Value {
    cx.cast(
        cx.as_tensor(end, dtype),
        if dtype == DType::F64 || !dtype.is_float() { DType::F64 } else { DType::F32 },
    )
}

/// `base` to the powers that [`linspace`] gives.
fn logspace(
    cx: &Cx,
    start: TensorOrScalar,
    end: TensorOrScalar,
    steps: i64,
    base: f64,
    _: Option<DType>,
) -> Lowered {
    let dtype = cx.out_dtype()?;
    let wide = if dtype.is_float() && dtype != DType::F64 { DType::F32 } else { DType::F64 };
    let (low, high) = (ends(cx, &start, dtype), ends(cx, &end, dtype));
    let powers = spaced(cx, low, high, steps, wide);
    Ok(cx.cast(cx.pow(cx.scalar(base, wide), powers), dtype))
}

/// Rows and columns of the chosen elements of a matrix.
fn triangle(cx: &Cx, rows: i64, columns: i64, chosen: impl Fn(i64, i64) -> bool) -> Lowered {
    if rows.checked_mul(columns).is_none_or(|n| n > 1 << 24) {
        return Err(LowerError::unsupported(
            "indices of a triangle of more than 16 million elements",
        ));
    }
    let all =
        || (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).filter(|&(i, j)| chosen(i, j));
    let mut elements: Vec<i64> = all().map(|(i, _)| i).collect();
    let n = elements.len();
    elements.extend(all().map(|(_, j)| j));
    let tensor = Tensor::vector(&elements).reshaped(vec![2, n]);
    let tensor =
        tensor.ok_or_else(|| LowerError::unsupported("indices of a triangle of that size"))?;
    Ok(cx.cast(cx.constant(tensor), cx.out_dtype()?))
}

/// Powers of `x` in a new last dimension: 0, 1, .. (or .., 1, 0), as running products.
fn vander(cx: &Cx, x: Value, n: Option<Expr>, increasing: bool) -> Lowered {
    let dtype = cx.out_dtype()?;
    // A 0-d tensor counts as a vector.
    let x = if cx.rank(x) == 0 { cx.unsqueeze(x, &[0]) } else { x };
    let x = cx.cast(x, dtype);
    let last = cx.rank(x);
    let n = n.unwrap_or_else(|| cx.dim(x, -1));
    let (base, powers) = if dtype.is_float() {
        (cx.unsqueeze(x, &[last]), cx.cast(cx.iota(&n), dtype))
    } else {
        (cx.unsqueeze(x, &[last]), cx.cast(cx.iota(&n), DType::I64))
    };
    let powers = match increasing {
        true => powers,
        false => cx.sub(cx.cast(cx.size(&(&n - 1)), cx.dtype(powers)), powers),
    };
    Ok(cx.pow(base, powers))
}

/// Bits of all elements as 64-bit integers, of floats as doubles, combined by exclusive or.
fn hash_tensor(cx: &Cx, x: Value, dims: Vec<i64>, keepdim: bool, mode: i64) -> Lowered {
    if mode != 0 {
        return Err(LowerError::unsupported("hashes other than exclusive or"));
    }
    let axes = cx.axes(x, Some(&dims))?;
    let kept: Vec<usize> = (0..cx.rank(x)).filter(|a| !axes.contains(a)).collect();
    let bits = match cx.dtype(x) {
        dtype if dtype.is_float() => bits_of_double(cx, cx.cast(x, DType::F64)),
        _ => cx.cast(x, DType::I64),
    };
    let order: Vec<usize> = axes.iter().chain(&kept).copied().collect();
    let moved = cx.transpose(cx.cast(bits, DType::U64), &order);
    let mut shape = vec![Expr::product(axes.iter().map(|&a| cx.dim(x, a as i64)))];
    shape.extend(kept.iter().map(|&a| cx.dim(x, a as i64)));
    let rows = cx.reshape(moved, &shape);
    let found = folded(cx, rows, Scalar::Int(0), |a, b| cx.bitwise_xor(a, b));
    Ok(if keepdim { cx.unsqueeze(found, &axes) } else { found })
}

/// The bits of doubles by exact arithmetic, since `BitCast` is newer than what most runtimes know: sign, exponent and
/// fraction. All NaN count as the positive quiet one.
fn bits_of_double(cx: &Cx, x: Value) -> Value {
    let fraction_size = (1u64 << 52) as f64;
    let size = cx.abs(x);
    let two = cx.scalar(2.0, DType::F64);
    // The logarithm is one off at most.
    let guess = cx.floor(cx.mul(cx.log(size), std::f64::consts::LOG2_E));
    let guess = cx.clamp(guess, Some(Scalar::Float(-1022.0)), Some(Scalar::Float(1023.0)));
    let power = cx.pow(two, guess);
    let too_high = cx.cast(cx.less(size, power), DType::F64);
    let too_low = cx.cast(cx.greater_or_equal(cx.div(size, power), 2.0), DType::F64);
    let exponent = cx.maximum(cx.add(cx.sub(guess, too_high), too_low), -1022.0);
    // From 1 to 2; below 1 of subnormal numbers, whose exponent is spelled 0.
    let mantissa = cx.div(size, cx.pow(two, exponent));
    let whole = cx.floor(mantissa);
    let biased = cx.add(cx.add(exponent, whole), 1022.0);
    let fraction = cx.mul(cx.sub(mantissa, whole), fraction_size);
    let int = |v| cx.cast(v, DType::I64);
    let finite = cx.add(cx.mul(int(biased), 1i64 << 52), int(fraction));
    let (quiet, infinity) = (0x7ff8_i64 << 48, cx.scalar(0x7ff0_i64 << 48, DType::I64));
    let infinite = cx.select(cx.is_nan(x), quiet, infinity);
    let special = cx.or(cx.is_nan(x), cx.is_inf(x, Default::default()));
    let bits = cx.select(special, infinite, finite);
    // 1 / -0 is negative, too.
    let negative = cx.or(cx.less(x, 0.0), cx.less(cx.reciprocal(x), 0.0));
    cx.select(negative, cx.add(bits, i64::MIN), bits)
}

/// `base^z = base^re (cos(im ln base) + i sin(im ln base))`.
fn logspace_complex(
    cx: &Cx,
    start: Complex,
    end: Complex,
    steps: i64,
    base: f64,
    _: Option<DType>,
) -> Lowered {
    let dtype = cx.out_dtype()?;
    let re = spaced(cx, start.re, end.re, steps, dtype);
    let im = spaced(cx, start.im, end.im, steps, dtype);
    let (length, angle) = (cx.pow(cx.scalar(base, dtype), re), cx.mul(im, base.ln()));
    Ok(cx.pairs(Complex { re: cx.mul(length, cx.cos(angle)), im: cx.mul(length, cx.sin(angle)) }))
}

/// Powers as running products.
fn vander_complex(cx: &Cx, x: Complex, n: Option<Expr>, increasing: bool) -> Lowered {
    let dims = cx.shape(x.re);
    let last = dims.len().max(1);
    let vector = if dims.is_empty() { vec![Expr::int(1)] } else { dims };
    let n = match n.unwrap_or_else(|| vector[last - 1].clone()).as_int() {
        Some(n @ 0..=64) => n,
        _ => {
            return Err(LowerError::unsupported(
                "complex Vandermonde matrices of that many columns",
            ));
        }
    };
    let dtype = cx.out_dtype()?;
    let part = |v: Value| cx.expand(cx.cast(v, dtype), &vector);
    let x = Complex { re: part(x.re), im: part(x.im) };
    let mut power = Complex { re: cx.full(&vector, 1, dtype), im: cx.full(&vector, 0, dtype) };
    let mut columns = Vec::new();
    for _ in 0..n {
        columns.push(power);
        power = product(cx, power, x);
    }
    if !increasing {
        columns.reverse();
    }
    let stack = |pick: fn(&Complex) -> Value| {
        let all: Vec<Value> = columns.iter().map(|c| cx.unsqueeze(pick(c), &[last])).collect();
        cx.concat(&all, last)
    };
    Ok(cx.pairs(Complex { re: stack(|c| c.re), im: stack(|c| c.im) }))
}
