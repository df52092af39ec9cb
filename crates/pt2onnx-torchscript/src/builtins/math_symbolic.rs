//! Functions of numbers that depend on data or sizes and that expressions do not have: tensors
//! without dimensions compute them.

use crate::{
    eval::{Evaluator, Step, arith, call::Kwargs},
    schema::Type,
    value::Value,
};

/// Functions of floats that operators on tensors compute in the same way.
const FLOATS: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
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
    "tan",
];

impl Evaluator<'_> {
    /// The result of an operator on one or two numbers that are not all known; `None` if it is
    /// another operator.
    pub(crate) fn on_unknown_numbers(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        let number =
            |value: &Value| matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_));
        if !args.iter().all(number) {
            return Ok(None);
        }
        match name {
            "factorial" => return self.factorial(args).map(Some),
            "frexp" | "modf" => return self.taken_apart(name, args).map(Some),
            "ldexp" | "log" if args.len() == 2 => return self.of_two(name, args).map(Some),
            _ => {}
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
                Value::Int(e) | Value::Bool(e) if of_floats => Value::Float(arith::to_float(e)),
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

    /// `math.ldexp`: a float by a power of 2; `math.log` to a base.
    fn of_two(&mut self, name: &str, args: &[Value]) -> Step<Value> {
        let [x, y] = args else { return crate::eval::unsupported(format!("aten::{name}")) };
        let mut call = |op: &str, args: Vec<Value>| self.operator("aten", op, args, Kwargs::new());
        if name == "ldexp" {
            let power = call("pow", vec![Value::float(2.0), y.clone()])?;
            return call("mul", vec![x.clone(), power]);
        }
        let [x, y] = [call("log", vec![x.clone()])?, call("log", vec![y.clone()])?];
        call("div", vec![x, y])
    }

    /// `math.factorial`: one of those that 64 bits can hold.
    fn factorial(&mut self, args: &[Value]) -> Step<Value> {
        let products = (1..=20).scan(1_i64, |product, n| {
            *product *= n;
            Some(*product)
        });
        let products = [1].into_iter().chain(products).map(Value::int).collect();
        self.any_of(products, args.first().unwrap_or(&Value::None))
    }

    /// `math.frexp`, `math.modf`: the two parts of a float.
    fn taken_apart(&mut self, name: &str, args: &[Value]) -> Step<Value> {
        let float = args.first().and_then(Value::number).map(arith::to_float);
        let float = float.map_or(Value::None, Value::Float);
        let tensor = self.operator("prim", "NumToTensor", vec![float], Kwargs::new())?;
        let mut call = |op: &str, args: Vec<Value>| self.operator("aten", op, args, Kwargs::new());
        let parts = match name {
            "frexp" => match call("frexp", vec![tensor])? {
                Value::Tuple(parts) => parts.items.clone(),
                other => return crate::eval::expected("a tuple", &other),
            },
            _ => {
                let whole = call("trunc", vec![tensor.clone()])?;
                let rest = call("sub", vec![tensor.clone(), whole.clone()])?;
                // The fraction of infinity is 0.
                let infinite = call("isinf", vec![tensor])?;
                vec![call("masked_fill", vec![rest, infinite, Value::int(0)])?, whole]
            }
        };
        let types = [Type::Float, if name == "frexp" { Type::Int } else { Type::Float }];
        let mut numbers = Vec::with_capacity(parts.len());
        for (part, ty) in parts.iter().zip(&types) {
            numbers.push(self.scalar_of(part, ty)?);
        }
        self.tuple(numbers, None)
    }
}
