//! Operators of ATen on quantised tensors, and those that make quantised tensors.

use super::rules::QuantRule;
use crate::{
    eval::{Evaluator, Step, call::Kwargs, unsupported},
    quantized::{Given, wrap},
    schema::Type,
    value::{
        Value, args,
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
        let resamples = base.contains("upsample") || base == "__interpolate";
        let keeps_place = matches!(base, "clone" | "contiguous" | "detach" | "alias");
        if matches!(first.scheme, Scheme::Channels { .. })
            && (rule == QuantRule::Permute && !keeps_place || resamples)
        {
            let name = if resamples { base } else { name };
            return unsupported(format!("{namespace}::{name} of a tensor quantised per channel"));
        }
        if resamples {
            return self.resampled(first, (namespace, base), args, kwargs);
        }
        let inner = args.iter().map(|arg| self.operand_of(arg, floats));
        let inner = inner.collect::<Step<Vec<_>>>()?;
        let named =
            kwargs.iter().map(|(key, arg)| Ok((key.clone(), self.operand_of(arg, floats)?)));
        let named = named.collect::<Step<Kwargs>>()?;
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
                let written = self.aten("copy_", args![&old.ints, &new.ints])?;
                self.wrapped(written, &Quantized { scheme, ..(**old).clone() })
            }
            _ => Ok(made),
        }
    }

    /// Resampling commutes with the scale. It runs with a scale of 1, because many results are in
    /// the middle between two integers.
    fn resampled(
        &mut self,
        first: &Quantized,
        (namespace, name): (&str, &str),
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Value> {
        let mut steps = first.clone();
        match &mut steps.scheme {
            Scheme::Known { scale, .. } => *scale = 1.0,
            Scheme::Computed { scale, .. } | Scheme::Channels { scales: scale, .. } => {
                *scale = self.aten_tensor("ones_like", args![&*scale])?;
            }
        }
        let mut args = args.to_vec();
        if let Some(place) = args.first_mut() {
            *place = self.floats(&steps)?;
        }
        let made = self.operator(namespace, name, args, kwargs.clone())?;
        match self.quantized(made, first.kind, &steps.scheme)? {
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
            ("dequantize", _) => self.operand_of(args.first().unwrap_or(&first.into()), true)?,
            ("int_repr", _) => self.ints_of(first)?.into(),
            ("q_scale", Scheme::Known { scale, .. }) => (*scale).into(),
            ("q_zero_point", Scheme::Known { zero_point, .. }) => (*zero_point).into(),
            ("q_scale", Scheme::Computed { scale, .. }) => {
                self.scalar_of(&scale.into(), &Type::Float)?
            }
            ("q_zero_point", Scheme::Computed { zero_point, .. }) => {
                self.scalar_of(&zero_point.into(), &Type::Int)?
            }
            ("q_per_channel_scales", Scheme::Channels { scales, .. }) => scales.into(),
            ("q_per_channel_zero_points", Scheme::Channels { zero_points, .. }) => {
                zero_points.into()
            }
            ("q_per_channel_axis", Scheme::Channels { axis, .. }) => (*axis).into(),
            ("qscheme", scheme) => i64::from(matches!(scheme, Scheme::Channels { .. })).into(),
            ("dtype", _) => first.kind.number().into(),
            ("is_quantized", _) => true.into(),
            ("to" | "cpu", _) if matches!(args.first(), Some(Value::Quantized(_))) => first.into(),
            _ => return Ok(None),
        }))
    }

    /// An argument with integers or floats in place of quantised tensors.
    fn operand_of(&mut self, value: &Value, floats: bool) -> Step<Value> {
        match value {
            Value::Quantized(quantized) if floats => self.floats(quantized),
            Value::Quantized(quantized) => Ok(self.ints_of(quantized)?.into()),
            Value::List(list) if self.first_quantized(value).is_some() => {
                let mut items = self.items(*list).to_vec();
                for item in &mut items {
                    *item = self.operand_of(item, floats)?;
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
                let items = self.items(list).to_vec().into_iter();
                let items = items.map(|item| self.wrapped(item, like)).collect::<Step<_>>()?;
                self.list(items, Some(Type::Tensor))?
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
                let items = tuple.items.iter();
                let items = items.map(|item| self.requantized(item.clone(), kind, scheme));
                let items = items.collect::<Step<_>>()?;
                self.tuple(items, tuple.class.clone())
            }
            _ => Ok(value),
        }
    }

    /// `quantize_per_tensor(x, scale, zero_point, dtype)`, also of lists, and
    /// `_make_per_tensor_quantized_tensor(ints, scale, zero_point)`.
    pub(crate) fn new_per_tensor(&mut self, name: &str, given: &Given) -> Step<Value> {
        if let Value::List(list) = given.get("tensors") {
            let (scales, zeros) = (given.get("scales"), given.get("zero_points"));
            let mut items = self.items(list).to_vec();
            for (at, item) in items.iter_mut().enumerate() {
                let scale = self.aten("select", args![&scales, 0, at])?;
                let zero = self.aten("select", args![&zeros, 0, at])?;
                let scheme = self.scheme(&scale, &zero)?;
                *item = self.quantized(item.clone(), given.kind()?, &scheme)?;
            }
            return self.list(items, Some(Type::Tensor));
        }
        let scheme = self.scheme(&given.get("scale"), &given.get("zero_point"))?;
        self.new_quantized(name, given, scheme)
    }

    /// `quantize_per_channel(x, scales, zero_points, axis, dtype)`, and its kin of integers.
    pub(crate) fn new_per_channel(&mut self, name: &str, given: &Given) -> Step<Value> {
        let scales = given.first(&["scales", "scale"]);
        let zeros = given.first(&["zero_points", "zero_point"]);
        let (Value::Tensor(scales), Value::Tensor(zero_points), Some(axis)) =
            (scales, zeros, given.get("axis").as_int())
        else {
            return unsupported("this quantisation per channel");
        };
        self.new_quantized(name, given, Scheme::Channels { scales, zero_points, axis })
    }

    /// A quantised tensor of floats, or of its integers.
    fn new_quantized(&mut self, name: &str, given: &Given, scheme: Scheme) -> Step<Value> {
        let x = given.get("self");
        if name.starts_with("quantize_") {
            return self.quantized(x, given.kind()?, &scheme);
        }
        match Kind::of_ints(self.meta(x.tensor()?)?.dtype) {
            Some(kind) => Ok(wrap(x.tensor()?.clone(), kind, scheme)),
            None => unsupported("a quantised tensor of these integers"),
        }
    }
}

/// The scheme of functions whose range is known: `sigmoid` and `tanh`.
fn own_scheme(kind: Kind, range: f64, centred: bool) -> Scheme {
    let (low, high) = kind.range();
    let steps = (high - low + 1) as f64;
    let zero_point = match (centred, kind) {
        (true, Kind::Quint8) => 128,
        (true, _) | (false, Kind::Qint32) => 0,
        (false, _) => low,
    };
    Scheme::Known { scale: range / steps, zero_point }
}
