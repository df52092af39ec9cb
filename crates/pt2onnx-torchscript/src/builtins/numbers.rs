//! Conversions, comparisons and ranges of plain values, and functions of numbers that expressions
//! do not have. Known numbers are computed here, others by tensors without dimensions.

use crate::{
    builtins::{Call, Found, format::raises},
    error::Problem,
    eval::{Evaluator, Step, arith, expected, unsupported},
    schema::Type,
    value::{Value, args, known},
};
use pt2onnx_symbolic::{Expr, Func};

/// The opposite of a truth value.
pub(crate) fn negated(truth: Expr) -> Value {
    Value::Bool(match truth.as_int() {
        Some(known) => Expr::bool(known == 0),
        None => Expr::call(Func::Not, vec![truth]),
    })
}

pub(crate) fn not(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let value = match call.args {
        [tensor @ Value::Tensor(_)] => ev.truth_of(tensor)?,
        [value] => value.clone(),
        _ => return Ok(None),
    };
    Ok(match (ev.truth(&value)?, value) {
        (Some(truth), _) => Some((!truth).into()),
        (None, Value::Bool(e)) => Some(negated(e)),
        _ => None,
    })
}

/// `a is not b`.
pub(crate) fn differs(ev: &Evaluator<'_>, a: &Value, b: &Value) -> Expr {
    match (a, b) {
        (Value::Optional(maybe), Value::None) => maybe.present.clone(),
        _ => Expr::bool(!ev.same(a, b)),
    }
}

/// Whether values are equal; `None` for numbers and tensors.
pub(crate) fn equal(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Option<Expr>> {
    Ok(match call.args {
        [a @ (Value::List(_) | Value::Tuple(_)), b] => Some(ev.equality(a, b)?),
        [Value::UnknownStr(_), _] | [_, Value::UnknownStr(_)] => return arith::unknown_str(),
        [Value::Tensor(_), _] | [_, Value::Tensor(_)] => None,
        [a, b] if a.number().is_none() || b.number().is_none() => Some(Expr::bool(ev.same(a, b))),
        _ => None,
    })
}

pub(crate) fn complex(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [re, im] = call.args else { return Ok(None) };
    Ok(re.as_f64().zip(im.as_f64()).map(|(re, im)| Value::Complex(re, im)))
}

/// A value that must not be None.
pub(crate) fn unwrap(_: &mut Evaluator<'_>, value: &Value) -> Step<Value> {
    match value {
        Value::None => Err(Problem::Raises("an exception: unwrapping None".to_owned())),
        other => Ok(other.clone()),
    }
}

/// The value of an optional that is there.
pub(crate) fn present(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    match call.args {
        [Value::Optional(optional)] => Ok(Some(optional.value.clone())),
        _ => Ok(None),
    }
}

pub(crate) fn range_list(ev: &mut Evaluator<'_>, end: &Value) -> Step<Value> {
    let items = ev.range(std::slice::from_ref(end))?;
    ev.list(items, Some(Type::Int))
}

pub(crate) fn range_length(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [start, end, step] = call.args else { return Ok(None) };
    if let (Value::Int(start), Value::Int(end)) = (start, end)
        && let Some(known) = step.as_int().filter(|&step| step != 0)
        && (start.as_int().is_none() || end.as_int().is_none())
    {
        let span = if known > 0 { end - start } else { start - end };
        let stride = Expr::int(known.saturating_abs());
        return Ok(Some(Expr::max(&span.ceil_div(&stride), &Expr::ZERO).into()));
    }
    Ok(Some(ev.range(call.args)?.len().into()))
}

pub(crate) fn derive_index(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    Ok(match call.args {
        [Value::Int(i), Value::Int(start), Value::Int(step)] => Some((start + i * step).into()),
        _ => None,
    })
}

impl Evaluator<'_> {
    /// `int(x)`.
    pub(crate) fn as_whole(&mut self, value: &Value) -> Step<Value> {
        match value {
            Value::Tensor(_) => self.scalar_of(value, &Type::Int),
            Value::Int(e) | Value::Float(e) => Ok(Value::Int(arith::rounded(Func::TruncToInt, e)?)),
            Value::Bool(e) => Ok(Value::Int(e.clone())),
            Value::Str(text) => match text.trim_ascii_start().parse() {
                Ok(i) => Ok(Value::int(i)),
                Err(_) => Err(Problem::Raises("ValueError: no integer".to_owned())),
            },
            other => expected("a number", other),
        }
    }

    /// `float(x)`.
    pub(crate) fn real_of(&mut self, value: &Value) -> Step<Value> {
        match value {
            Value::Tensor(_) => self.scalar_of(value, &Type::Float),
            Value::Int(e) | Value::Bool(e) | Value::Float(e) => {
                Ok(Value::Float(arith::to_float(e)))
            }
            Value::Str(text) => match text.trim_ascii_start().parse() {
                Ok(f) => Ok(Value::float(f)),
                Err(_) if text.contains(['x', 'X']) => unsupported("a float in hexadecimal digits"),
                Err(_) => Err(Problem::Raises("ValueError: no float".to_owned())),
            },
            other => expected("a number", other),
        }
    }

    /// `bool(x)`.
    pub(crate) fn truth_of(&mut self, value: &Value) -> Step<Value> {
        match value {
            Value::Tensor(_) => self.scalar_of(value, &Type::Bool),
            Value::Bool(_) => Ok(value.clone()),
            Value::Int(e) | Value::Float(e) => Ok(match known(e) {
                Some(f) => (f != 0.0).into(),
                None => Value::Bool(Expr::call(Func::Ne, vec![e.clone(), Expr::ZERO])),
            }),
            _ => match self.truth(value)? {
                Some(truth) => Ok(truth.into()),
                None => expected("a number", value),
            },
        }
    }
}

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
    ("ldexp", |x, i| scaled(x, i as i64)),
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
            "divmod" | "ldexp" => return self.formula(call.name, call.args.to_vec()).map(Some),
            "log" if call.args.len() == 2 => {
                return self.formula("log", call.args.to_vec()).map(Some);
            }
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

/// `frexp`, the fraction of a float and its power of 2; and `modf`, its fraction and whole part.
pub(crate) fn apart(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    match (call.get(0).as_f64(), call.name) {
        (Some(x), "frexp") => {
            let (fraction, exponent) = fraction(x);
            ev.tuple(args![fraction, exponent], None)
        }
        (Some(x), _) => {
            let rest = if x.is_infinite() { 0.0 } else { x.fract() }.copysign(x);
            ev.tuple(args![rest, x.trunc()], None)
        }
        (None, name) => ev.formula(name, vec![call.get(0)]),
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

/// The result of an operator on complex numbers; `None` if it is another operator, or a number is
/// not known.
pub(crate) fn on_complex(call: Call<'_>) -> Option<Value> {
    if !call.args.iter().any(|value| matches!(value, Value::Complex(..))) {
        return None;
    }
    let numbers = call.args.iter().map(parts).collect::<Option<Vec<_>>>()?;
    Some(match (call.name, numbers.as_slice()) {
        ("neg", &[(re, im)]) => Value::Complex(-re, -im),
        ("abs", &[(re, im)]) => re.hypot(im).into(),
        ("angle", &[(re, im)]) => im.atan2(re).into(),
        ("Bool", number) => (number != [(0.0, 0.0)]).into(),
        ("add", &[(a, b), (c, d)]) => Value::Complex(a + c, b + d),
        ("sub", &[(a, b), (c, d)]) => Value::Complex(a - c, b - d),
        ("mul", &[(a, b), (c, d)]) => Value::Complex(a * c - b * d, a * d + b * c),
        ("div", &[x, y]) => quotient(x, y),
        ("eq", [x, y]) => (x == y).into(),
        ("ne", [x, y]) => (x != y).into(),
        _ => return None,
    })
}

/// The real and the imaginary part of a known number.
pub(crate) fn parts(value: &Value) -> Option<(f64, f64)> {
    match value {
        Value::Complex(re, im) => Some((*re, *im)),
        other => Some((other.as_f64()?, 0.0)),
    }
}

/// `(a + bi) / (c + di)`, scaled so that no square overflows.
fn quotient((a, b): (f64, f64), (c, d): (f64, f64)) -> Value {
    if (c, d) == (0.0, 0.0) {
        Value::Complex(a / c.abs(), b / d.abs())
    } else if c.abs() >= d.abs() {
        let ratio = d / c;
        let scale = 1.0 / (c + d * ratio);
        Value::Complex((a + b * ratio) * scale, (b - a * ratio) * scale)
    } else {
        let ratio = c / d;
        let scale = 1.0 / (c * ratio + d);
        Value::Complex((a * ratio + b) * scale, (b * ratio - a) * scale)
    }
}
