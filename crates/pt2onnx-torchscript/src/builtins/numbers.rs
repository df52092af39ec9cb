//! Runs operators on numbers and other plain values.

use crate::{
    builtins::complex,
    error::Problem,
    eval::{Evaluator, Step, arith, expected, unsupported},
    schema::Type,
    value::{Value, known},
};
use pt2onnx_symbolic::{Expr, Func};

impl Evaluator<'_> {
    /// The result of an operator on plain values; `None` if it is another operator.
    pub(crate) fn on_values(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        if let Some(value) = complex::on_complex(name, args) {
            return Ok(Some(value));
        }
        let found = self.on_identity(name, args)?;
        if found.is_some() || name == "__not__" {
            return Ok(found);
        }
        for table in [Self::run_builtin, Self::on_known] {
            let found = table(self, name, args)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let found = match args {
            [a] => arith::unary(name, a)?,
            [a, b] => arith::binary(name, a, b)?,
            _ => return Ok(None),
        };
        match found {
            Some(value) => Ok(Some(value)),
            None => self.on_unknown_numbers(name, args),
        }
    }

    /// The result of `not`, `is`, and comparisons of what are no numbers; `None` if it is another
    /// operator.
    fn on_identity(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        match (name, args) {
            ("__not__", [a]) => Ok(match (self.truth(a)?, a) {
                (Some(truth), _) => Some(Value::bool(!truth)),
                (None, Value::Bool(e)) => Some(Value::Bool(Expr::call(Func::Not, vec![e.clone()]))),
                _ => None,
            }),
            ("__is__" | "__isnot__", [Value::Optional(maybe), Value::None]) => {
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
            ("eq" | "ne", [Value::UnknownStr(_), _] | [_, Value::UnknownStr(_)]) => {
                arith::unknown_str()
            }
            ("eq" | "ne", [a, b])
                if !matches!((a, b), (Value::Tensor(_), _) | (_, Value::Tensor(_)))
                    && (a.number().is_none() || b.number().is_none()) =>
            {
                Ok(Some(Value::bool(self.same(a, b) == (name == "eq"))))
            }
            _ => Ok(None),
        }
    }

    /// `int(x)`.
    pub(crate) fn as_whole(&mut self, value: &Value) -> Step<Value> {
        match value {
            Value::Tensor(_) => self.scalar_of(value, &Type::Int),
            Value::Int(e) | Value::Float(e) => Ok(Value::Int(arith::truncated(e)?)),
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
            Value::Int(e) | Value::Float(e) => match known(e) {
                Some(f) => Ok(Value::bool(f != 0.0)),
                None => Ok(Value::Bool(Expr::call(Func::Ne, vec![e.clone(), Expr::ZERO]))),
            },
            _ => match self.truth(value)? {
                Some(truth) => Ok(Value::bool(truth)),
                None => expected("a number", value),
            },
        }
    }
}
