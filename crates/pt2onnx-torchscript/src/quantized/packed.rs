//! Packed weights: what their pickles hold, and the operators that pack, unpack and use them. A
//! dynamic layer quantises its operand by its own range when the model runs.

use crate::{
    eval::{Evaluator, Step, call::Kwargs, expected, unsupported},
    quantized::{Given, wrap},
    schema::Type,
    value::{
        Packed, Value, args,
        quantized::{Quantized, Scheme},
    },
};
use pt2onnx_fx::Name;
use pt2onnx_tensor::DType;
use pt2onnx_torchscript_archive::quantized::Kind;
use std::sync::Arc;

/// The smallest scale that PyTorch chooses.
const SMALLEST_SCALE: f64 = 6.1e-5;
/// The settings of a convolution, as pickles have them. `padding` also ends `output_padding`.
const SETTINGS: [&str; 4] = ["stride", "padding", "dilation", "output_padding"];

impl Evaluator<'_> {
    /// A quantised tensor of a pickle: its integers, and what describes its quantiser.
    pub(crate) fn saved_quantized(
        &mut self,
        ints: Name,
        kind: Kind,
        quantizer: &[Value],
    ) -> Step<Value> {
        let scheme = match quantizer {
            [_, scale, zero_point] if scale.as_f64().is_some() => self.scheme(scale, zero_point)?,
            [_, Value::Tensor(scales), Value::Tensor(zero_points), axis] => {
                let Some(axis) = axis.as_int() else {
                    return unsupported("a tensor quantised along an unknown dimension");
                };
                Scheme::Channels { scales: scales.clone(), zero_points: zero_points.clone(), axis }
            }
            _ => return unsupported("a tensor of this quantisation scheme"),
        };
        Ok(wrap(ints, kind, scheme))
    }

    /// Packed weights of a pickle: an object of `class` with this state.
    pub(crate) fn saved_packed(&mut self, class: &str, state: &Value) -> Step<Value> {
        let name = class.rsplit('.').next().unwrap_or(class);
        let list = |value: &Value| self.sequence(value).unwrap_or_default();
        let packed = match (name, list(state).as_slice()) {
            ("LinearPackedParamsBase", [weight, bias]) => {
                Some(Packed::new("linear", [("weight", weight), ("bias", bias)]))
            }
            ("Conv2dPackedParamsBase" | "Conv3dPackedParamsBase", [version, given, optional]) => {
                let (given, optional) = (list(given), list(optional));
                // Older archives have the numbers in a tensor, newer ones in a list.
                let (numbers, tensors) = match (version, given.as_slice()) {
                    (Value::Str(_), [Value::Tensor(numbers), weight, ..]) => {
                        let bias = optional.first().cloned().unwrap_or(Value::None);
                        (self.saved_ints(numbers), vec![weight.clone(), bias])
                    }
                    (Value::Int(_), numbers) => {
                        (numbers.iter().map(Value::as_int).collect(), optional)
                    }
                    _ => (None, Vec::new()),
                };
                numbers.and_then(|numbers| conv_of(&numbers, &tensors))
            }
            ("CellParamsBase", [Value::Str(kind), _, _, numbers, packed])
                if matches!(&**kind, "quantized_dynamic" | "quantized_fp16") =>
            {
                let reduce = list(numbers).first().and_then(Value::as_int).unwrap_or(0) != 0;
                match list(packed).as_slice() {
                    [input, hidden] => Some(Packed::new(
                        "cell",
                        [("w_ih", input), ("w_hh", hidden), ("reduce_range", &reduce.into())],
                    )),
                    _ => None,
                }
            }
            ("EmbeddingPackedParamsBase", [Value::Int(_), tensors, ..]) => {
                let weight = list(tensors).first().cloned();
                weight.map(|weight| Packed::new("embedding_bag", [("weight", &weight)]))
            }
            _ => None,
        };
        match packed {
            Some(packed) => Ok(Value::Packed(Arc::new(packed))),
            None => unsupported(format!("an object of {class} in this form")),
        }
    }

    /// The arguments of an operator that packs, such as `conv2d_prepack`; `None` if it is another
    /// one.
    pub(super) fn prepack(&self, name: &str, given: &Given) -> Option<Packed> {
        let op = match name.trim_end_matches("_fp16").trim_end_matches("_dynamic") {
            "make_quantized_cell_params" => "cell",
            "linear_prepack" => "linear",
            "embedding_bag_prepack" => "embedding_bag",
            conv if conv.starts_with("conv") => conv.strip_suffix("_prepack")?,
            _ => return None,
        };
        let params = given.schema.params.iter().map(|param| {
            let value = match given.get(&param.name) {
                // Later changes of a list do not matter.
                Value::List(list) => Value::tuple(self.items(list).to_vec()),
                other => other,
            };
            let name = match &*param.name {
                "W" => "weight",
                "B" => "bias",
                other => other,
            };
            (name.into(), value)
        });
        Some(Packed { op: op.into(), args: params.collect() })
    }

    /// An operator that unpacks or asks: `linear_unpack`, `conv2d_stride`.
    fn unpack(&mut self, name: &str, packed: &Packed) -> Step<Option<Value>> {
        let is_conv = packed.op.starts_with("conv");
        Ok(match name.trim_end_matches("_fp16") {
            name if name.ends_with("unpack") => match &*packed.op {
                "cell" => None,
                "embedding_bag" => Some(packed.get("weight")),
                _ => Some(self.tuple(vec![packed.get("weight"), packed.get("bias")], None)?),
            },
            name if is_conv && name.ends_with("groups") => Some(packed.get("groups")),
            name if is_conv && name.ends_with("transpose") => {
                Some(i64::from(packed.op.starts_with("conv_transpose")).into())
            }
            name if is_conv => {
                let setting = SETTINGS.iter().rev().find(|setting| name.ends_with(**setting));
                let items = setting.and_then(|name| self.sequence(&packed.get(name)));
                items.map(|items| self.list(items, Some(Type::Int))).transpose()?
            }
            _ => None,
        })
    }

    /// A method of packed weights.
    pub(crate) fn packed_method(
        &mut self,
        packed: &Packed,
        name: &str,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Value> {
        let plain = args.len() == 1 && kwargs.is_empty();
        match if plain { self.unpack(name, packed)? } else { None } {
            Some(value) => Ok(value),
            None => unsupported(format!("the method {name} of packed weights")),
        }
    }

    /// An operator of packed weights.
    pub(super) fn with_packed(
        &mut self,
        name: &str,
        packed: &Packed,
        given: &Given,
    ) -> Step<Value> {
        if let Some(value) = self.unpack(name, packed)? {
            return Ok(value);
        }
        let made = match &*packed.op {
            "embedding_bag" => return self.quantized_embedding(name, packed, given),
            "cell" => return unsupported(format!("quantized::{name}")),
            "linear" if name.ends_with("dynamic") => {
                self.dynamic_linear(given.get("X"), packed, given.is_true("reduce_range"))?
            }
            "linear" => {
                let x = self.input_of(&given.get("X"), name, given)?;
                let weight = match packed.get("weight") {
                    Value::Quantized(weight) => self.floats(&weight)?,
                    half => self.halved(half)?,
                };
                self.aten("linear", vec![x, weight, packed.get("bias")])?
            }
            _ => {
                let x = self.input_of(&given.get("qx"), name, given)?;
                let made = self.packed_conv(x, name, packed)?;
                if name.starts_with("conv2d_add") {
                    let other = self.operand_of(&given.get("qaccum"), true)?;
                    self.aten("add", vec![made, other])?
                } else {
                    made
                }
            }
        };
        if name.contains("leaky_relu") {
            let made = self.aten("leaky_relu", vec![made, given.get("negative_slope")])?;
            return self.finished(made, given, false);
        }
        let tanh = name.contains("tanh");
        let made = if tanh { self.aten("tanh", vec![made])? } else { made };
        self.finished(made, given, name.contains("_relu"))
    }

    /// The operand as floats: dequantised, or quantised by its own range if the operator is
    /// dynamic.
    fn input_of(&mut self, x: &Value, name: &str, given: &Given) -> Step<Value> {
        let quantized = match x {
            _ if name.contains("with_input_q_dq") => {
                let scheme = self.scheme(&given.get("X_scale"), &given.get("X_zero_point"))?;
                self.quantized(x.clone(), Kind::Quint8, &scheme)?
            }
            Value::Quantized(_) => x.clone(),
            _ if name.ends_with("fp16") => return Ok(x.clone()),
            _ if name.ends_with("dynamic") => {
                self.by_own_range(x.clone(), Kind::Quint8, given.is_true("reduce_range"))?
            }
            other => return expected("a quantised tensor", other),
        };
        self.operand_of(&quantized, true)
    }

    fn packed_conv(&mut self, x: Value, name: &str, packed: &Packed) -> Step<Value> {
        let mut weight = packed.quantized_weight()?;
        let mut settings = SETTINGS.map(|setting| packed.get(setting));
        if name.starts_with("conv1d") || name.starts_with("conv_transpose1d") {
            // The weight may have been packed as that of images.
            if self.meta(&weight.ints)?.sizes.len() == 4 {
                let ints = self.aten_tensor("squeeze", args![&weight.ints, 2])?;
                weight = Arc::new(Quantized { ints, ..(*weight).clone() });
            }
            for list in &mut settings {
                let last = self.sequence(list).and_then(|items| items.last().cloned());
                *list = Value::tuple(last.into_iter().collect());
            }
        }
        let weight = self.floats(&weight)?;
        let dims = self.sequence(&settings[0]).map_or(0, |items| items.len());
        let [stride, padding, dilation, output_padding] = settings;
        let [bias, groups] = [packed.get("bias"), packed.get("groups")];
        if packed.op.starts_with("conv_transpose") {
            let args = vec![x, weight, bias, stride, padding, output_padding, groups, dilation];
            self.aten(&format!("conv_transpose{dims}d"), args)
        } else {
            let args = vec![x, weight, bias, stride, padding, dilation, groups];
            self.aten(&format!("conv{dims}d"), args)
        }
    }

    /// A linear layer whose operand is quantised by its own range. It sums integers, as PyTorch
    /// does: where floats are quantised only by the weight, runtimes choose kernels of less
    /// precision.
    pub(super) fn dynamic_linear(
        &mut self,
        x: Value,
        packed: &Packed,
        reduce_range: bool,
    ) -> Step<Value> {
        let weight = packed.quantized_weight()?;
        let x = self.by_own_range(x, Kind::Quint8, reduce_range)?;
        let Value::Quantized(x) = x else {
            return expected("a quantised tensor", &x);
        };
        let Scheme::Computed { scale, zero_point } = &x.scheme else {
            return unsupported("a dynamic layer of a tensor with a known range");
        };
        let (weight_scale, weight_zero) = match &weight.scheme {
            Scheme::Known { scale, zero_point: 0 } => (Value::float(*scale), Value::None),
            Scheme::Channels { scales, zero_points, axis: 0 } => {
                (self.cast(scales, DType::F32)?, zero_points.into())
            }
            _ => return unsupported("a dynamic layer whose weight has such a zero point"),
        };
        let bias = packed.get("bias");
        let args = args![&x.ints, scale, zero_point, &weight.ints, weight_scale, weight_zero, bias];
        self.formula("dynamic_linear", args)
    }

    /// A float tensor quantised by its own range: with the scale and zero point of
    /// `quantized_decomposed.choose_qparams`. PyTorch's kernel computes them in float64, as
    /// observers do (`ops/nn/observers.rs` of pt2onnx-aten); the results differ by one quantum at
    /// most. A range below the smallest scale gets another zero point than there.
    pub(crate) fn by_own_range(&mut self, x: Value, kind: Kind, reduce_range: bool) -> Step<Value> {
        if !matches!(kind, Kind::Quint8 | Kind::Qint8) {
            return unsupported("a dynamic quantisation to this type");
        }
        let (low, high) = kind.range();
        let (low, high) = if reduce_range { (low / 2, high / 2) } else { (low, high) };
        let args = args![&x, low, high, SMALLEST_SCALE, kind.ints()];
        let chosen =
            self.operator("quantized_decomposed", "choose_qparams", args, Kwargs::new())?;
        match self.sequence(&chosen).as_deref() {
            Some([Value::Tensor(scale), Value::Tensor(zero_point)]) => {
                let (scale, zero_point) = (scale.clone(), zero_point.clone());
                self.quantized(x, kind, &Scheme::Computed { scale, zero_point })
            }
            _ => expected("a scale and a zero point", &chosen),
        }
    }

    /// `embedding_byte`, `embedding_bag_4bit` and their kin.
    fn quantized_embedding(&mut self, name: &str, packed: &Packed, given: &Given) -> Step<Value> {
        if given.is_true("pruned_weights")
            || !matches!(given.get("compressed_indices_mapping"), Value::None)
        {
            return unsupported(format!("quantized::{name} of pruned weights"));
        }
        let weight = packed.quantized_weight()?;
        match name {
            "embedding_byte" | "embedding_4bit" => {
                self.quantized_rows(&weight, Some(&given.get("indices")))
            }
            "embedding_bag_byte" | "embedding_bag_4bit" => {
                let mut args = vec![self.quantized_rows(&weight, None)?];
                args.extend(
                    ["indices", "offsets", "per_sample_weights"].map(|name| given.get(name)),
                );
                args.push(given.is_true("include_last_offset").into());
                self.formula("embedding_bags", args)
            }
            _ => unsupported(format!("quantized::{name}")),
        }
    }

    /// The rows at some positions, or all. They are gathered first, then dequantised.
    fn quantized_rows(&mut self, weight: &Quantized, indices: Option<&Value>) -> Step<Value> {
        let at = |ev: &mut Self, of: Value| match indices {
            Some(indices) => ev.aten("embedding", args![of, indices]),
            None => Ok(of),
        };
        let Scheme::Channels { scales, zero_points, axis: 0 } = &weight.scheme else {
            let all = self.floats(weight)?;
            return at(self, all);
        };
        let ints = at(self, (&weight.ints).into())?.tensor()?.clone();
        let ints = self.ints_of(&Quantized { ints, ..weight.clone() })?;
        let half = weight.kind == Kind::Quint4x2;
        let indices = indices.unwrap_or(&Value::None);
        self.formula("quantized_rows", args![ints, scales, zero_points, indices, half])
    }
}

/// A pickled convolution of these numbers: dimensions, the settings, groups, whether it is
/// transposed.
fn conv_of(numbers: &[i64], tensors: &[Value]) -> Option<Packed> {
    let (&dims, rest) = numbers.split_first()?;
    let size = usize::try_from(dims).ok().filter(|size| (1..=3).contains(size))?;
    let weight = tensors.iter().find(|value| matches!(value, Value::Quantized(_)))?;
    let bias = tensors.iter().find(|value| value.tensor().is_ok()).unwrap_or(&Value::None);
    let transposed = if *rest.get(4 * size + 1)? & 1 != 0 { "_transpose" } else { "" };
    let groups = Value::int(*rest.get(4 * size)?);
    let mut packed = Packed::new(
        &format!("conv{transposed}{dims}d"),
        [("weight", weight), ("bias", bias), ("groups", &groups)],
    );
    for (setting, numbers) in SETTINGS.iter().zip(rest.chunks(size)) {
        let numbers = Value::tuple(numbers.iter().map(|i| Value::int(*i)).collect());
        packed.args.push(((*setting).into(), numbers));
    }
    Some(packed)
}
