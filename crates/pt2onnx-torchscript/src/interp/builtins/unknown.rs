//! Functions of numbers that depend on data or sizes and that expressions do not have: tensors without dimensions compute them.

use crate::{
    interp::{Interp, Step, call::Kwargs, compare},
    schema::Type,
    value::Value,
};

/// Functions of floats that operators on tensors compute in the same way.
const FLOATS: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan2",
    "atanh",
    "copysign",
    "cosh",
    "erf",
    "erfc",
    "expm1",
    "fmod",
    "lgamma",
    "log10",
    "log1p",
    "remainder",
    "sinh",
];

impl Interp<'_> {
    /// The result of an operator on one or two numbers, of which one is not known; `None` if it is another operator.
    pub(super) fn on_unknown_numbers(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        let number =
            |value: &Value| matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_));
        if !args.iter().all(number) {
            return Ok(None);
        }
        let integers = !args.iter().any(|value| matches!(value, Value::Float(_)));
        let (op, of_floats) = match name {
            "gcd" if integers => ("gcd", false),
            "__and__" if integers => ("bitwise_and", false),
            "__or__" if integers => ("bitwise_or", false),
            "__xor__" if integers => ("bitwise_xor", false),
            "floordiv" => ("floor_divide", true),
            "degrees" => ("rad2deg", true),
            "radians" => ("deg2rad", true),
            "isnan" | "isinf" | "isfinite" if integers => {
                return Ok(Some(Value::bool(name == "isfinite")));
            }
            "isnan" | "isinf" | "isfinite" => (name, true),
            "round" if !integers => ("round", true),
            _ if FLOATS.contains(&name) => (name, true),
            _ => return Ok(None),
        };
        let mut tensors = Vec::with_capacity(args.len());
        for value in args {
            let value = match value {
                Value::Int(e) | Value::Bool(e) if of_floats => Value::Float(compare::to_float(e)),
                other => other.clone(),
            };
            tensors.push(self.operator("prim", "NumToTensor", vec![value], Kwargs::new())?);
        }
        if name == "floordiv" {
            // `std::floor(a / b)`, as the interpreter of PyTorch has it.
            let quotient = self.operator("aten", "div", tensors, Kwargs::new())?;
            let floor = self.operator("aten", "floor", vec![quotient], Kwargs::new())?;
            return self.scalar_of(&floor, &Type::Number).map(Some);
        }
        let result = self.operator("aten", op, tensors, Kwargs::new())?;
        self.scalar_of(&result, &Type::Number).map(Some)
    }
}
