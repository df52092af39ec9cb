//! Quotients that are rounded to whole numbers, as PyTorch rounds them.

use crate::math::elementary::trunc_of;
use crate::math::precision::compute_type;
use crate::{Cx, TensorOrScalar};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

/// Both operands of a division of floats of type `dtype`. PyTorch's kernels round a divisor that is one number to the type that
/// they compute in, and not first to float16 or bfloat16.
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
pub(crate) fn truncated(cx: &Cx, a: &TensorOrScalar, b: &TensorOrScalar, dtype: DType) -> Value {
    let Operands { a, b, .. } = Operands::new(cx, a, b, dtype);
    cx.cast(trunc_of(cx, cx.div(a, b)), dtype)
}

/// `floor(a / b)` of floats, as c10's `div_floor_floating` computes it: NaN for infinite `a`, -1 where `b` is infinite and has the
/// other sign, `a / b` where `b` is 0.
pub(crate) fn floored(cx: &Cx, a: &TensorOrScalar, b: &TensorOrScalar, dtype: DType) -> Value {
    let Operands { a, b, number } = Operands::new(cx, a, b, dtype);
    let quotient = match cx.dtype(a) {
        _ if number.is_some_and(is_power_of_two) => {
            let wide = |v| cx.cast(v, compute_type(cx, dtype));
            infinite_is_nan(cx, a, b, number, cx.floor(cx.div(wide(a), wide(b))))
        }
        DType::F32 => by_float64(cx, a, b, number),
        DType::F64 => by_remainder(cx, a, b),
        _ if cx.minds_nan(a) => by_remainder(cx, a, b),
        _ => by_float64(cx, a, b, number),
    };
    cx.cast(quotient, dtype)
}

/// Whether a division by `number` is exact.
fn is_power_of_two(number: f64) -> bool {
    number.is_normal() && number.to_bits() << 12 == 0 && number.abs() >= 1.0
}

/// [`floored`] by the quotient in float64, which does not round up to the next whole number if the operands are narrower.
fn by_float64(cx: &Cx, a: Value, b: Value, number: Option<f64>) -> Value {
    let wide = cx.cast(b, DType::F64);
    // An infinite divisor leaves a quotient that is not 0, and has its sign.
    let finite = match number {
        Some(number) if number.is_finite() => wide,
        _ if !cx.minds_nan(a) => wide,
        _ => cx.clamp(wide, Some(Scalar::Float(-1e300)), Some(Scalar::Float(1e300))),
    };
    let floor = cx.floor(cx.div(cx.cast(a, DType::F64), finite));
    infinite_is_nan(cx, a, b, number, cx.cast(floor, cx.dtype(a)))
}

/// `quotient`, and NaN where `a` is infinite and `b` is not 0.
fn infinite_is_nan(cx: &Cx, a: Value, b: Value, number: Option<f64>, quotient: Value) -> Value {
    if !cx.minds_nan(a) || number == Some(0.0) {
        return quotient;
    }
    let infinite = cx.is_inf(a, attrs::IsInf::default());
    let nan = match number {
        Some(_) => infinite,
        None => cx.and(infinite, cx.cast(b, DType::Bool)),
    };
    cx.select(nan, f64::NAN, quotient)
}

/// [`floored`] in the steps of `div_floor_floating`, each in the type of the operands: the remainder is subtracted first. Where the
/// quotient is 0, it has the sign of `a / b`.
fn by_remainder(cx: &Cx, a: Value, b: Value) -> Value {
    let dtype = cx.dtype(a);
    let rest = cx.mod_(a, b, attrs::Mod { fmod: true });
    let whole = cx.div(cx.sub(a, rest), b);
    let below = cx.cast(cx.less(cx.mul(cx.sign(rest), b), 0.0), dtype);
    let by_zero = cx.equal(b, 0.0);
    if !cx.minds_nan(a) {
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

/// `floor(a / b)` of signed integers. No step wraps, whatever their size.
pub(crate) fn floored_integers(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Value {
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
        let one = one_where(cx.less(a, 0));
        return cx.sub(cx.div(cx.add(a, one), b), one);
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

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn a_divisor_that_is_one_number_is_not_rounded_to_halves() {
        check!("aten.floor_divide.Scalar(x: f16[s0], 0.1) -> f16[s0]", @"
        (float16[s0] x) => (float16[s0] floor_divide)
        <
          float val_0 = {0.1},
          float val_1 = {NaN}
        >
        {
          val_2 = Cast <to: int = 1> (x)
          val_3 = Cast <to: int = 11> (val_0)
          val_4 = Cast <to: int = 11> (val_2)
          val_5 = Div (val_4, val_3)
          val_6 = Floor (val_5)
          val_7 = Cast <to: int = 1> (val_6)
          val_8 = IsInf (val_2)
          val_9 = Where (val_8, val_1, val_7)
          floor_divide = Cast <to: int = 10> (val_9)
        }
        ");
        check!("aten.div.Scalar_mode(x: bf16[s0], 0.1, rounding_mode = 'trunc') -> bf16[s0]", @"
        (bfloat16[s0] x) => (bfloat16[s0] div)
        <
          float val_0 = {0.1},
          float val_1 = {-1.0},
          float val_2 = {1.0}
        >
        {
          val_3 = Cast <to: int = 1> (x)
          val_4 = Div (val_3, val_0)
          val_5 = Abs (val_4)
          val_6 = Floor (val_5)
          val_7 = Clip (val_4, val_1, val_2)
          val_8 = Mul (val_6, val_7)
          div = Cast <to: int = 16> (val_8)
        }
        ");
    }

    #[test]
    fn floats_are_divided_in_pytorchs_steps() {
        check!("aten.floor_divide(x: f64[s0], y: f64[s0]) -> f64[s0]", @"
        (double[s0] x, double[s0] y) => (double[s0] floor_divide)
        <
          double val_0 = {0.0},
          double val_1 = {0.5}
        >
        {
          val_2 = Mod <fmod: int = 1> (x, y)
          val_3 = Sub (x, val_2)
          val_4 = Div (val_3, y)
          val_5 = Sign (val_2)
          val_6 = Mul (val_5, y)
          val_7 = Less (val_6, val_0)
          val_8 = Cast <to: int = 11> (val_7)
          val_9 = Equal (y, val_0)
          val_10 = Sub (val_4, val_8)
          val_11 = Floor (val_10)
          val_12 = Sub (val_10, val_11)
          val_13 = Greater (val_12, val_1)
          val_14 = Cast <to: int = 11> (val_13)
          val_15 = Add (val_11, val_14)
          val_16 = Div (x, y)
          val_17 = Cast <to: int = 9> (val_10)
          val_18 = Mul (val_16, val_0)
          val_19 = Where (val_17, val_15, val_18)
          floor_divide = Where (val_9, val_16, val_19)
        }
        ");
        check!("aten.floor_divide(x: f64[s0], y: f64[s0]) -> f64[s0]", assume_finite, @"
        (double[s0] x, double[s0] y) => (double[s0] floor_divide)
        <
          double val_0 = {0.0}
        >
        {
          val_1 = Mod <fmod: int = 1> (x, y)
          val_2 = Sub (x, val_1)
          val_3 = Div (val_2, y)
          val_4 = Sign (val_1)
          val_5 = Mul (val_4, y)
          val_6 = Less (val_5, val_0)
          val_7 = Cast <to: int = 11> (val_6)
          val_8 = Equal (y, val_0)
          val_9 = Div (x, y)
          val_10 = Round (val_3)
          val_11 = Sub (val_10, val_7)
          floor_divide = Where (val_8, val_9, val_11)
        }
        ");
        check!("aten.floor_divide.Scalar(x: f32[s0], 2) -> f32[s0]", @"
        (float[s0] x) => (float[s0] floor_divide)
        <
          float val_0 = {2.0},
          float val_1 = {NaN}
        >
        {
          val_2 = Div (x, val_0)
          val_3 = Floor (val_2)
          val_4 = IsInf (x)
          floor_divide = Where (val_4, val_1, val_3)
        }
        ");
        check!("aten.floor_divide.Scalar(x: f32[s0], 2) -> f32[s0]", assume_finite, @"
        (float[s0] x) => (float[s0] floor_divide)
        <
          float val_0 = {2.0}
        >
        {
          val_1 = Div (x, val_0)
          floor_divide = Floor (val_1)
        }
        ");
    }
}
