//! Functions of numbers that expressions do not have. Known numbers are computed here, others by
//! tensors without dimensions.

use crate::{
    builtins::{Call, Found, format::raises},
    eval::{Evaluator, Step, arith, unsupported},
    schema::Type,
    value::{Value, args},
};

type Unary = fn(f64) -> f64;
type Binary = fn(f64, f64) -> f64;

/// Functions of one known float.
const UNARY: &[(&str, Unary)] = &[
    ("acos", f64::acos),
    ("acosh", f64::acosh),
    ("asin", f64::asin),
    ("asinh", f64::asinh),
    ("atanh", f64::atanh),
    ("cosh", f64::cosh),
    ("sinh", f64::sinh),
];

/// Functions of two known floats.
const BINARY: &[(&str, Binary)] = &[
    ("atan2", f64::atan2),
    ("copysign", f64::copysign),
    ("fmod", |x, y| x % y),
    ("log", |x, y| x.ln() / y.ln()),
    ("mathremainder", remainder),
];

/// Functions of floats that operators on tensors compute in the same way.
const OF_TENSORS: &str = "acos acosh asin asinh atan atan2 atanh copysign cosh erf erfc expm1 fmod \
    isfinite isinf isnan lgamma log10 log1p remainder sinh tan";

impl Evaluator<'_> {
    /// The result of a function of numbers; `None` if it is another operator.
    pub(crate) fn on_numbers(&mut self, call: Call<'_>) -> Found {
        let found = match call.args {
            [x] => match (x.as_f64(), UNARY.iter().find(|(name, _)| *name == call.name)) {
                (Some(x), Some((_, of))) => Some(of(x).into()),
                _ => arith::unary(call.name, x)?,
            },
            [x, y] => {
                let of = BINARY.iter().find(|(name, _)| *name == call.name);
                match (x.as_f64().zip(y.as_f64()), of) {
                    (Some((x, y)), Some((_, of))) => Some(of(x, y).into()),
                    _ => arith::binary(call.name, x, y)?,
                }
            }
            _ => return Ok(None),
        };
        if found.is_some() || !call.args.iter().all(|value| value.number().is_some()) {
            return Ok(found);
        }
        let integers = !call.args.iter().any(|value| matches!(value, Value::Float(_)));
        let (op, of_floats) = match call.name {
            "isfinite" | "isinf" | "isnan" if integers => {
                return Ok(Some((call.name == "isfinite").into()));
            }
            "gcd" if integers => ("gcd", false),
            "__and__" if integers => ("bitwise_and", false),
            "__or__" if integers => ("bitwise_or", false),
            "__xor__" if integers => ("bitwise_xor", false),
            // `std::floor(a / b)`, as the interpreter of PyTorch has it.
            "floordiv" => ("div", true),
            "degrees" => ("rad2deg", true),
            "radians" => ("deg2rad", true),
            "round" if !integers => ("round", true),
            name if OF_TENSORS.split(' ').any(|of| of == name) => (name, true),
            _ => return Ok(None),
        };
        let mut tensors = Vec::with_capacity(call.args.len());
        for value in call.args {
            tensors.push(match value {
                Value::Int(e) | Value::Bool(e) if of_floats => {
                    self.number_tensor(&Value::Float(arith::to_float(e)))?
                }
                other => self.number_tensor(other)?,
            });
        }
        let mut result = self.aten(op, tensors)?;
        if call.name == "floordiv" {
            result = self.aten("floor", vec![result])?;
        }
        self.scalar_of(&result, &Type::Number).map(Some)
    }
}

/// The quotient, rounded down, and the rest.
pub(crate) fn divmod(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let quotient = ev.on_numbers(Call { name: "floordiv", ..call })?;
    let rest = ev.on_numbers(Call { name: "remainder", ..call })?;
    match (quotient, rest) {
        (Some(quotient), Some(rest)) => ev.tuple(vec![quotient, rest], None).map(Some),
        _ => Ok(None),
    }
}

/// `math.log` of a number to a base.
pub(crate) fn log(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [x, y] = call.args else { return Ok(None) };
    if x.as_f64().is_some() && y.as_f64().is_some() {
        return Ok(None);
    }
    let [x, y] = [ev.aten("log", args![x])?, ev.aten("log", args![y])?];
    ev.aten("div", vec![x, y]).map(Some)
}

pub(crate) fn gcd(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [a, b] = call.args else { return Ok(None) };
    let (Some(a), Some(b)) = (a.as_int(), b.as_int()) else { return Ok(None) };
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    match i64::try_from(a) {
        Ok(divisor) => Ok(Some(divisor.into())),
        Err(_) => unsupported("an integer of more than 64 bits"),
    }
}

/// The product of the numbers up to one; one of those that 64 bits can hold if it is not known.
pub(crate) fn factorial(ev: &mut Evaluator<'_>, n: &Value) -> Step<Value> {
    let product = |n: i64| (1..=n).try_fold(1_i64, i64::checked_mul);
    match n.as_int() {
        Some(..0) => raises("factorial() not defined for negative values"),
        Some(n) => match product(n) {
            Some(product) => Ok(product.into()),
            None => unsupported("an integer of more than 64 bits"),
        },
        None => ev.any_of((0..=20).filter_map(product).map(Value::int).collect(), n),
    }
}

/// A float by a power of 2.
pub(crate) fn ldexp(ev: &mut Evaluator<'_>, x: &Value, i: &Value) -> Step<Value> {
    match (x.as_f64(), i.as_int()) {
        (Some(x), Some(i)) => Ok(scaled(x, i).into()),
        _ => {
            let power = ev.aten("pow", args![2.0, i])?;
            ev.aten("mul", args![x, power])
        }
    }
}

/// The fraction of a float and its power of 2.
pub(crate) fn frexp(ev: &mut Evaluator<'_>, x: &Value) -> Step<Value> {
    if let Some(x) = x.as_f64() {
        let (fraction, exponent) = fraction(x);
        return ev.tuple(args![fraction, exponent], None);
    }
    let x = float_tensor(ev, x)?;
    let parts = ev.aten("frexp", vec![x])?;
    let parts = ev.sequence(&parts).unwrap_or_default();
    numbers(ev, &parts, &[Type::Float, Type::Int])
}

/// The fraction of a float and its whole part.
pub(crate) fn modf(ev: &mut Evaluator<'_>, x: &Value) -> Step<Value> {
    if let Some(x) = x.as_f64() {
        let rest = if x.is_infinite() { 0.0 } else { x.fract() }.copysign(x);
        return ev.tuple(args![rest, x.trunc()], None);
    }
    let x = float_tensor(ev, x)?;
    let whole = ev.aten("trunc", args![&x])?;
    let rest = ev.aten("sub", args![&x, &whole])?;
    // The fraction of infinity is 0.
    let infinite = ev.aten("isinf", vec![x])?;
    let rest = ev.aten("masked_fill", args![rest, infinite, 0])?;
    numbers(ev, &[rest, whole], &[Type::Float, Type::Float])
}

fn float_tensor(ev: &mut Evaluator<'_>, x: &Value) -> Step<Value> {
    let float = x.number().map_or(Value::None, |e| Value::Float(arith::to_float(e)));
    ev.number_tensor(&float)
}

/// Tensors as a tuple of numbers of these types.
fn numbers(ev: &mut Evaluator<'_>, tensors: &[Value], types: &[Type]) -> Step<Value> {
    let numbers = tensors.iter().zip(types).map(|(tensor, ty)| ev.scalar_of(tensor, ty));
    let numbers = numbers.collect::<Step<Vec<_>>>()?;
    ev.tuple(numbers, None)
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
