//! Runs the operators of `quantized::`.

use crate::{
    eval::{Evaluator, Step, expected, unsupported},
    quantized::{Given, rules::float_params},
    value::{
        Value, args,
        quantized::{Conv, Kind, Packed, Quantized, Scheme, Weight},
    },
};

impl Evaluator<'_> {
    /// Calls an operator of `quantized::`.
    pub(crate) fn quantized_operator(&mut self, name: &str, given: &Given) -> Step<Value> {
        if let Some(packed) = self.prepack(name, given)? {
            return Ok(packed);
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
            "cat" => return self.quantized_cat(given, relu),
            "add_scalar" | "mul_scalar" => return self.with_scalar(base, given, relu),
            "add" | "mul" if given.get("b").number().is_some() => {
                return self.with_scalar(base, given, relu);
            }
            _ => {}
        }
        let made = if base.starts_with("batch_norm") {
            self.normalised("batch_norm", ["qx", "weight", "bias", "mean", "var"], given)?
        } else if base == "instance_norm" {
            self.normalised(base, ["input", "weight", "bias", "", ""], given)?
        } else if let Some(params) = float_params(base) {
            let mut args = Vec::new();
            for param in params {
                args.push(self.dequantized(&given.get(param))?);
            }
            // Arguments behind the last given one have their default values.
            while args.len() > 1 && matches!(args.last(), Some(Value::None)) {
                args.pop();
            }
            self.aten(base, args)?
        } else {
            return unsupported(format!("quantized::{name}"));
        };
        self.finished(made, given, relu)
    }

    /// A normalisation with floats; that of instances reads no statistics.
    fn normalised(&mut self, op: &str, params: [&str; 5], given: &Given) -> Step<Value> {
        let mut args = params.map(|param| given.get(param)).to_vec();
        args[0] = self.dequantized(&args[0])?;
        let instances = op == "instance_norm";
        args.extend(args![instances, 0.1, given.get("eps"), false]);
        self.aten(op, args)
    }

    /// An operator of packed weights.
    fn with_packed(&mut self, name: &str, packed: &Packed, given: &Given) -> Step<Value> {
        if let Some(value) = self.unpack(name, packed)? {
            return Ok(value);
        }
        let mut made = match packed {
            Packed::Linear { .. } if name.contains("with_input_q_dq") => {
                let scheme = self.scheme(&given.get("X_scale"), &given.get("X_zero_point"))?;
                let x = self.quantized(given.get("X"), Kind::Quint8, &scheme)?;
                let x = self.dequantized(&x)?;
                self.packed_linear(x, packed)?
            }
            Packed::Linear { .. } if name.ends_with("dynamic") => {
                self.dynamic_linear(given.get("X"), packed, given.is_true("reduce_range"))?
            }
            Packed::Linear { .. } => {
                let x = self.input_of(&given.get("X"), name, given)?;
                self.packed_linear(x, packed)?
            }
            Packed::Conv(conv) => {
                let x = self.input_of(&given.get("qx"), name, given)?;
                let made = self.packed_conv_of(x, name, conv)?;
                if name.starts_with("conv2d_add") {
                    let other = self.dequantized(&given.get("qaccum"))?;
                    self.aten("add", vec![made, other])?
                } else {
                    made
                }
            }
            Packed::Embedding(weight) => return self.quantized_embedding(name, weight, given),
            Packed::Cell { .. } => return unsupported(format!("quantized::{name}")),
        };
        let leaky = name.contains("leaky_relu");
        if leaky {
            made = self.aten("leaky_relu", vec![made, given.get("negative_slope")])?;
        } else if name.contains("tanh") {
            made = self.aten("tanh", vec![made])?;
        }
        self.finished(made, given, name.contains("_relu") && !leaky)
    }

    /// The operand as floats: dequantised, or quantised by its own range if the operator is
    /// dynamic.
    fn input_of(&mut self, x: &Value, name: &str, given: &Given) -> Step<Value> {
        match x {
            Value::Quantized(x) => self.floats(x),
            _ if name.ends_with("fp16") => Ok(x.clone()),
            _ if name.ends_with("dynamic") => {
                let reduce_range = given.is_true("reduce_range");
                let x = self.by_own_range(x.clone(), Kind::Quint8, reduce_range)?;
                self.dequantized(&x)
            }
            other => expected("a quantised tensor", other),
        }
    }

    fn relu_if(&mut self, x: Value, relu: bool) -> Step<Value> {
        if relu { self.aten("relu", vec![x]) } else { Ok(x) }
    }

    /// `relu` if it is asked for, and the quantisation that the call gives; that of the operand, if
    /// it gives none.
    fn finished(&mut self, made: Value, given: &Given, relu: bool) -> Step<Value> {
        let made = self.relu_if(made, relu)?;
        // `scale` of `elu` is another parameter.
        let elu = &*given.schema.name == "elu";
        let scale = match given.first(&["output_scale", "Y_scale_i"]) {
            Value::None if !elu => given.get("scale"),
            scale => scale,
        };
        let zero_point = given.first(&["output_zero_point", "Y_zero_point_i", "zero_point"]);
        let operand = given.first(&["qx", "qa", "X", "self", "input"]);
        match (&scale, &operand) {
            (Value::None, Value::Quantized(like)) => {
                self.requantized(made, like.kind, &like.scheme)
            }
            (Value::None, _) => Ok(made),
            (_, Value::Quantized(like)) => {
                let scheme = self.scheme(&scale, &zero_point)?;
                self.requantized(made, like.kind, &scheme)
            }
            _ => expected("a quantised tensor", &operand),
        }
    }

    fn packed_linear(&mut self, x: Value, packed: &Packed) -> Step<Value> {
        let Packed::Linear { weight, bias } = packed else {
            return unsupported("packed weights of another operator");
        };
        let weight = match weight {
            Weight::Quantized(weight) => self.floats(weight)?,
            Weight::Half(weight) => self.halved(weight)?,
        };
        self.aten("linear", args![x, weight, bias])
    }

    fn packed_conv_of(&mut self, x: Value, name: &str, conv: &Conv) -> Step<Value> {
        let vectors = name.starts_with("conv1d") || name.starts_with("conv_transpose1d");
        let conv = if vectors { self.of_vectors(conv)? } else { conv.clone() };
        let weight = self.floats(&conv.weight)?;
        let dims = conv.settings[0].len();
        let lists = conv.settings.each_ref();
        let [stride, padding, dilation, output_padding] =
            lists.map(|list| Value::tuple(list.iter().copied().map(Value::int).collect()));
        let [groups, bias] = [Value::int(conv.groups), (&conv.bias).into()];
        if conv.transpose {
            let args = vec![x, weight, bias, stride, padding, output_padding, groups, dilation];
            self.aten(&format!("conv_transpose{dims}d"), args)
        } else {
            let args = vec![x, weight, bias, stride, padding, dilation, groups];
            self.aten(&format!("conv{dims}d"), args)
        }
    }

    fn quantized_cat(&mut self, given: &Given, relu: bool) -> Step<Value> {
        let list = given.get("qx");
        let Some(first) = self.first_quantized(&list) else {
            return expected("quantised tensors", &list);
        };
        let mut floats = self.sequence(&list).unwrap_or_default();
        for item in &mut floats {
            *item = self.dequantized(item)?;
        }
        let floats = self.list(floats, None)?;
        let made = self.aten("cat", vec![floats, given.get("dim")])?;
        let made = self.relu_if(made, relu)?;
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
        let floats = self.floats(&x)?;
        let (op, number, scheme) = match name {
            "mul" | "mul_scalar" => ("mul", number, multiplied(kind, scale, zero_point, number)),
            _ => {
                let steps = (number / scale).round_ties_even();
                ("add", steps * scale, added(kind, scale, zero_point, steps))
            }
        };
        let made = self.aten(op, args![floats, number])?;
        let made = self.relu_if(made, relu)?;
        self.quantized(made, kind, &scheme)
    }
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
