//! Runs the operators of `quantized::`.

use crate::{
    eval::{Evaluator, Step, call::Kwargs, expected, unsupported},
    quantized::{Given, packed::list_of},
    value::{
        Value,
        quantized::{Conv, Kind, Packed, Quantized, Scheme},
    },
};
use std::sync::Arc;

/// Operators of floats whose results are quantised: ATen's name, and the parameters that it takes.
const COMPUTES: &[(&str, &str, &[&str])] = &[
    ("add", "add", &["qa", "qb"]),
    ("batch_norm", "", &[]),
    ("celu", "celu", &["self", "alpha"]),
    ("clamp", "clamp", &["qx", "min", "max"]),
    ("elu", "elu", &["self", "alpha", "scale", "input_scale"]),
    ("group_norm", "group_norm", &["input", "num_groups", "weight", "bias", "eps"]),
    ("hardswish", "hardswish", &["input"]),
    ("layer_norm", "layer_norm", &["input", "normalized_shape", "weight", "bias", "eps"]),
    ("leaky_relu", "leaky_relu", &["qx", "negative_slope"]),
    ("matmul", "matmul", &["qa", "qb"]),
    (
        "max_pool1d",
        "max_pool1d",
        &["qx", "kernel_size", "stride", "padding", "dilation", "ceil_mode"],
    ),
    (
        "max_pool2d",
        "max_pool2d",
        &["qx", "kernel_size", "stride", "padding", "dilation", "ceil_mode"],
    ),
    ("mul", "mul", &["qa", "qb"]),
    ("prelu", "prelu", &["qx", "weight"]),
    ("relu6", "relu6", &["qx"]),
    ("sigmoid", "sigmoid", &["qx"]),
    ("softmax", "softmax", &["qx", "dim"]),
    ("threshold", "threshold", &["qx", "threshold", "value"]),
];

impl Evaluator<'_> {
    /// Calls an operator of `quantized::`.
    pub(crate) fn quantized_operator(
        &mut self,
        name: &str,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Value> {
        let given = self.given(&format!("quantized::{name}"), args, kwargs)?;
        if let Some(packed) = self.prepack(name, &given)? {
            return Ok(packed);
        }
        let packed = given.first(&["packed_weight", "W_prepack", "packed_weights", "weight"]);
        if let Value::Packed(packed) = &packed {
            return self.with_packed(name, packed, &given);
        }
        if name.ends_with("_cell_dynamic") {
            return self.quantized_cell(name, &given);
        }
        let (base, relu) = match name.strip_suffix("_relu") {
            Some(base) if base != "leaky" => (base, true),
            _ => (name, false),
        };
        match base {
            "dropout" => return Ok(given.get("self")),
            "linear_dynamic_fp16_unpacked_weight" => {
                let half = self.aten("to", vec![given.get("weight"), Value::int(5)])?;
                let weight = self.aten("to", vec![half, Value::int(6)])?;
                return self.aten("linear", vec![given.get("X"), weight, given.get("bias")]);
            }
            "cat" => return self.quantized_cat(&given, relu),
            "add_scalar" | "mul_scalar" => return self.with_scalar(base, &given, relu),
            "add" | "mul" if given.first(&["b"]).number().is_some() => {
                return self.with_scalar(base, &given, relu);
            }
            _ => {}
        }
        let Some(made) = self.computed_float(base, &given)? else {
            return unsupported(format!("quantized::{name}"));
        };
        self.finished(made, &given, relu)
    }

    /// An operator of packed weights.
    fn with_packed(&mut self, name: &str, packed: &Arc<Packed>, given: &Given) -> Step<Value> {
        if let Some(value) = self.unpack(name, packed)? {
            return Ok(value);
        }
        let made = match &**packed {
            Packed::Linear { .. } => {
                let x = given.get("X");
                if name.contains("with_input_q_dq") {
                    let scheme = self.scheme(&given.get("X_scale"), &given.get("X_zero_point"))?;
                    let x = self.quantized(x, Kind::Quint8, &scheme)?;
                    let x = self.dequantized(&x)?;
                    self.packed_linear(x, packed)?
                } else if name.ends_with("dynamic") {
                    self.dynamic_linear(x, packed, given.is_true("reduce_range"))?
                } else {
                    let x = self.input_of(&x, name, given)?;
                    self.packed_linear(x, packed)?
                }
            }
            Packed::Conv(conv) => {
                let x = self.input_of(&given.get("qx"), name, given)?;
                let mut made = self.packed_conv_of(x, name, conv)?;
                if name.starts_with("conv2d_add") {
                    let other = self.dequantized(&given.get("qaccum"))?;
                    made = self.aten("add", vec![made, other])?;
                }
                made
            }
            Packed::Embedding(weight) => return self.quantized_embedding(name, weight, given),
            Packed::Cell { .. } => return unsupported(format!("quantized::{name}")),
        };
        let made = if name.contains("leaky_relu") {
            self.aten("leaky_relu", vec![made, given.get("negative_slope")])?
        } else if name.contains("tanh") {
            self.aten("tanh", vec![made])?
        } else {
            made
        };
        let relu = name.contains("_relu") && !name.contains("leaky_relu");
        self.finished(made, given, relu)
    }

    /// The operand as floats: dequantised, or quantised by its own range if the operator is
    /// dynamic.
    fn input_of(&mut self, x: &Value, name: &str, given: &Given) -> Step<Value> {
        match x {
            Value::Quantized(_) => self.dequantized(x),
            _ if name.ends_with("fp16") => Ok(x.clone()),
            _ if name.ends_with("dynamic") => {
                self.through_integers(x.clone(), given.is_true("reduce_range"))
            }
            other => expected("a quantised tensor", other),
        }
    }

    /// `relu` if it is asked for, and the quantisation that the call gives; that of the operand, if
    /// it gives none.
    fn finished(&mut self, made: Value, given: &Given, relu: bool) -> Step<Value> {
        let made = if relu { self.aten("relu", vec![made])? } else { made };
        let scale = given.first(&["output_scale", "Y_scale_i"]);
        let scale = if let (Value::None, false) = (&scale, &*given.schema.name == "elu") {
            given.get("scale")
        } else {
            scale
        };
        let zero_point = given.first(&["output_zero_point", "Y_zero_point_i", "zero_point"]);
        let operand = given.first(&["qx", "qa", "X", "self", "input"]);
        match (&scale, &operand) {
            (Value::None, Value::Quantized(like)) => {
                let scheme = like.scheme.clone();
                self.requantized(made, like.kind, &scheme)
            }
            (Value::None, _) => Ok(made),
            (_, Value::Quantized(like)) => {
                let scheme = self.scheme(&scale, &zero_point)?;
                self.requantized(made, like.kind, &scheme)
            }
            _ => expected("a quantised tensor", &operand),
        }
    }

    pub(crate) fn packed_linear(&mut self, x: Value, packed: &Packed) -> Step<Value> {
        let Packed::Linear { weight, bias } = packed else {
            return unsupported("packed weights of another operator");
        };
        let weight = self.weight_floats(weight)?;
        let bias = bias.clone().map_or(Value::None, Value::Tensor);
        self.aten("linear", vec![x, weight, bias])
    }

    fn packed_conv_of(&mut self, x: Value, name: &str, conv: &Conv) -> Step<Value> {
        let vectors = name.starts_with("conv1d") || name.starts_with("conv_transpose1d");
        let conv = if vectors { self.of_vectors(conv)? } else { conv.clone() };
        let weight = self.dequantized(&Value::Quantized(Arc::new(conv.weight.clone())))?;
        let bias = conv.bias.clone().map_or(Value::None, Value::Tensor);
        let [stride, padding, output_padding, dilation] =
            [&conv.stride, &conv.padding, &conv.output_padding, &conv.dilation]
                .map(|list| list_of(list));
        let groups = Value::int(conv.groups);
        let dims = conv.stride.len();
        if conv.transpose {
            let args = vec![x, weight, bias, stride, padding, output_padding, groups, dilation];
            self.aten(&format!("conv_transpose{dims}d"), args)
        } else {
            let args = vec![x, weight, bias, stride, padding, dilation, groups];
            self.aten(&format!("conv{dims}d"), args)
        }
    }

    /// An operator of `COMPUTES`, or a normalisation, with floats; `None` if there is no such
    /// operator.
    fn computed_float(&mut self, name: &str, given: &Given) -> Step<Option<Value>> {
        if name.starts_with("batch_norm") {
            let x = self.dequantized(&given.get("qx"))?;
            let mut args = vec![x];
            args.extend(["weight", "bias", "mean", "var"].map(|name| given.get(name)));
            args.extend([
                Value::bool(false),
                Value::float(0.1),
                given.get("eps"),
                Value::bool(false),
            ]);
            return self.aten("batch_norm", args).map(Some);
        }
        if name == "instance_norm" {
            let x = self.dequantized(&given.get("input"))?;
            let mut args =
                vec![x, given.get("weight"), given.get("bias"), Value::None, Value::None];
            args.extend([
                Value::bool(true),
                Value::float(0.1),
                given.get("eps"),
                Value::bool(false),
            ]);
            return self.aten("instance_norm", args).map(Some);
        }
        let Some((_, op, params)) = COMPUTES.iter().find(|(known, ..)| *known == name) else {
            return Ok(None);
        };
        let mut args = Vec::with_capacity(params.len());
        for param in *params {
            let value = given.get(param);
            args.push(self.dequantized(&value)?);
        }
        // Arguments behind the last given one have their default values.
        while args.len() > 1 && matches!(args.last(), Some(Value::None)) {
            args.pop();
        }
        self.aten(op, args).map(Some)
    }

    fn quantized_cat(&mut self, given: &Given, relu: bool) -> Step<Value> {
        let list = given.get("qx");
        let Some(first) = self.first_quantized(&list) else {
            return expected("quantised tensors", &list);
        };
        let mut floats = Vec::new();
        for item in self.sequence(&list).unwrap_or_default() {
            floats.push(self.dequantized(&item)?);
        }
        let floats = self.list(floats, None)?;
        let made = self.aten("cat", vec![floats, given.get("dim")])?;
        let made = if relu { self.aten("relu", vec![made])? } else { made };
        let scheme = match given.get("scale") {
            Value::None => first.scheme.clone(),
            scale => self.scheme(&scale, &given.get("zero_point"))?,
        };
        self.quantized(made, first.kind, &scheme)
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
        let floats = self.dequantized(&Value::Quantized(x.clone()))?;
        let (op, number, scheme) = match name {
            "mul" | "mul_scalar" => ("mul", number, multiplied(kind, scale, zero_point, number)),
            _ => {
                let steps = (number / scale).round_ties_even();
                ("add", steps * scale, added(kind, scale, zero_point, steps))
            }
        };
        let made = self.aten(op, vec![floats, Value::float(number)])?;
        let made = if relu { self.aten("relu", vec![made])? } else { made };
        self.quantized(made, kind, &scheme)
    }
}

/// The scheme of a product with a number.
fn multiplied(kind: Kind, scale: f64, zero_point: i64, number: f64) -> Scheme {
    let (low, high, _) = kind.range();
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
    let (low, high, _) = kind.range();
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
