//! Arithmetic on known complex numbers.

use crate::value::Value;

/// The result of an operator on complex numbers; `None` if it is another operator, or a number is
/// not known.
pub(crate) fn on_complex(name: &str, args: &[Value]) -> Option<Value> {
    if !args.iter().any(|value| matches!(value, Value::Complex(..))) {
        return None;
    }
    let number = |at: usize| args.get(at).and_then(parts);
    match (args.len(), number(0), number(1)) {
        (1, Some((re, im)), _) => match name {
            "neg" => Some(Value::Complex(-re, -im)),
            "abs" => Some(Value::float(re.hypot(im))),
            "angle" => Some(Value::float(im.atan2(re))),
            "Bool" => Some(Value::bool((re, im) != (0.0, 0.0))),
            _ => None,
        },
        (2, Some((a, b)), Some((c, d))) => match name {
            "add" => Some(Value::Complex(a + c, b + d)),
            "sub" => Some(Value::Complex(a - c, b - d)),
            "mul" => Some(Value::Complex(a * c - b * d, a * d + b * c)),
            "div" => Some(quotient((a, b), (c, d))),
            "eq" => Some(Value::bool((a, b) == (c, d))),
            "ne" => Some(Value::bool((a, b) != (c, d))),
            _ => None,
        },
        _ => None,
    }
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
