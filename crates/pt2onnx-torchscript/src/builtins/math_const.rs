//! Functions of numbers that expressions do not have, where the numbers are known.

use crate::{
    builtins::format::raises,
    eval::{Evaluator, Step, unsupported},
    value::Value,
};

impl Evaluator<'_> {
    /// The result of a function of known numbers; `None` if it is another function, or one of them
    /// is not known.
    pub(crate) fn on_known(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        let float = |at: usize| args.get(at).and_then(Value::as_f64);
        let int = |at: usize| args.get(at).and_then(Value::as_int);
        Ok(Some(match (name, args) {
            ("factorial", [Value::Int(_)]) if let Some(n) = int(0) => factorial(n)?,
            ("ldexp", [_, Value::Int(_)]) if let (Some(x), Some(i)) = (float(0), int(1)) => {
                Value::float(scaled(x, i))
            }
            ("frexp", [_]) if let Some(x) = float(0) => {
                let (fraction, exponent) = fraction(x);
                return self
                    .tuple(vec![Value::float(fraction), Value::int(exponent)], None)
                    .map(Some);
            }
            ("modf", [_]) if let Some(x) = float(0) => {
                let rest = if x.is_infinite() { 0.0 } else { x.fract() }.copysign(x);
                return self
                    .tuple(vec![Value::float(rest), Value::float(x.trunc())], None)
                    .map(Some);
            }
            ("mathremainder", [_, _]) if let (Some(x), Some(y)) = (float(0), float(1)) => {
                Value::float(remainder(x, y))
            }
            ("copysign", [_, _]) if let (Some(x), Some(y)) = (float(0), float(1)) => {
                Value::float(x.copysign(y))
            }
            ("log", [_, _]) if let (Some(x), Some(y)) = (float(0), float(1)) => {
                Value::float(x.ln() / y.ln())
            }
            ("atan2", [_, _]) if let (Some(x), Some(y)) = (float(0), float(1)) => {
                Value::float(x.atan2(y))
            }
            ("fmod", [_, _]) if let (Some(x), Some(y)) = (float(0), float(1)) => {
                Value::float(x % y)
            }
            ("gcd", [_, _]) if let (Some(a), Some(b)) = (int(0), int(1)) => gcd(a, b)?,
            ("isnan", [_]) if let Some(x) = float(0) => Value::bool(x.is_nan()),
            ("isinf", [_]) if let Some(x) = float(0) => Value::bool(x.is_infinite()),
            ("isfinite", [_]) if let Some(x) = float(0) => Value::bool(x.is_finite()),
            (_, [_]) if let (Some(x), Some(function)) = (float(0), of_float(name)) => {
                Value::float(function(x))
            }
            _ => return Ok(None),
        }))
    }
}

/// A function of one float.
fn of_float(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "acos" => f64::acos,
        "acosh" => f64::acosh,
        "asin" => f64::asin,
        "asinh" => f64::asinh,
        "atanh" => f64::atanh,
        "cosh" => f64::cosh,
        "degrees" => f64::to_degrees,
        "expm1" => f64::exp_m1,
        "log10" => f64::log10,
        "log1p" => f64::ln_1p,
        "radians" => f64::to_radians,
        "sinh" => f64::sinh,
        _ => return None,
    })
}

fn gcd(a: i64, b: i64) -> Step<Value> {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    match i64::try_from(a) {
        Ok(divisor) => Ok(Value::int(divisor)),
        Err(_) => unsupported("an integer of more than 64 bits"),
    }
}

fn factorial(n: i64) -> Step<Value> {
    if n < 0 {
        return raises("factorial() not defined for negative values");
    }
    match (1..=n).try_fold(1_i64, i64::checked_mul) {
        Some(product) => Ok(Value::int(product)),
        None => unsupported("an integer of more than 64 bits"),
    }
}

/// `x * 2^i`, rounded once.
fn scaled(x: f64, i: i64) -> f64 {
    let (fraction, exponent) = fraction(x);
    let exponent = exponent.saturating_add(i).clamp(-2000, 2000);
    let power = |n: i64| 2f64.powi(i32::try_from(n).unwrap_or(0));
    // Powers of 2 below the smallest float and above the largest one do not exist.
    match exponent {
        1000.. => fraction * power(1000) * power(exponent - 1000),
        ..=-1000 => fraction * power(exponent + 1000) * power(-1000),
        _ => fraction * power(exponent),
    }
}

/// A fraction from 0.5 to 1, and the power of 2 by which it is multiplied.
fn fraction(x: f64) -> (f64, i64) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let (x, less) = if x.is_subnormal() { (x * 2f64.powi(64), 64) } else { (x, 0) };
    let bits = x.to_bits();
    let exponent = i64::try_from((bits >> 52) & 0x7ff).unwrap_or(0) - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | (1022 << 52)), exponent - less)
}

/// The rest to the nearest multiple of `y`, of two equally near ones the even one.
fn remainder(x: f64, y: f64) -> f64 {
    let (size, by) = (x.abs(), y.abs());
    if by.is_infinite() && size.is_finite() {
        return x;
    }
    let rest = size % by;
    let other = by - rest;
    let rest = match rest.partial_cmp(&other) {
        Some(std::cmp::Ordering::Less) => rest,
        Some(std::cmp::Ordering::Greater) => -other,
        _ => rest - 2.0 * ((0.5 * (size - rest)) % by),
    };
    rest * 1f64.copysign(x)
}
