//! Operators that the interpreter runs itself, because their operands are not tensors, and the way
//! to those that become nodes.

mod data_dependent;
mod dict;
mod environment;
mod format;
mod list;
mod numbers;
mod resize;
mod str;
mod table;
mod tensor;

use crate::{
    eval::{Evaluator, Step, call::Kwargs, expected, overload::Bound},
    schema::{Schema, Type},
    value::Value,
};
use pt2onnx_fx::Name;
use pt2onnx_tensor::DType;

/// The result of a builtin; `None` if it does not take these arguments.
pub(crate) type Found = Step<Option<Value>>;

/// A call of a builtin. An argument that is not given has a default value.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    /// The name of the operator in `aten` or `prim`.
    pub(crate) name: &'c str,
    pub(crate) args: &'c [Value],
    pub(crate) kwargs: &'c Kwargs,
}

impl<'c> Call<'c> {
    pub(crate) fn get(&self, at: usize) -> Value {
        self.args.get(at).cloned().unwrap_or(Value::None)
    }

    pub(crate) fn keyword(&self, name: &str) -> Option<&'c Value> {
        self.kwargs.iter().find(|(given, _)| given == name).map(|(_, value)| value)
    }

    pub(crate) fn int(&self, at: usize, default: i64) -> Step<i64> {
        self.args.get(at).map_or(Ok(default), Value::known_int)
    }

    pub(crate) fn bytes(&self, at: usize, default: &'static str) -> Step<&'c [u8]> {
        self.args.get(at).map_or(Ok(default.as_bytes()), bytes)
    }

    pub(crate) fn bool(&self, at: usize) -> Step<bool> {
        let value = self.args.get(at);
        value.map_or(Ok(false), |value| {
            value.as_bool().map_or_else(|| expected("a known truth value", value), Ok)
        })
    }
}

/// The bytes of a string that is known.
pub(crate) fn bytes(value: &Value) -> Step<&[u8]> {
    match value {
        Value::Str(text) => Ok(text.as_bytes()),
        Value::UnknownStr(_) => crate::eval::arith::unknown_str(),
        other => expected("a string", other),
    }
}

impl Evaluator<'_> {
    /// Calls an operator such as `aten::add`.
    pub(crate) fn operator(
        &mut self,
        namespace: &str,
        name: &str,
        mut args: Vec<Value>,
        mut kwargs: Kwargs,
    ) -> Step<Value> {
        self.step()?;
        if let Some(value) = self.quantized_call(namespace, name, &args, &kwargs)? {
            return Ok(value);
        }
        let call = Call { name, args: &args, kwargs: &kwargs };
        if let Some(value) = self.builtin(namespace, call)? {
            return Ok(value);
        }
        if let Some(value) = self.view_in_place(namespace, name, &args, &kwargs)? {
            return Ok(value);
        }
        let unknown_str = |value: &Value| matches!(value, Value::UnknownStr(_));
        if args.iter().chain(kwargs.iter().map(|(_, value)| value)).any(unknown_str) {
            return crate::eval::arith::unknown_str();
        }
        self.upgrade(namespace, name, &mut args, &mut kwargs);
        self.autocast_arguments(namespace, name, &mut args, &mut kwargs)?;
        self.constant_operand(namespace, name, &mut args, &kwargs)?;
        let full = format!("{namespace}::{name}");
        let (schema, bound) = self.overload(&full, &args, &kwargs)?;
        // Overloads of the language, not of the dispatcher.
        if schema.name == "to"
            && matches!(&*schema.overload, "prim_Device" | "prim_dtype" | "prim_other")
        {
            return self.move_to(&schema, bound);
        }
        let mut given = bound.iter().zip(&schema.params);
        match given.position(|(value, param)| param.name == "out" && value.is_some()) {
            Some(at) => self.in_place_of(&full, &schema, bound, at),
            None => self.emit(&schema, bound),
        }
    }

    /// Calls an operator of ATen with positional arguments.
    pub(crate) fn aten(&mut self, name: &str, args: Vec<Value>) -> Step<Value> {
        self.operator("aten", name, args, Kwargs::new())
    }

    /// The same, if the result is a tensor.
    pub(crate) fn aten_tensor(&mut self, name: &str, args: Vec<Value>) -> Step<Name> {
        self.aten(name, args)?.tensor().cloned()
    }

    /// Makes arguments mean today what they meant when the archive was written.
    fn upgrade(&self, namespace: &str, name: &str, args: &mut Vec<Value>, kwargs: &mut Kwargs) {
        let version = self.cx.archive.version();
        let lacks = |key: &str| kwargs.iter().all(|(name, _)| name != key);
        match (namespace, name) {
            ("aten", "div" | "div_")
                if version < 4
                    && args.len() == 2
                    && kwargs.is_empty()
                    && args.iter().all(|arg| self.is_integer(arg)) =>
            {
                kwargs.push(("rounding_mode".into(), "trunc".into()));
            }
            ("aten", "full") if version < 5 && lacks("dtype") && lacks("out") => {
                kwargs.push(("dtype".into(), DType::F32.into()));
            }
            ("aten", "linspace" | "logspace")
                if version < (if name == "linspace" { 8 } else { 9 })
                    && args.len() < 3
                    && lacks("steps") =>
            {
                args.push(100.into());
            }
            _ => {}
        }
        // Functions of the language, not of the dispatcher: a number before a tensor.
        if let [number, Value::Tensor(_)] = args.as_slice()
            && matches!(name, "add" | "mul" | "eq" | "ne")
            && number.number().is_some()
        {
            args.swap(0, 1);
        }
    }

    /// A constant without dimensions, as traces have for `x * 1.5`, counts as a number for the type
    /// of the result: PyTorch's executor makes one of it (`CanonicalizeOps`).
    fn constant_operand(
        &mut self,
        namespace: &str,
        name: &str,
        args: &mut [Value],
        kwargs: &Kwargs,
    ) -> Step<()> {
        if let ("aten", "add" | "sub" | "mul" | "div") = (namespace, name)
            && let [Value::Tensor(_), other @ Value::Tensor(_)] = args
            && let Value::Tensor(constant) = other
            && self.cx.pool_numbers.contains(constant)
            && self.meta(constant).is_ok_and(|meta| meta.dtype != DType::Bool)
            && kwargs.iter().all(|(name, _)| name == "alpha")
        {
            *other = self.scalar_of(&other.clone(), &Type::Number)?;
        }
        Ok(())
    }

    /// `x.to(device, dtype)`: only the element type matters.
    fn move_to(&mut self, schema: &Schema, bound: Bound) -> Step<Value> {
        let given = |name: &str| {
            let at = schema.params.iter().position(|param| param.name == name)?;
            bound.get(at).cloned().flatten()
        };
        let tensor = given("self").unwrap_or(Value::None);
        match given("dtype") {
            None | Some(Value::None) => Ok(tensor),
            Some(dtype) => self.aten("to", vec![tensor, dtype]),
        }
    }

    fn is_integer(&self, value: &Value) -> bool {
        match value {
            Value::Int(_) | Value::Bool(_) => true,
            Value::Tensor(name) => {
                self.meta(name).is_ok_and(|meta| meta.dtype.is_int() || meta.dtype == DType::Bool)
            }
            _ => false,
        }
    }
}
