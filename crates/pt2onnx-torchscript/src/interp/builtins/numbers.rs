//! Runs operators on numbers and other plain values.

use super::complex;
use crate::{
    error::Problem,
    interp::{Interp, Step, compare},
    schema::Type,
    value::{Value, known},
};
use pt2onnx_fx::Device;
use pt2onnx_symbolic::{Expr, Func};
use std::sync::Arc;

impl Interp<'_> {
    /// The result of an operator on plain values; `None` if it is another operator.
    pub(super) fn on_values(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        if let Some(value) = complex::on_complex(name, args) {
            return Ok(Some(value));
        }
        let found = self.on_identity(name, args)?;
        if found.is_some() || name == "__not__" {
            return Ok(found);
        }
        match (name, args) {
            ("Int" | "IntImplicit", [a]) => return self.as_whole(a).map(Some),
            ("Float" | "FloatImplicit", [a]) => return self.real_of(a).map(Some),
            ("Bool", [a]) => return self.truth_of(a).map(Some),
            ("ScalarImplicit", [a @ Value::Tensor(_)]) => {
                return self.scalar_of(a, &Type::Number).map(Some);
            }
            ("str", [a]) => return Ok(Some(self.text_of(a).value())),
            ("hex" | "oct" | "bin" | "chr", [a]) => return self.digits(name, a),
            ("unchecked_unwrap_optional" | "_unwrap_optional" | "wait" | "unchecked_cast", [a]) => {
                return match (name, a) {
                    ("_unwrap_optional", Value::None) => {
                        Err(Problem::Raises("an exception: unwrapping None".to_owned()))
                    }
                    (_, Value::Maybe(maybe)) if name != "wait" => Ok(Some(maybe.value.clone())),
                    _ => Ok(Some(a.clone())),
                };
            }
            ("len", [Value::Tuple(tuple)]) => {
                return Ok(Some(Value::int(i64::try_from(tuple.items.len()).unwrap_or(i64::MAX))));
            }
            ("rangelist", [n]) => {
                let items = self.range(std::slice::from_ref(n))?;
                return self.list(items, Some(Type::Int)).map(Some);
            }
            ("device", [a, ..]) if !matches!(a, Value::Tensor(_)) => {
                let device = Device { kind: "cpu".into(), index: None };
                return Ok(Some(Value::Device(Arc::new(device))));
            }
            ("type", [Value::Device(device)]) => return Ok(Some(Value::str(&device.kind))),
            ("index", [Value::Device(_)]) => return Ok(Some(Value::None)),
            ("warn" | "Print" | "set_grad_enabled" | "_set_grad_enabled" | "manual_seed", _) => {
                return Ok(Some(Value::None));
            }
            ("is_grad_enabled" | "is_autocast_enabled" | "is_autocast_cpu_enabled", _)
            | ("_is_tracing" | "is_tracing" | "is_scripting_unset", _) => {
                return Ok(Some(Value::bool(false)));
            }
            // float16, bfloat16
            ("get_autocast_dtype", [device]) => {
                return Ok(Some(Value::int(if device.as_str() == Some("cpu") { 15 } else { 5 })));
            }
            ("is_scripting", _) => return Ok(Some(Value::bool(true))),
            ("dict", []) => return self.dict(Vec::new()).map(Some),
            ("dict", [list @ Value::List(_)]) => {
                let dict = self.dict(Vec::new())?;
                for pair in self.sequence(list).unwrap_or_default() {
                    match self.sequence(&pair).as_deref() {
                        Some([key, value]) => self.set_item(&dict, key, value.clone())?,
                        _ => return crate::interp::expected("pairs of keys and values", &pair),
                    }
                }
                return Ok(Some(dict));
            }
            ("Complex" | "complex", [a, b]) => {
                return Ok(a.as_f64().zip(b.as_f64()).map(|(a, b)| Value::Complex(a, b)));
            }
            ("__range_length", [Value::Int(start), Value::Int(end), Value::Int(step)])
                if let Some(known) = step.as_int().filter(|&step| step != 0)
                    && (start.as_int().is_none() || end.as_int().is_none()) =>
            {
                let span = if known > 0 { end - start } else { start - end };
                let stride = Expr::int(known.saturating_abs());
                return Ok(Some(Value::Int(Expr::max(&span.ceil_div(&stride), &Expr::ZERO))));
            }
            ("__range_length", [start, end, step]) => {
                let args = [start.clone(), end.clone(), step.clone()];
                let length = self.range(&args)?.len();
                return Ok(Some(Value::int(i64::try_from(length).unwrap_or(i64::MAX))));
            }
            ("divmod", [a, b]) => return self.divmod(a, b),
            ("__derive_index", [Value::Int(i), Value::Int(start), Value::Int(step)]) => {
                return Ok(Some(Value::Int(start + i * step)));
            }
            _ => {}
        }
        if let Some(value) = self.on_known(name, args)? {
            return Ok(Some(value));
        }
        let found = match args {
            [a] => compare::unary(name, a)?,
            [a, b] => compare::binary(name, a, b)?,
            _ => return Ok(None),
        };
        match found {
            Some(value) => Ok(Some(value)),
            None => self.on_unknown_numbers(name, args),
        }
    }

    /// The result of `not`, `is`, and comparisons of what are no numbers; `None` if it is another operator.
    fn on_identity(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        match (name, args) {
            ("__not__", [a]) => Ok(match (self.truth(a)?, a) {
                (Some(truth), _) => Some(Value::bool(!truth)),
                (None, Value::Bool(e)) => Some(Value::Bool(Expr::call(Func::Not, vec![e.clone()]))),
                _ => None,
            }),
            ("__is__" | "__isnot__", [Value::Maybe(maybe), Value::None]) => {
                let present = maybe.present.clone();
                Ok(Some(Value::Bool(match name {
                    "__is__" => Expr::call(Func::Not, vec![present]),
                    _ => present,
                })))
            }
            ("__is__" | "__isnot__", [a, b]) => {
                let same = self.same(a, b);
                Ok(Some(Value::bool(same == (name == "__is__"))))
            }
            ("eq" | "ne", [a @ (Value::List(_) | Value::Tuple(_)), b]) => {
                let equal = self.equality(a, b)?;
                Ok(Some(Value::Bool(match (name, equal.as_int()) {
                    ("eq", _) => equal,
                    (_, Some(known)) => Expr::bool(known == 0),
                    _ => Expr::call(Func::Not, vec![equal]),
                })))
            }
            ("eq" | "ne", [Value::Unclear(_), _] | [_, Value::Unclear(_)]) => compare::unclear(),
            ("eq" | "ne", [a, b])
                if !matches!((a, b), (Value::Tensor(_), _) | (_, Value::Tensor(_)))
                    && (a.number().is_none() || b.number().is_none()) =>
            {
                Ok(Some(Value::bool(self.same(a, b) == (name == "eq"))))
            }
            _ => Ok(None),
        }
    }

    /// The quotient and the rest.
    fn divmod(&mut self, a: &Value, b: &Value) -> Step<Option<Value>> {
        let pair = [a.clone(), b.clone()];
        let parts = [self.on_values("floordiv", &pair)?, self.on_values("remainder", &pair)?];
        match parts {
            [Some(quotient), Some(rest)] => self.tuple(vec![quotient, rest], None).map(Some),
            _ => Ok(None),
        }
    }

    /// `int(x)`.
    pub(in crate::interp) fn as_whole(&mut self, value: &Value) -> Step<Value> {
        match value {
            Value::Tensor(_) => self.scalar_of(value, &Type::Int),
            Value::Int(e) | Value::Float(e) => Ok(Value::Int(compare::truncated(e)?)),
            Value::Bool(e) => Ok(Value::Int(e.clone())),
            Value::Str(text) => match text.trim_ascii_start().parse() {
                Ok(i) => Ok(Value::int(i)),
                Err(_) => Err(Problem::Raises("ValueError: no integer".to_owned())),
            },
            other => crate::interp::expected("a number", other),
        }
    }

    /// `float(x)`.
    pub(in crate::interp) fn real_of(&mut self, value: &Value) -> Step<Value> {
        match value {
            Value::Tensor(_) => self.scalar_of(value, &Type::Float),
            Value::Int(e) | Value::Bool(e) | Value::Float(e) => {
                Ok(Value::Float(compare::to_float(e)))
            }
            Value::Str(text) => match text.trim_ascii_start().parse() {
                Ok(f) => Ok(Value::float(f)),
                Err(_) if text.contains(['x', 'X']) => {
                    crate::interp::unsupported("a float in hexadecimal digits")
                }
                Err(_) => Err(Problem::Raises("ValueError: no float".to_owned())),
            },
            other => crate::interp::expected("a number", other),
        }
    }

    /// `bool(x)`.
    pub(in crate::interp) fn truth_of(&mut self, value: &Value) -> Step<Value> {
        match value {
            Value::Tensor(_) => self.scalar_of(value, &Type::Bool),
            Value::Bool(_) => Ok(value.clone()),
            Value::Int(e) | Value::Float(e) => match known(e) {
                Some(f) => Ok(Value::bool(f != 0.0)),
                None => Ok(Value::Bool(Expr::call(Func::Ne, vec![e.clone(), Expr::ZERO]))),
            },
            _ => match self.truth(value)? {
                Some(truth) => Ok(Value::bool(truth)),
                None => crate::interp::expected("a number", value),
            },
        }
    }
}
