//! Operators that the interpreter runs itself, because their operands are not tensors, and the way
//! to those that become nodes.

mod complex;
mod conversions;
mod data_dependent;
mod dict;
mod environment;
mod format;
mod list;
mod math_const;
mod math_symbolic;
mod numbers;
mod ranges;
mod resize;
mod squeeze;
mod str;
mod str_ascii;
mod table;
mod tensor;

use crate::{
    error::Problem,
    eval::{Evaluator, Step, call::Kwargs, overload::Bound, unsupported},
    schema::{Schema, Type},
    value::Value,
};
use pt2onnx_tensor::DType;

/// A call of a builtin, without named arguments.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    /// The name of the operator in `aten` or `prim`.
    pub(crate) name: &'c str,
    pub(crate) args: &'c [Value],
}

impl Evaluator<'_> {
    /// Calls an operator such as `aten::add`.
    pub(crate) fn operator(
        &mut self,
        namespace: &str,
        name: &str,
        args: Vec<Value>,
        kwargs: Kwargs,
    ) -> Step<Value> {
        self.step()?;
        if let Some(value) = self.quantized_call(namespace, name, &args, &kwargs)? {
            return Ok(value);
        }
        if let Some(value) = self.builtin(namespace, name, &args, &kwargs)? {
            return Ok(value);
        }
        if let Some(value) = self.view_in_place(namespace, name, &args, &kwargs)? {
            return Ok(value);
        }
        let unknown_str = |value: &Value| matches!(value, Value::UnknownStr(_));
        if args.iter().chain(kwargs.iter().map(|(_, value)| value)).any(unknown_str) {
            return crate::eval::arith::unknown_str();
        }
        let (name, mut args, mut kwargs) = self.upgraded(namespace, name, args, kwargs)?;
        self.autocast_arguments(namespace, &name, &mut args, &mut kwargs)?;
        self.constant_operand(namespace, &name, &mut args, &kwargs)?;
        let full = format!("{namespace}::{name}");
        let (schema, bound) = self.overload(&full, &args, &kwargs)?;
        match &*schema.overload {
            // Overloads of the language, not of the dispatcher.
            "prim_Device" | "prim_dtype" | "prim_other" if schema.name == "to" => {
                self.move_to(&schema, bound)
            }
            _ => match bound
                .iter()
                .zip(&schema.params)
                .position(|(v, p)| p.name == "out" && v.is_some())
            {
                Some(at) => self.in_place_of(&full, &schema, bound, at),
                None => self.emit(&schema, bound),
            },
        }
    }

    /// The result of an operator that makes no node; `None` if it is to be matched with the
    /// schemas.
    fn builtin(
        &mut self,
        namespace: &str,
        name: &str,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Option<Value>> {
        match namespace {
            "aten" | "prim" => {}
            "profiler" => return Ok(Some(Value::Undef("a record of the profiler".into()))),
            _ => return Ok(None),
        }
        if name == "RaiseException" {
            let text = args.first().map(|v| self.text_of(v).text).unwrap_or_default();
            let class = match args.get(1) {
                Some(Value::Str(class)) => class.trim_start_matches("builtins.").to_owned(),
                _ => "an exception".to_owned(),
            };
            return Err(Problem::Raises(format!("{class}: {text}")));
        }
        match name {
            "to_mkldnn" | "ConstantMKLDNNTensor" => {
                let text = "a module after torch.jit.optimize_for_inference, whose archive has no weights (save it before),";
                return unsupported(text);
            }
            "_nested_tensor_from_mask_left_aligned" => {
                let text = "padded steps are computed like others, as while gradients are enabled; without these, PyTorch sets them to 0";
                self.note(text.to_owned());
                return Ok(Some(Value::bool(false)));
            }
            _ => {}
        }
        if let Some(value) = self.on_tensors(namespace, name, args, kwargs)? {
            return Ok(Some(value));
        }
        if !kwargs.is_empty() {
            return Ok(None);
        }
        match args.first() {
            Some(Value::List(_)) => {
                if let Some(value) = self.on_list(name, args)? {
                    return Ok(Some(value));
                }
            }
            Some(Value::Str(_) | Value::UnknownStr(_)) => {
                if let Some(value) = self.on_text(name, args)? {
                    return Ok(Some(value));
                }
            }
            _ => {}
        }
        self.on_values(name, args)
    }

    /// The operator and arguments that mean today what the operator meant when the archive was
    /// written.
    fn upgraded(
        &mut self,
        namespace: &str,
        name: &str,
        mut args: Vec<Value>,
        mut kwargs: Kwargs,
    ) -> Step<(String, Vec<Value>, Kwargs)> {
        let version = self.cx.archive.version();
        let has = |kwargs: &Kwargs, key: &str| kwargs.iter().any(|(n, _)| n == key);
        if namespace == "aten" {
            match name {
                "div" | "div_"
                    if version < 4
                        && args.len() == 2
                        && kwargs.is_empty()
                        && args.iter().all(|a| self.is_integer(a)) =>
                {
                    kwargs.push(("rounding_mode".into(), Value::str("trunc")));
                }
                "full" if version < 5 && !has(&kwargs, "dtype") && !has(&kwargs, "out") => {
                    kwargs.push(("dtype".into(), Value::int(6)));
                }
                "linspace" if version < 8 && args.len() < 3 && !has(&kwargs, "steps") => {
                    args.push(Value::int(100));
                }
                "logspace" if version < 9 && args.len() < 3 && !has(&kwargs, "steps") => {
                    args.push(Value::int(100));
                }
                _ => {}
            }
        }
        // Functions of the language, not of the dispatcher: a number before a tensor.
        let swaps = matches!(name, "add" | "mul" | "eq" | "ne");
        if let [number, Value::Tensor(_)] = args.as_slice()
            && swaps
            && number.number().is_some()
        {
            args.swap(0, 1);
        }
        Ok((name.to_owned(), args, kwargs))
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
            Some(dtype) => self.operator("aten", "to", vec![tensor, dtype], Kwargs::new()),
        }
    }

    fn is_integer(&self, value: &Value) -> bool {
        match value {
            Value::Int(_) | Value::Bool(_) => true,
            Value::Tensor(name) => {
                let dtype = self.meta(name).map(|meta| meta.dtype);
                dtype.is_ok_and(|dtype| dtype.is_int() || dtype == DType::Bool)
            }
            _ => false,
        }
    }
}
