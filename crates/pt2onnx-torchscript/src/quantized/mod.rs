//! Quantised tensors: an operator dequantises what it reads, computes with floats, and quantises
//! the result, as QDQ models do.

mod calls;
mod dynamic;
mod embedding;
mod interface;
mod packed;
mod plain;
mod recurrent;
mod rules;

use crate::{
    eval::{Evaluator, Step, call::Kwargs, expected, overload::Bound, unsupported},
    schema::Schema,
    types::Contents,
    value::{
        Value, known,
        quantized::{Kind, Quantized, Scheme},
    },
};
use pt2onnx_fx::{Constant, InputSpec, Name};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;
use std::sync::Arc;

/// The arguments of a call by the names of its schema.
pub(crate) struct Given {
    schema: Schema,
    bound: Bound,
}

impl Given {
    /// The argument of this name; None if it is not given.
    fn get(&self, name: &str) -> Value {
        let at = self.schema.params.iter().position(|param| param.name == name);
        at.and_then(|at| self.bound.get(at)).cloned().flatten().unwrap_or(Value::None)
    }

    /// The first argument that one of these names has.
    fn first(&self, names: &[&str]) -> Value {
        let mut found = names.iter().map(|name| self.get(name));
        found.find(|value| !matches!(value, Value::None)).unwrap_or(Value::None)
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name).as_bool() == Some(true)
    }
}

/// The name of a scheme in the names of operators, and its parameters.
fn parameters(scheme: &Scheme) -> (&'static str, Vec<Value>) {
    let tensor = |name: &Name| Value::Tensor(name.clone());
    match scheme {
        Scheme::Known { scale, zero_point } => {
            ("per_tensor", vec![Value::float(*scale), Value::int(*zero_point)])
        }
        Scheme::Computed { scale, zero_point } => {
            ("per_tensor", vec![tensor(scale), tensor(zero_point)])
        }
        Scheme::Channels { scales, zero_points, axis } => {
            ("per_channel", vec![tensor(scales), tensor(zero_points), Value::int(*axis)])
        }
    }
}

impl Evaluator<'_> {
    /// Calls an operator that takes or makes quantised tensors or packed weights; `None` if this is
    /// another one.
    pub(crate) fn quantized_call(
        &mut self,
        namespace: &str,
        name: &str,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Option<Value>> {
        if namespace == "quantized" {
            return self.quantized_operator(name, args, kwargs).map(Some);
        }
        match (namespace, name) {
            ("aten", "quantize_per_tensor" | "_make_per_tensor_quantized_tensor") => {
                return self.new_per_tensor(name, args, kwargs).map(Some);
            }
            ("aten", "quantize_per_channel" | "_make_per_channel_quantized_tensor") => {
                return self.new_per_channel(name, args, kwargs).map(Some);
            }
            ("aten", "quantize_per_tensor_dynamic") => {
                return self.new_dynamic(args, kwargs).map(Some);
            }
            ("aten", "quantized_lstm" | "quantized_gru") => {
                return self.quantized_layers(name, args, kwargs).map(Some);
            }
            _ => {}
        }
        let mut all = args.iter().chain(kwargs.iter().map(|(_, value)| value));
        match all.find_map(|value| self.first_quantized(value)) {
            Some(first) => self.on_quantized(&first, (namespace, name), args, kwargs).map(Some),
            None => Ok(None),
        }
    }

    /// The first quantised tensor of a value.
    fn first_quantized(&self, value: &Value) -> Option<Arc<Quantized>> {
        match value {
            Value::Quantized(quantized) => Some(quantized.clone()),
            Value::List(list) => self.items(*list).iter().find_map(|item| match item {
                Value::Quantized(quantized) => Some(quantized.clone()),
                _ => None,
            }),
            _ => None,
        }
    }

    /// Arguments by the names of the schema that fits.
    fn given(&mut self, full: &str, args: &[Value], kwargs: &Kwargs) -> Step<Given> {
        let (schema, bound) = self.overload(full, args, kwargs)?;
        Ok(Given { schema, bound })
    }

    /// The floats of a quantised tensor; other values stay.
    fn dequantized(&mut self, value: &Value) -> Step<Value> {
        let Value::Quantized(quantized) = value else {
            return Ok(value.clone());
        };
        let ints = self.ints_of(quantized)?;
        let (low, high, number) = quantized.kind.range();
        let range = [low, high, number].map(Value::int);
        let (by, params) = parameters(&quantized.scheme);
        let mut args = vec![Value::Tensor(ints)];
        args.extend(params.into_iter().chain(range));
        self.operator("quantized_decomposed", &format!("dequantize_{by}"), args, Kwargs::new())
    }

    /// A float tensor quantised.
    fn quantized(&mut self, value: Value, kind: Kind, scheme: &Scheme) -> Step<Value> {
        let (low, high, number) = kind.range();
        if kind == Kind::Quint4x2 {
            return unsupported("quantising to quint4x2");
        }
        let (by, params) = parameters(scheme);
        let mut args = vec![value];
        args.extend(params.into_iter().chain([low, high, number].map(Value::int)));
        let name = format!("quantize_{by}");
        match self.operator("quantized_decomposed", &name, args, Kwargs::new())? {
            Value::Tensor(ints) => Ok(wrap(ints, kind, scheme.clone())),
            other => expected("a tensor", &other),
        }
    }

    /// The integers, one in each element.
    fn ints_of(&mut self, quantized: &Quantized) -> Step<Name> {
        if quantized.kind != Kind::Quint4x2 {
            return Ok(self.current(&quantized.ints));
        }
        let sizes = self.meta(&quantized.ints)?.sizes.clone();
        let bytes = Value::Tensor(quantized.ints.clone());
        let wide = self.aten("to", vec![bytes, Value::int(3)])?;
        let low = self.aten("bitwise_and", vec![wide.clone(), Value::int(15)])?;
        let high = self.aten("bitwise_right_shift", vec![wide, Value::int(4)])?;
        let both = self.list(vec![low, high], None)?;
        let both = self.aten("stack", vec![both, Value::int(-1)])?;
        let mut shape: Vec<Value> = sizes.into_iter().map(Value::Int).collect();
        if let Some(Value::Int(last)) = shape.pop() {
            shape.push(Value::Int(last * 2));
        }
        let shape = self.list(shape, None)?;
        let ints = self.aten("reshape", vec![both, shape])?;
        match self.aten("to", vec![ints, Value::int(0)])? {
            Value::Tensor(ints) => Ok(ints),
            other => expected("a tensor", &other),
        }
    }

    /// A scale and zero point that are given as numbers or tensors.
    fn scheme(&mut self, scale: &Value, zero_point: &Value) -> Step<Scheme> {
        if let (Some(scale), Some(zero_point)) =
            (self.fixed_number(scale), self.fixed_number(zero_point))
        {
            return Ok(Scheme::Known { scale, zero_point: zero_point as i64 });
        }
        let mut tensor = |value: &Value| match value {
            Value::Tensor(name) => Ok(name.clone()),
            _ => match self.operator("prim", "NumToTensor", vec![value.clone()], Kwargs::new())? {
                Value::Tensor(name) => Ok(name),
                other => expected("a number", &other),
            },
        };
        Ok(Scheme::Computed { scale: tensor(scale)?, zero_point: tensor(zero_point)? })
    }

    /// A number that is known, or that is an element of the archive.
    fn fixed_number(&self, value: &Value) -> Option<f64> {
        match value {
            Value::Tensor(name) => self.saved_number(name),
            _ => {
                let expr = value.number()?;
                known(expr).or_else(|| {
                    let symbol = expr.as_symbol().map(str::to_owned).or_else(|| converted(expr));
                    self.saved_number(self.numbers.read_from.get(&symbol?)?)
                })
            }
        }
    }

    /// The element of a tensor that the archive holds, which nothing has written into.
    fn saved_number(&self, name: &Name) -> Option<f64> {
        if let Some(elements) = self.elements_of(name) {
            return match elements.as_slice() {
                [only] => known(only),
                _ => None,
            };
        }
        let root = self.memory.class_of(name);
        let tensor = self.saved_tensor(self.target_of(root)?)?;
        if tensor.numel() != 1 || self.memory.written.contains(root) {
            return None;
        }
        known(crate::eval::const_eval::elements(tensor)?.first()?)
    }

    /// The path of the parameter or buffer that is this input.
    fn target_of(&self, input: &Name) -> Option<&Name> {
        match self.interface.specs.iter().find(|spec| spec.name() == Some(input))? {
            InputSpec::Parameter { target, .. } | InputSpec::Buffer { target, .. } => Some(target),
            _ => None,
        }
    }

    /// The tensor of the archive with this path.
    fn saved_tensor(&self, target: &str) -> Option<&Tensor> {
        self.interface.weights.get(target).or_else(|| match self.interface.constants.get(target) {
            Some(Constant::Tensor(tensor)) => Some(tensor),
            _ => None,
        })
    }

    /// The elements of a tensor of the archive as known integers.
    fn saved_ints(&self, name: &Name) -> Option<Vec<i64>> {
        let elements = match self.saved_tensor(self.target_of(name)?) {
            Some(tensor) => crate::eval::const_eval::elements(tensor)?,
            None => match self.state.facts.contents.get(name)? {
                Contents::Exact(tensor) => crate::eval::const_eval::elements(tensor)?,
                Contents::Exprs(elements) => elements.clone(),
            },
        };
        elements.iter().map(Expr::as_int).collect()
    }
}

/// The symbol of `float(symbol)`.
fn converted(expr: &Expr) -> Option<String> {
    match expr.symbols().into_iter().collect::<Vec<_>>().as_slice() {
        [only] if *expr == crate::eval::arith::to_float(&Expr::symbol(only)) => {
            Some(only.to_string())
        }
        _ => None,
    }
}

fn wrap(ints: Name, kind: Kind, scheme: Scheme) -> Value {
    Value::Quantized(Arc::new(Quantized { ints, kind, scheme }))
}
