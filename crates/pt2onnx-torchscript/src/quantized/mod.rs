//! Quantised tensors: an operator dequantises what it reads, computes with floats, and quantises
//! the result, as QDQ models do. Quantised inputs and results are three tensors of the model: the
//! integers, the scale and the zero point.

mod operators;
mod packed;
mod recurrent;

use crate::{
    eval::{
        Evaluator, Step, arith::to_float, call::Kwargs, const_eval::elements, overload::Bound,
        unsupported,
    },
    schema::Schema,
    types::Contents,
    value::{
        Value, args, known,
        quantized::{Quantized, Scheme},
    },
};
use pt2onnx_fx::{Constant, Name};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};
use pt2onnx_torchscript_archive::{Size, quantized::Kind};
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

    /// The quantised element type that a call asks for.
    fn kind(&self) -> Step<Kind> {
        match self.get("dtype").as_int().and_then(Kind::of_number) {
            Some(kind) => Ok(kind),
            None => unsupported("this quantised element type"),
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
        let make = match (namespace, name) {
            ("quantized", _) => Self::quantized_operator,
            ("aten", "quantize_per_tensor" | "_make_per_tensor_quantized_tensor") => {
                Self::new_per_tensor
            }
            ("aten", "quantize_per_channel" | "_make_per_channel_quantized_tensor") => {
                Self::new_per_channel
            }
            ("aten", "quantize_per_tensor_dynamic") => |ev: &mut Self, _: &str, given: &Given| {
                ev.by_own_range(given.get("self"), given.kind()?, given.is_true("reduce_range"))
            },
            ("aten", "quantized_lstm" | "quantized_gru") => Self::quantized_layers,
            _ => {
                let mut all = args.iter().chain(kwargs.iter().map(|(_, value)| value));
                let Some(first) = all.find_map(|value| self.first_quantized(value)) else {
                    return Ok(None);
                };
                return self.on_quantized(&first, (namespace, name), args, kwargs).map(Some);
            }
        };
        let (schema, bound) = self.overload(&format!("{namespace}::{name}"), args, kwargs)?;
        make(self, name, &Given { schema, bound }).map(Some)
    }

    /// An input that is a quantised tensor with one scale: `x`, `x_scale` and `x_zero_point`, of
    /// the types that PyTorch's exporter of TorchScript gives them.
    pub(crate) fn quantized_input(
        &mut self,
        path: &str,
        dtype: DType,
        sizes: &[Size],
    ) -> Step<Value> {
        let Some(kind) = Kind::of_ints(dtype) else {
            return unsupported(format!("an input that is quantised to {dtype}"));
        };
        let ints = self.tensor_input(path, dtype, sizes)?.tensor()?.clone();
        let scale = self.tensor_input(&format!("{path}_scale"), DType::F64, &[])?;
        let zero_point = self.tensor_input(&format!("{path}_zero_point"), DType::I64, &[])?;
        let scale = self.cast(scale, DType::F32)?.tensor()?.clone();
        let zero_point = zero_point.tensor()?.clone();
        Ok(wrap(ints, kind, Scheme::Computed { scale, zero_point }))
    }

    /// The integers of a quantised result, its scales as float32, and its zero points, which are of
    /// the type of the integers.
    pub(crate) fn quantized_parts(&mut self, quantized: &Quantized) -> Step<[Value; 3]> {
        let (ints, dtype) = (self.ints_of(quantized)?, quantized.kind.ints());
        let (scale, zero_point) = match &quantized.scheme {
            Scheme::Known { scale, zero_point } => (
                self.scalar_tensor(&Value::float(*scale), DType::F32)?,
                self.scalar_tensor(&Value::int(*zero_point), dtype)?,
            ),
            Scheme::Computed { scale, zero_point }
            | Scheme::Channels { scales: scale, zero_points: zero_point, .. } => {
                (self.cast(scale, DType::F32)?, self.cast(zero_point, dtype)?)
            }
        };
        Ok([ints.into(), scale, zero_point])
    }

    /// The first quantised tensor of a value.
    fn first_quantized(&self, value: &Value) -> Option<Arc<Quantized>> {
        match value {
            Value::Quantized(quantized) => Some(quantized.clone()),
            // The items of a list are of one type; long ones are not looked through.
            Value::List(list) => match self.items(*list).first() {
                Some(Value::Quantized(quantized)) => Some(quantized.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// A tensor with other elements.
    fn cast(&mut self, x: impl Into<Value>, dtype: DType) -> Step<Value> {
        self.aten("to", vec![x.into(), dtype.into()])
    }

    /// The floats, rounded to half precision.
    fn halved(&mut self, x: impl Into<Value>) -> Step<Value> {
        let half = self.cast(x, DType::F16)?;
        self.cast(half, DType::F32)
    }

    /// Quantises a tensor, or dequantises integers.
    fn decomposed(&mut self, op: &str, tensor: Value, kind: Kind, scheme: &Scheme) -> Step<Value> {
        let (by, params) = match scheme {
            Scheme::Known { scale, zero_point } => ("tensor", args![*scale, *zero_point]),
            Scheme::Computed { scale, zero_point } => ("tensor", args![scale, zero_point]),
            Scheme::Channels { scales, zero_points, axis } => {
                ("channel", args![scales, zero_points, *axis])
            }
        };
        let (low, high) = kind.range();
        let args = [vec![tensor], params, args![low, high, kind.ints()]].concat();
        self.operator("quantized_decomposed", &format!("{op}_per_{by}"), args, Kwargs::new())
    }

    fn floats(&mut self, quantized: &Quantized) -> Step<Value> {
        let ints = self.ints_of(quantized)?;
        self.decomposed("dequantize", ints.into(), quantized.kind, &quantized.scheme)
    }

    /// A float tensor quantised.
    fn quantized(&mut self, value: Value, kind: Kind, scheme: &Scheme) -> Step<Value> {
        if kind == Kind::Quint4x2 {
            return unsupported("quantising to quint4x2");
        }
        let ints = self.decomposed("quantize", value, kind, scheme)?;
        Ok(wrap(ints.tensor()?.clone(), kind, scheme.clone()))
    }

    /// The integers, one in each element.
    fn ints_of(&mut self, quantized: &Quantized) -> Step<Name> {
        if quantized.kind != Kind::Quint4x2 {
            return Ok(self.current(&quantized.ints));
        }
        self.formula("unpack_int4", args![&quantized.ints])?.tensor().cloned()
    }

    /// A scale and zero point that are given as numbers or tensors.
    fn scheme(&mut self, scale: &Value, zero_point: &Value) -> Step<Scheme> {
        let known = (self.fixed_number(scale), self.fixed_number(zero_point));
        if let (Some(scale), Some(zero_point)) = known {
            return Ok(Scheme::Known { scale, zero_point: zero_point as i64 });
        }
        let mut tensor = |value| self.number_tensor(value)?.tensor().cloned();
        Ok(Scheme::Computed { scale: tensor(scale)?, zero_point: tensor(zero_point)? })
    }

    /// A number that is known, or that is an element of the archive.
    fn fixed_number(&self, value: &Value) -> Option<f64> {
        if let Value::Tensor(name) = value {
            return self.saved_number(name);
        }
        let expr = value.number()?;
        known(expr).or_else(|| {
            let symbol = expr.as_symbol().map(str::to_owned).or_else(|| converted(expr));
            self.saved_number(self.numbers.read_from.get(&symbol?)?)
        })
    }

    /// The element of a tensor that the archive holds, which nothing has written into.
    fn saved_number(&self, name: &Name) -> Option<f64> {
        if let Some(elements) = self.elements_of(name) {
            let [only] = elements.as_slice() else { return None };
            return known(only);
        }
        let root = self.memory.class_of(name);
        let tensor = self.saved_tensor(root)?;
        if tensor.numel() != 1 || self.memory.written.contains(root) {
            return None;
        }
        known(elements(tensor)?.first()?)
    }

    /// The tensor of the archive that is this parameter or buffer.
    fn saved_tensor(&self, input: &Name) -> Option<&Tensor> {
        let spec = self.interface.specs.iter().find(|spec| spec.name() == Some(input))?;
        let target = spec.target()?;
        let held = self.interface.weights.get(&**target);
        held.or_else(|| match self.interface.constants.get(&**target) {
            Some(Constant::Tensor(tensor)) => Some(tensor),
            _ => None,
        })
    }

    /// The elements of a tensor of the archive as known integers.
    fn saved_ints(&self, name: &Name) -> Option<Vec<i64>> {
        let elements = match (self.saved_tensor(name), self.state.facts.contents.get(name)) {
            (Some(tensor), _) | (None, Some(Contents::Exact(tensor))) => elements(tensor)?,
            (None, Some(Contents::Exprs(elements))) => elements.clone(),
            (None, None) => return None,
        };
        elements.iter().map(Expr::as_int).collect()
    }
}

/// The symbol of `float(symbol)`.
fn converted(expr: &Expr) -> Option<String> {
    let symbols = expr.symbols();
    let only = symbols.iter().next()?;
    (*expr == to_float(&Expr::symbol(only))).then(|| only.to_string())
}

fn wrap(ints: Name, kind: Kind, scheme: Scheme) -> Value {
    Value::Quantized(Arc::new(Quantized { ints, kind, scheme }))
}
