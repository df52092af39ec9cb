//! Arithmetic on known complex numbers.

use crate::{builtins::Call, value::Value};

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
