//! Operators on quantised tensors: those of ATen by the rules of a table, and those of
//! `quantized::`, which compute with floats.

use super::{Given, wrap};
use crate::{
    eval::{Evaluator, Step, call::Kwargs, expected, unsupported},
    schema::Type,
    value::{
        Value, args,
        quantized::{Quantized, Scheme},
    },
};
use pt2onnx_torchscript_archive::quantized::Kind;
use std::sync::Arc;

/// The way in which an operator of ATen treats quantised operands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum QuantRule {
    /// It answers from the integers.
    Query,
    /// It moves elements: it runs on the integers.
    Permute,
    /// It computes with floats, and the result is quantised as the first operand is.
    Passthrough,
    /// It computes with floats, and the result is quantised in the type's own way, with this range.
    Fixed { range: f64, centred: bool },
    /// It computes with floats.
    Dequantize,
}

impl QuantRule {
    /// The rule for an operator, without the `_` of one that writes.
    fn of(namespace: &str, name: &str) -> Option<Self> {
        if namespace == "prim" {
            return Some(Self::Query);
        }
        let row = RULES.iter().find(|(_, names)| names.split_whitespace().any(|of| of == name));
        let upsamples = name.trim_start_matches('_').starts_with("upsample_");
        row.map(|(rule, _)| *rule).or(upsamples.then_some(Self::Passthrough))
    }
}

/// The operators of each rule.
const RULES: &[(QuantRule, &str)] = &[
    (
        QuantRule::Query,
        "dim element_size get_device is_complex is_contiguous is_floating_point len numel \
        requires_grad_ shape size stride sym_size",
    ),
    (
        QuantRule::Permute,
        "alias alpha_dropout as_strided channel_shuffle chunk clone contiguous detach dropout \
        expand expand_as feature_dropout flatten flip gather index index_select moveaxis movedim \
        narrow numpy_T permute pixel_shuffle pixel_unshuffle repeat repeat_interleave reshape \
        reshape_as roll rot90 select slice split split_with_sizes squeeze swapaxes swapdims t tile \
        transpose unbind unflatten unfold unsqueeze view view_as",
    ),
    (
        QuantRule::Passthrough,
        "__interpolate adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d \
        adaptive_max_pool1d adaptive_max_pool2d amax amin avg_pool1d avg_pool2d avg_pool3d cat \
        clamp clamp_max clamp_min clip concat concatenate constant_pad_nd hardtanh leaky_relu \
        masked_fill max max_pool1d max_pool2d max_pool3d maximum mean min minimum pad \
        quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d reflection_pad1d \
        reflection_pad2d relu relu6 replication_pad1d replication_pad2d replication_pad3d sort \
        stack threshold topk",
    ),
    (QuantRule::Fixed { range: 1.0, centred: false }, "hardsigmoid sigmoid"),
    (QuantRule::Fixed { range: 2.0, centred: true }, "tanh"),
    (QuantRule::Dequantize, "Bool Float Int argmax argmin eq equal ge gt item le lt ne tolist"),
];

/// Operators of `quantized::` that ATen has for floats, by the name in ATen, and the arguments that
/// ATen's take: parameters and constants.
const COMPUTES: &[(&str, &str)] = &[
    ("add", "qa qb"),
    (
        "batch_norm batch_norm1d batch_norm2d batch_norm3d",
        "qx weight bias mean var False 0.1 eps False",
    ),
    ("cat", "qx dim"),
    ("celu", "self alpha"),
    ("clamp", "qx min max"),
    ("elu", "self alpha scale input_scale"),
    ("group_norm", "input num_groups weight bias eps"),
    ("hardswish", "input"),
    ("instance_norm", "input weight bias None None True 0.1 eps False"),
    ("layer_norm", "input normalized_shape weight bias eps"),
    ("leaky_relu", "qx negative_slope"),
    ("matmul", "qa qb"),
    ("max_pool1d", "qx kernel_size stride padding dilation ceil_mode"),
    ("max_pool2d", "qx kernel_size stride padding dilation ceil_mode"),
    ("mul", "qa qb"),
    ("prelu", "qx weight"),
    ("relu6", "qx"),
    ("sigmoid", "qx"),
    ("softmax", "qx dim"),
    ("threshold", "qx threshold value"),
];

impl Evaluator<'_> {
    /// Calls an operator of `quantized::`.
    pub(super) fn quantized_operator(&mut self, name: &str, given: &Given) -> Step<Value> {
        if let Some(packed) = self.prepack(name, given) {
            return Ok(Value::Packed(Arc::new(packed)));
        }
        let packed = given.first(&["packed_weight", "W_prepack", "packed_weights", "weight"]);
        if let Value::Packed(packed) = &packed {
            return self.with_packed(name, packed, given);
        }
        if name.ends_with("_cell_dynamic") {
            return self.quantized_cell(name, given);
        }
        let (base, relu) = match name.strip_suffix("_relu") {
            Some(base) if base != "leaky" => (base, true),
            _ => (name, false),
        };
        match base {
            "dropout" => return Ok(given.get("self")),
            "linear_dynamic_fp16_unpacked_weight" => {
                let weight = self.halved(given.get("weight"))?;
                return self.aten("linear", vec![given.get("X"), weight, given.get("bias")]);
            }
            "add_scalar" | "mul_scalar" => return self.with_scalar(base, given, relu),
            "add" | "mul" if given.get("b").number().is_some() => {
                return self.with_scalar(base, given, relu);
            }
            _ => {}
        }
        let row = COMPUTES.iter().find(|(names, _)| names.split(' ').any(|of| of == base));
        let Some((names, operands)) = row else {
            return unsupported(format!("quantized::{name}"));
        };
        let mut args = Vec::new();
        for operand in operands.split(' ') {
            args.push(match operand {
                "None" => Value::None,
                "True" | "False" => (operand == "True").into(),
                _ => match operand.parse::<f64>() {
                    Ok(number) => number.into(),
                    Err(_) => self.operand_of(&given.get(operand), true)?,
                },
            });
        }
        // Arguments behind the last given one have their default values.
        while args.len() > 1 && matches!(args.last(), Some(Value::None)) {
            args.pop();
        }
        let made = self.aten(names.split(' ').next().unwrap_or(base), args)?;
        self.finished(made, given, relu)
    }

    /// `relu` if it is asked for, and the quantisation that the call gives; that of the operand, if
    /// it gives none.
    pub(super) fn finished(&mut self, made: Value, given: &Given, relu: bool) -> Step<Value> {
        let made = if relu { self.aten("relu", vec![made])? } else { made };
        // `scale` of `elu` is another parameter.
        let elu = &*given.schema.name == "elu";
        let scale = match given.first(&["output_scale", "Y_scale_i"]) {
            Value::None if !elu => given.get("scale"),
            scale => scale,
        };
        let zero_point = given.first(&["output_zero_point", "Y_zero_point_i", "zero_point"]);
        let operand = given.first(&["qx", "qa", "X", "self", "input"]);
        match (&scale, self.first_quantized(&operand)) {
            (Value::None, Some(like)) => self.requantized(made, like.kind, &like.scheme),
            (Value::None, None) => Ok(made),
            (_, Some(like)) => {
                let scheme = self.scheme(&scale, &zero_point)?;
                self.requantized(made, like.kind, &scheme)
            }
            _ => expected("a quantised tensor", &operand),
        }
    }

    /// A number added or multiplied. PyTorch gives the result another scale and zero point, so that
    /// all integers stay (nearly) unchanged.
    fn with_scalar(&mut self, name: &str, given: &Given, relu: bool) -> Step<Value> {
        let Value::Quantized(x) = given.get("qa") else {
            return expected("a quantised tensor", &given.get("qa"));
        };
        let number = given.get("b");
        let Some(number) = self.fixed_number(&number) else {
            return expected("a number that is known", &number);
        };
        let Quantized { kind, scheme: Scheme::Known { scale, zero_point }, .. } = *x else {
            return unsupported("a number with a tensor whose scale is computed");
        };
        let floats = self.floats(&x)?;
        let (op, number, scheme) = match name {
            "mul" | "mul_scalar" => ("mul", number, multiplied(kind, scale, zero_point, number)),
            _ => {
                let steps = (number / scale).round_ties_even();
                ("add", steps * scale, added(kind, scale, zero_point, steps))
            }
        };
        let made = self.aten(op, args![floats, number])?;
        let made = if relu { self.aten("relu", vec![made])? } else { made };
        self.quantized(made, kind, &scheme)
    }

    /// An operator of ATen one of whose operands is quantised; `first` is the first such operand.
    pub(super) fn on_quantized(
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
    pub(super) fn operand_of(&mut self, value: &Value, floats: bool) -> Step<Value> {
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
    pub(super) fn requantized(&mut self, value: Value, kind: Kind, scheme: &Scheme) -> Step<Value> {
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
    pub(super) fn new_per_tensor(&mut self, name: &str, given: &Given) -> Step<Value> {
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
    pub(super) fn new_per_channel(&mut self, name: &str, given: &Given) -> Step<Value> {
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

/// The scheme of a product with a number.
fn multiplied(kind: Kind, scale: f64, zero_point: i64, number: f64) -> Scheme {
    let (low, high) = kind.range();
    if number > 0.0 {
        Scheme::Known { scale: scale * number, zero_point }
    } else if number < 0.0 {
        Scheme::Known { scale: -scale * number, zero_point: high - (zero_point - low) }
    } else {
        Scheme::Known { scale: 1.0, zero_point: 0 }
    }
}

/// The scheme of a sum with a number of steps.
fn added(kind: Kind, scale: f64, zero_point: i64, steps: f64) -> Scheme {
    let (low, high) = kind.range();
    let (first, last) = (low as f64, high as f64);
    let moved = zero_point as f64 - steps;
    if first > moved {
        Scheme::Known { scale: (last - moved) / (last - first) * scale, zero_point: low }
    } else if last < moved {
        Scheme::Known { scale: (moved - first) / (last - first) * scale, zero_point: high }
    } else {
        Scheme::Known { scale, zero_point: moved as i64 }
    }
}
