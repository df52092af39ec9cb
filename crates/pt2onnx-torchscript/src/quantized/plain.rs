//! Operators of ATen on quantised tensors, and those that make quantised tensors.

use super::rules::QuantRule;
use crate::{
    eval::{Evaluator, Step, call::Kwargs, expected, unsupported},
    quantized::{Given, wrap},
    value::{
        Value,
        quantized::{Kind, Quantized, Scheme},
    },
};
use std::sync::Arc;

impl Evaluator<'_> {
    /// An operator of ATen one of whose operands is quantised; `first` is the first such operand.
    pub(crate) fn on_quantized(
        &mut self,
        first: &Arc<Quantized>,
        (namespace, name): (&str, &str),
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Value> {
        if let Some(answer) = self.of_quantized(first, name, args)? {
            return Ok(answer);
        }
        let base = match name.strip_suffix('_') {
            Some(base) if !base.ends_with('_') => base,
            _ => name,
        };
        let Some(rule) = QuantRule::of(namespace, base) else {
            return unsupported(format!("{namespace}::{name} of a quantised tensor"));
        };
        let floats = !matches!(rule, QuantRule::Query | QuantRule::Permute);
        if rule == QuantRule::Permute
            && matches!(first.scheme, Scheme::Channels { .. })
            && !matches!(base, "clone" | "contiguous" | "detach" | "alias")
        {
            return unsupported(format!("{namespace}::{name} of a tensor quantised per channel"));
        }
        if rule == QuantRule::Passthrough && (base.contains("upsample") || base == "__interpolate")
        {
            return self.resampled(first, (namespace, base), args, kwargs);
        }
        let mut inner = Vec::with_capacity(args.len());
        for arg in args {
            inner.push(self.operand_of(arg, floats)?);
        }
        let mut named = Kwargs::with_capacity(kwargs.len());
        for (key, arg) in kwargs {
            named.push((key.clone(), self.operand_of(arg, floats)?));
        }
        // `quantized_max_pool2d` is `max_pool2d` of floats.
        let plain = base.strip_prefix("quantized_").unwrap_or(base);
        let made = self.operator(namespace, if floats { plain } else { name }, inner, named)?;
        let scheme = match rule {
            QuantRule::Query | QuantRule::Dequantize => return Ok(made),
            QuantRule::Permute => return self.wrapped(made, first),
            QuantRule::Passthrough => first.scheme.clone(),
            QuantRule::Fixed { range, centred } => own_scheme(first.kind, range, centred),
        };
        let made = self.requantized(made, first.kind, &scheme)?;
        match (base == name, &made, args.first()) {
            (false, Value::Quantized(new), Some(Value::Quantized(old))) => {
                let ints = [&old.ints, &new.ints].map(|name| Value::Tensor(name.clone()));
                let written = self.operator("aten", "copy_", ints.to_vec(), Kwargs::new())?;
                self.wrapped(written, &Quantized { scheme, ..(**old).clone() })
            }
            _ => Ok(made),
        }
    }

    /// Resampling commutes with the scale. It runs with a scale of 1, because many results are in
    /// the middle between two integers.
    fn resampled(
        &mut self,
        first: &Arc<Quantized>,
        (namespace, name): (&str, &str),
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Value> {
        let scheme = match &first.scheme {
            Scheme::Known { zero_point, .. } => {
                Scheme::Known { scale: 1.0, zero_point: *zero_point }
            }
            Scheme::Computed { scale, zero_point } => {
                match self.aten("ones_like", vec![Value::Tensor(scale.clone())])? {
                    Value::Tensor(one) => {
                        Scheme::Computed { scale: one, zero_point: zero_point.clone() }
                    }
                    other => return expected("a tensor", &other),
                }
            }
            Scheme::Channels { .. } => {
                let what = format!("{namespace}::{name} of a tensor quantised per channel");
                return unsupported(what);
            }
        };
        let steps = wrap(first.ints.clone(), first.kind, scheme.clone());
        let mut args = args.to_vec();
        if let Some(place) = args.first_mut() {
            *place = self.dequantized(&steps)?;
        }
        let made = self.operator(namespace, name, args, kwargs.clone())?;
        match self.quantized(made, first.kind, &scheme)? {
            Value::Quantized(made) => Ok(wrap(made.ints.clone(), first.kind, first.scheme.clone())),
            other => Ok(other),
        }
    }

    /// Queries that a quantised tensor answers itself.
    fn of_quantized(
        &mut self,
        first: &Arc<Quantized>,
        name: &str,
        args: &[Value],
    ) -> Step<Option<Value>> {
        Ok(Some(match (name, &first.scheme) {
            ("dequantize", _) => match args.first() {
                Some(list @ Value::List(_)) => {
                    let mut made = Vec::new();
                    for item in self.sequence(list).unwrap_or_default() {
                        made.push(self.dequantized(&item)?);
                    }
                    self.list(made, None)?
                }
                _ => self.dequantized(&Value::Quantized(first.clone()))?,
            },
            ("int_repr", _) => Value::Tensor(self.ints_of(first)?),
            ("q_scale", Scheme::Known { scale, .. }) => Value::float(*scale),
            ("q_zero_point", Scheme::Known { zero_point, .. }) => Value::int(*zero_point),
            ("q_scale", Scheme::Computed { scale, .. }) => {
                self.scalar_of(&Value::Tensor(scale.clone()), &crate::schema::Type::Float)?
            }
            ("q_zero_point", Scheme::Computed { zero_point, .. }) => {
                self.scalar_of(&Value::Tensor(zero_point.clone()), &crate::schema::Type::Int)?
            }
            ("q_per_channel_scales", Scheme::Channels { scales, .. }) => {
                Value::Tensor(scales.clone())
            }
            ("q_per_channel_zero_points", Scheme::Channels { zero_points, .. }) => {
                Value::Tensor(zero_points.clone())
            }
            ("q_per_channel_axis", Scheme::Channels { axis, .. }) => Value::int(*axis),
            ("qscheme", Scheme::Channels { .. }) => Value::int(1),
            ("qscheme", _) => Value::int(0),
            ("dtype", _) => Value::int(first.kind.number()),
            ("is_quantized", _) => Value::bool(true),
            ("to" | "cpu", _) if matches!(args.first(), Some(Value::Quantized(_))) => {
                Value::Quantized(first.clone())
            }
            _ => return Ok(None),
        }))
    }

    /// An argument with integers or floats in place of quantised tensors.
    fn operand_of(&mut self, value: &Value, floats: bool) -> Step<Value> {
        match value {
            Value::Quantized(quantized) if floats => {
                self.dequantized(&Value::Quantized(quantized.clone()))
            }
            Value::Quantized(quantized) => Ok(Value::Tensor(self.ints_of(quantized)?)),
            Value::List(list) if self.first_quantized(value).is_some() => {
                let mut items = Vec::new();
                for item in self.items(*list).to_vec() {
                    items.push(self.operand_of(&item, floats)?);
                }
                self.list(items, None)
            }
            _ => Ok(value.clone()),
        }
    }

    /// Results of integers as quantised tensors like this one.
    fn wrapped(&mut self, value: Value, like: &Quantized) -> Step<Value> {
        Ok(match value {
            Value::Tensor(ints) => wrap(ints, like.kind, like.scheme.clone()),
            Value::List(list) => {
                let mut items = Vec::new();
                for item in self.items(list).to_vec() {
                    items.push(self.wrapped(item, like)?);
                }
                self.list(items, Some(crate::schema::Type::Tensor))?
            }
            other => other,
        })
    }

    /// Results of floats as quantised tensors. Integers, such as positions, stay.
    pub(crate) fn requantized(&mut self, value: Value, kind: Kind, scheme: &Scheme) -> Step<Value> {
        match &value {
            Value::Tensor(name) if self.meta(name)?.dtype.is_float() => {
                self.quantized(value, kind, scheme)
            }
            Value::Tuple(tuple) => {
                let mut items = Vec::new();
                for item in &tuple.items {
                    items.push(self.requantized(item.clone(), kind, scheme)?);
                }
                self.tuple(items, tuple.class.clone())
            }
            _ => Ok(value),
        }
    }

    /// `quantize_per_tensor(x, scale, zero_point, dtype)`, also of lists, and
    /// `_make_per_tensor_quantized_tensor(ints, scale, zero_point)`.
    pub(crate) fn new_per_tensor(
        &mut self,
        name: &str,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Value> {
        let given = self.given(&format!("aten::{name}"), args, kwargs)?;
        if let Value::List(list) = given.get("tensors") {
            let (scales, zeros) = (given.get("scales"), given.get("zero_points"));
            let mut made = Vec::new();
            for (at, item) in self.items(list).to_vec().into_iter().enumerate() {
                let at = Value::int(i64::try_from(at).unwrap_or(0));
                let scale = self.aten("select", vec![scales.clone(), Value::int(0), at.clone()])?;
                let zero = self.aten("select", vec![zeros.clone(), Value::int(0), at])?;
                let scheme = self.scheme(&scale, &zero)?;
                made.push(self.quantized(item, kind_of(&given)?, &scheme)?);
            }
            return self.list(made, Some(crate::schema::Type::Tensor));
        }
        let scheme = self.scheme(&given.get("scale"), &given.get("zero_point"))?;
        match name {
            "quantize_per_tensor" => self.quantized(given.get("self"), kind_of(&given)?, &scheme),
            _ => self.of_ints(&given.get("self"), scheme),
        }
    }

    /// `quantize_per_channel(x, scales, zero_points, axis, dtype)`, and its kin of integers.
    pub(crate) fn new_per_channel(
        &mut self,
        name: &str,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Value> {
        let given = self.given(&format!("aten::{name}"), args, kwargs)?;
        let scales = given.first(&["scales", "scale"]);
        let zeros = given.first(&["zero_points", "zero_point"]);
        let (Value::Tensor(scales), Value::Tensor(zero_points), Some(axis)) =
            (scales, zeros, given.get("axis").as_int())
        else {
            return unsupported("this quantisation per channel");
        };
        let scheme = Scheme::Channels { scales, zero_points, axis };
        match name {
            "quantize_per_channel" => self.quantized(given.get("self"), kind_of(&given)?, &scheme),
            _ => self.of_ints(&given.get("self"), scheme),
        }
    }

    fn of_ints(&self, ints: &Value, scheme: Scheme) -> Step<Value> {
        let Value::Tensor(name) = ints else {
            return expected("a tensor", ints);
        };
        match Kind::of_ints(self.meta(name)?.dtype) {
            Some(kind) => Ok(wrap(name.clone(), kind, scheme)),
            None => unsupported("a quantised tensor of these integers"),
        }
    }
}

/// The quantised element type that a call asks for.
pub(crate) fn kind_of(given: &Given) -> Step<Kind> {
    match given.get("dtype").as_int().and_then(Kind::of_number) {
        Some(kind) => Ok(kind),
        None => unsupported("this quantised element type"),
    }
}

/// The scheme of functions whose range is known: `sigmoid` and `tanh`.
fn own_scheme(kind: Kind, range: f64, centred: bool) -> Scheme {
    let (low, high, _) = kind.range();
    let steps = (high - low + 1) as f64;
    let middle = if kind == Kind::Quint8 { 128 } else { 0 };
    let zero_point = match (centred, kind) {
        (true, _) => middle,
        (false, Kind::Qint32) => 0,
        (false, _) => low,
    };
    Scheme::Known { scale: range / steps, zero_point }
}
