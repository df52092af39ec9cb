//! Conversions, comparisons and ranges of plain values.

use crate::{
    builtins::{Call, Found},
    error::Problem,
    eval::{Evaluator, Step, arith, expected, unsupported},
    schema::Type,
    value::{Value, known},
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
