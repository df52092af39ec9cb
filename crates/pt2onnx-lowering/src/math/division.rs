//! Quotients that are rounded to whole numbers, as PyTorch rounds them.

use crate::math::elementary::trunc_of;
use crate::math::precision::compute_type;
use crate::{Cx, TensorOrScalar};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

/// Both operands of a division of floats of type `dtype`. PyTorch's kernels round a divisor that is
/// one number to the type that they compute in, and not first to float16 or bfloat16.
struct Operands {
    a: Value,
    b: Value,
    /// The divisor, if it is known.
    number: Option<f64>,
}

impl Operands {
    fn new(cx: &Cx, a: &TensorOrScalar, b: &TensorOrScalar, dtype: DType) -> Self {
        let a = cx.as_tensor(a, dtype);
        let number = match b {
            TensorOrScalar::Scalar(s) => Some(s.to_f64()),
            _ => None,
        };
        let single = !matches!(b, TensorOrScalar::Tensor(v) if cx.rank(*v) > 0);
        let wide = if single { compute_type(cx, dtype) } else { dtype };
        Self { a: cx.cast(a, wide), b: cx.as_tensor(b, wide), number }
    }
}

/// `trunc(a / b)` of floats.
pub fn truncated(cx: &Cx, a: &TensorOrScalar, b: &TensorOrScalar, dtype: DType) -> Value {
    let Operands { a, b, .. } = Operands::new(cx, a, b, dtype);
    cx.cast(trunc_of(cx, cx.div(a, b)), dtype)
}

/// `floor(a / b)` of floats, as c10's `div_floor_floating` computes it: NaN for infinite `a`, -1
/// where `b` is infinite and has the other sign, `a / b` where `b` is 0.
pub fn floored(cx: &Cx, a: &TensorOrScalar, b: &TensorOrScalar, dtype: DType) -> Value {
    let Operands { a, b, number } = Operands::new(cx, a, b, dtype);
    let quotient = match cx.dtype(a) {
        _ if number.is_some_and(is_power_of_two) => {
            let wide = |v| cx.cast(v, compute_type(cx, dtype));
            infinite_is_nan(cx, a, b, number, cx.floor(cx.div(wide(a), wide(b))))
        }
        DType::F32 => by_float64(cx, a, b, number),
        DType::F64 => by_remainder(cx, a, b),
        _ if cx.propagates_nan(a) => by_remainder(cx, a, b),
        _ => by_float64(cx, a, b, number),
    };
    cx.cast(quotient, dtype)
}

/// Whether a division by `number` is exact.
fn is_power_of_two(number: f64) -> bool {
    number.is_normal() && number.to_bits() << 12 == 0 && number.abs() >= 1.0
}

/// [`floored`] by the quotient in float64, which does not round up to the next whole number if the
/// operands are narrower.
fn by_float64(cx: &Cx, a: Value, b: Value, number: Option<f64>) -> Value {
    let wide = cx.cast(b, DType::F64);
    // An infinite divisor leaves a quotient that is not 0, and has its sign.
    let finite = match number {
        Some(number) if number.is_finite() => wide,
        _ if !cx.propagates_nan(a) => wide,
        _ => cx.clamp(wide, Some(Scalar::Float(-1e300)), Some(Scalar::Float(1e300))),
    };
    let floor = cx.floor(cx.div(cx.cast(a, DType::F64), finite));
    infinite_is_nan(cx, a, b, number, cx.cast(floor, cx.dtype(a)))
}

/// `quotient`, and NaN where `a` is infinite and `b` is not 0.
fn infinite_is_nan(cx: &Cx, a: Value, b: Value, number: Option<f64>, quotient: Value) -> Value {
    if !cx.propagates_nan(a) || number == Some(0.0) {
        return quotient;
    }
    let infinite = cx.is_inf(a, attrs::IsInf::default());
    let nan = match number {
        Some(_) => infinite,
        None => cx.and(infinite, cx.cast(b, DType::Bool)),
    };
    cx.select(nan, f64::NAN, quotient)
}

/// [`floored`] in the steps of `div_floor_floating`, each in the type of the operands: the
/// remainder is subtracted first. Where the quotient is 0, it has the sign of `a / b`.
fn by_remainder(cx: &Cx, a: Value, b: Value) -> Value {
    let dtype = cx.dtype(a);
    let rest = cx.mod_(a, b, attrs::Mod { fmod: true });
    let whole = cx.div(cx.sub(a, rest), b);
    let below = cx.cast(cx.less(cx.mul(cx.sign(rest), b), 0.0), dtype);
    let by_zero = cx.equal(b, 0.0);
    if !cx.propagates_nan(a) {
        return cx.select(by_zero, cx.div(a, b), cx.sub(cx.round(whole), below));
    }
    let whole = cx.sub(whole, below);
    let floor = cx.floor(whole);
    let above = cx.greater(cx.sub(whole, floor), 0.5);
    let floor = cx.add(floor, cx.cast(above, dtype));
    let plain = cx.div(a, b);
    let floor = cx.select(cx.cast(whole, DType::Bool), floor, cx.mul(plain, 0.0));
    cx.select(by_zero, plain, floor)
}

/// `a / b` of signed integers, rounded down, where `b` is positive. Nothing overflows.
pub fn floored_by_positive(cx: &Cx, a: Value, b: Value) -> Value {
    let one = cx.cast(cx.less(a, 0), cx.dtype(a));
    cx.sub(cx.div(cx.add(a, one), b), one)
}

/// `floor(a / b)` of signed integers. No step wraps, whatever their size.
pub fn floored_integers(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Value {
    let divisors = match &b {
        TensorOrScalar::Scalar(s) => vec![s.to_i64()],
        // PyTorch refuses to divide by 0.
        TensorOrScalar::SymInt(n) if cx.constraints().prove_ge(n, &Expr::int(0)) => vec![1],
        TensorOrScalar::Tensor(v) => {
            let small = cx.constant_of(*v).filter(|t| t.has_data() && t.numel() <= 4096);
            small.and_then(|t| t.to_vec::<i64>()).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let (a, b) = cx.promote(a, b);
    let all = |holds: fn(&i64) -> bool| !divisors.is_empty() && divisors.iter().all(holds);
    let one_where = |condition| cx.cast(condition, cx.dtype(a));
    if all(|&b| b > 0) {
        return floored_by_positive(cx, a, b);
    }
    if all(|&b| b < 0) {
        let one = one_where(cx.greater(a, 0));
        return cx.sub(cx.div(cx.sub(a, one), b), one);
    }
    let cut = cx.div(a, b);
    let rest = cx.sub(a, cx.mul(cut, b));
    // `b` where the remainders that belong to `cut` and to the floor differ, else 0.
    let missing = cx.sub(cx.mod_(a, b, attrs::Mod::default()), rest);
    cx.sub(cut, cx.div(missing, b))
}
