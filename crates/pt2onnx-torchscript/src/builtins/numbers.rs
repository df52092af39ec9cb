//! Runs operators on numbers and other plain values.

use crate::{
    builtins::complex,
    error::Problem,
    eval::{Evaluator, Step, arith, expected, unsupported},
    schema::Type,
    value::{Value, known},
};
use pt2onnx_fx::Device;
use pt2onnx_symbolic::{Expr, Func};
use std::sync::Arc;

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
        for table in [Self::conversion, Self::on_ranges, Self::on_surroundings, Self::on_known] {
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

    /// The result of a conversion to another kind of value; `None` if it is another operator.
    fn conversion(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        match (name, args) {
            ("Int" | "IntImplicit", [a]) => self.as_whole(a).map(Some),
            ("Float" | "FloatImplicit", [a]) => self.real_of(a).map(Some),
            ("Bool", [a]) => self.truth_of(a).map(Some),
            ("ScalarImplicit", [a @ Value::Tensor(_)]) => {
                self.scalar_of(a, &Type::Number).map(Some)
            }
            ("Complex" | "complex", [a, b]) => {
                Ok(a.as_f64().zip(b.as_f64()).map(|(a, b)| Value::Complex(a, b)))
            }
            ("str", [a]) => Ok(Some(self.text_of(a).value())),
            ("hex" | "oct" | "bin" | "chr", [a]) => self.digits(name, a),
            ("_unwrap_optional", [Value::None]) => {
                Err(Problem::Raises("an exception: unwrapping None".to_owned()))
            }
            (
                "unchecked_unwrap_optional" | "_unwrap_optional" | "unchecked_cast",
                [Value::Optional(maybe)],
            ) => Ok(Some(maybe.value.clone())),
            ("unchecked_unwrap_optional" | "_unwrap_optional" | "wait" | "unchecked_cast", [a]) => {
                Ok(Some(a.clone()))
            }
            ("dict", []) => self.dict(Vec::new()).map(Some),
            ("dict", [pairs @ Value::List(_)]) => self.dict_of(pairs).map(Some),
            _ => Ok(None),
        }
    }

    /// A dict of a list of pairs.
    fn dict_of(&mut self, pairs: &Value) -> Step<Value> {
        let dict = self.dict(Vec::new())?;
        for pair in self.sequence(pairs).unwrap_or_default() {
            match self.sequence(&pair).as_deref() {
                Some([key, value]) => self.set_item(&dict, key, value.clone())?,
                _ => return expected("pairs of keys and values", &pair),
            }
        }
        Ok(dict)
    }

    /// The result of an operator on ranges or lengths; `None` if it is another operator.
    fn on_ranges(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        match (name, args) {
            ("len", [Value::Tuple(tuple)]) => {
                Ok(Some(Value::int(i64::try_from(tuple.items.len()).unwrap_or(i64::MAX))))
            }
            ("rangelist", [n]) => {
                let items = self.range(std::slice::from_ref(n))?;
                self.list(items, Some(Type::Int)).map(Some)
            }
            ("__range_length", [Value::Int(start), Value::Int(end), Value::Int(step)])
                if let Some(known) = step.as_int().filter(|&step| step != 0)
                    && (start.as_int().is_none() || end.as_int().is_none()) =>
            {
                let span = if known > 0 { end - start } else { start - end };
                let stride = Expr::int(known.saturating_abs());
                Ok(Some(Value::Int(Expr::max(&span.ceil_div(&stride), &Expr::ZERO))))
            }
            ("__range_length", [_, _, _]) => {
                let length = self.range(args)?.len();
                Ok(Some(Value::int(i64::try_from(length).unwrap_or(i64::MAX))))
            }
            ("__derive_index", [Value::Int(i), Value::Int(start), Value::Int(step)]) => {
                Ok(Some(Value::Int(start + i * step)))
            }
            ("divmod", [a, b]) => self.divmod(a, b),
            _ => Ok(None),
        }
    }

    /// The result of an operator on devices, or on the state in which PyTorch runs; `None` if it is
    /// another operator.
    fn on_surroundings(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        Ok(Some(match (name, args) {
            ("device", [a, ..]) if !matches!(a, Value::Tensor(_)) => {
                Value::Device(Arc::new(Device { kind: "cpu".into(), index: None }))
            }
            ("type", [Value::Device(device)]) => Value::str(&device.kind),
            ("index", [Value::Device(_)]) => Value::None,
            ("warn" | "Print" | "set_grad_enabled" | "_set_grad_enabled" | "manual_seed", _) => {
                Value::None
            }
            ("is_grad_enabled" | "is_autocast_enabled" | "is_autocast_cpu_enabled", _)
            | ("_is_tracing" | "is_tracing" | "is_scripting_unset", _) => Value::bool(false),
            ("is_scripting", _) => Value::bool(true),
            // bfloat16 on the CPU, otherwise float16.
            ("get_autocast_dtype", [device]) => {
                Value::int(if device.as_str() == Some("cpu") { 15 } else { 5 })
            }
            _ => return Ok(None),
        }))
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
