//! Packed weights: what their pickles hold, and the operators that pack and unpack.

use crate::{
    eval::{Evaluator, Step, call::Kwargs, unsupported},
    quantized::Given,
    value::{
        Value,
        quantized::{Conv, Kind, Packed, Quantized, Scheme, Weight, ints},
    },
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::Expr;
use std::sync::Arc;

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
        Ok(super::wrap(ints, kind, scheme))
    }

    /// Packed weights of a pickle: an object of `class` with this state.
    pub(crate) fn saved_packed(&mut self, class: &str, state: &Value) -> Step<Value> {
        let parts = self.sequence(state).unwrap_or_default();
        let refuse = || unsupported(format!("an object of {class} in this form"));
        let name = class.rsplit('.').next().unwrap_or(class);
        let packed = match (name, parts.as_slice()) {
            ("LinearPackedParamsBase", [weight, bias]) => {
                Packed::Linear { weight: weight_of(weight)?, bias: tensor_of(bias) }
            }
            (
                "Conv2dPackedParamsBase" | "Conv3dPackedParamsBase",
                [Value::Str(_), given, optional],
            ) => {
                let (given, optional) = (self.sequence(given), self.sequence(optional));
                let (given, optional) = (given.unwrap_or_default(), optional.unwrap_or_default());
                let (Some(Value::Tensor(numbers)), Some(Value::Quantized(weight))) =
                    (given.first(), given.get(1))
                else {
                    return refuse();
                };
                let bias = optional.first().and_then(tensor_of);
                let numbers = self.saved_ints(numbers);
                match numbers.and_then(|numbers| conv_of(&numbers, weight, bias)) {
                    Some(conv) => Packed::Conv(conv),
                    None => return refuse(),
                }
            }
            (
                "Conv2dPackedParamsBase" | "Conv3dPackedParamsBase",
                [Value::Int(_), numbers, tensors],
            ) => {
                let numbers = self.sequence(numbers).unwrap_or_default();
                let numbers: Option<Vec<i64>> = numbers.iter().map(Value::as_int).collect();
                let tensors = self.sequence(tensors).unwrap_or_default();
                let weight = tensors.iter().find_map(|value| match value {
                    Value::Quantized(weight) => Some(weight.clone()),
                    _ => None,
                });
                let bias = tensors.iter().find_map(tensor_of);
                match numbers.zip(weight).and_then(|(n, weight)| conv_of(&n, &weight, bias)) {
                    Some(conv) => Packed::Conv(conv),
                    None => return refuse(),
                }
            }
            ("CellParamsBase", [Value::Str(kind), _, _, numbers, packed])
                if matches!(&**kind, "quantized_dynamic" | "quantized_fp16") =>
            {
                let packed = self.sequence(packed).unwrap_or_default();
                let [Value::Packed(input), Value::Packed(hidden)] = packed.as_slice() else {
                    return refuse();
                };
                let numbers = self.sequence(numbers).unwrap_or_default();
                let reduce_range = numbers.first().and_then(Value::as_int).unwrap_or(0) != 0;
                let (input, hidden) = ((**input).clone(), (**hidden).clone());
                Packed::Cell { input: Box::new(input), hidden: Box::new(hidden), reduce_range }
            }
            ("EmbeddingPackedParamsBase", [Value::Int(_), tensors, ..]) => {
                match self.sequence(tensors).unwrap_or_default().first() {
                    Some(Value::Quantized(weight)) => Packed::Embedding((**weight).clone()),
                    _ => return refuse(),
                }
            }
            _ => return refuse(),
        };
        Ok(Value::Packed(Arc::new(packed)))
    }

    /// An operator that packs: `linear_prepack`, `conv2d_prepack`.
    pub(crate) fn prepack(&mut self, name: &str, given: &Given) -> Step<Option<Value>> {
        let packed = match name {
            "linear_prepack" => {
                let weight = weight_of(&given.get("W"))?;
                Packed::Linear { weight, bias: tensor_of(&given.get("B")) }
            }
            "linear_prepack_fp16" => match given.get("W") {
                Value::Tensor(weight) => Packed::Linear {
                    weight: Weight::Half(weight),
                    bias: tensor_of(&given.get("B")),
                },
                other => return crate::quantized::expected("a tensor", &other),
            },
            "embedding_bag_prepack" if matches!(given.get("weight"), Value::Quantized(_)) => {
                match given.get("weight") {
                    Value::Quantized(weight) => Packed::Embedding((*weight).clone()),
                    other => return crate::quantized::expected("a quantised tensor", &other),
                }
            }
            "make_quantized_cell_params_dynamic" | "make_quantized_cell_params_fp16" => {
                let (Value::Packed(input), Value::Packed(hidden)) =
                    (given.get("w_ih"), given.get("w_hh"))
                else {
                    return unsupported("these parameters of a recurrent layer");
                };
                let reduce_range = given.is_true("reduce_range");
                let (input, hidden) = (Box::new((*input).clone()), Box::new((*hidden).clone()));
                Packed::Cell { input, hidden, reduce_range }
            }
            _ if name.starts_with("conv") && name.ends_with("_prepack") => {
                Packed::Conv(self.packed_conv(name, given)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(Value::Packed(Arc::new(packed))))
    }

    fn packed_conv(&self, name: &str, given: &Given) -> Step<Conv> {
        let Value::Quantized(weight) = given.get("weight") else {
            return unsupported("packing a weight that is not quantised");
        };
        let numbers = |name: &str| -> Option<Vec<i64>> {
            match given.get(name) {
                Value::None => Some(Vec::new()),
                list => self.sequence(&list)?.iter().map(Value::as_int).collect(),
            }
        };
        let lists = ["stride", "padding", "output_padding", "dilation"].map(numbers);
        let groups = given.get("groups").as_int();
        let ([Some(stride), Some(padding), Some(output_padding), Some(dilation)], Some(groups)) =
            (lists, groups)
        else {
            return unsupported("a convolution whose settings are not known");
        };
        Ok(Conv {
            weight: (*weight).clone(),
            bias: tensor_of(&given.get("bias")),
            stride,
            padding,
            output_padding,
            dilation,
            groups,
            transpose: name.starts_with("conv_transpose"),
        })
    }

    /// An operator that unpacks or asks: `linear_unpack`, `conv2d_stride`.
    pub(crate) fn unpack(&mut self, name: &str, packed: &Packed) -> Step<Option<Value>> {
        let bias = |bias: &Option<Name>| bias.clone().map_or(Value::None, Value::Tensor);
        let words =
            ["unpack", "output_padding", "padding", "stride", "dilation", "groups", "transpose"];
        let bare = name.trim_end_matches("_fp16");
        let Some(asked) = words.into_iter().find(|word| bare.ends_with(word)) else {
            return Ok(None);
        };
        let value = match (packed, asked) {
            (Packed::Linear { weight, bias: b }, "unpack") => {
                let weight = match weight {
                    Weight::Quantized(weight) => Value::Quantized(Arc::new(weight.clone())),
                    Weight::Half(name) => Value::Tensor(name.clone()),
                };
                self.tuple(vec![weight, bias(b)], None)?
            }
            (Packed::Conv(conv), "unpack") => {
                let weight = Value::Quantized(Arc::new(conv.weight.clone()));
                self.tuple(vec![weight, bias(&conv.bias)], None)?
            }
            (Packed::Conv(conv), "stride") => self.int_list(ints(&conv.stride))?,
            (Packed::Conv(conv), "padding") => self.int_list(ints(&conv.padding))?,
            (Packed::Conv(conv), "output_padding") => self.int_list(ints(&conv.output_padding))?,
            (Packed::Conv(conv), "dilation") => self.int_list(ints(&conv.dilation))?,
            (Packed::Conv(conv), "groups") => Value::int(conv.groups),
            (Packed::Conv(conv), "transpose") => Value::int(i64::from(conv.transpose)),
            (Packed::Embedding(weight), "unpack") => Value::Quantized(Arc::new(weight.clone())),
            _ => return Ok(None),
        };
        Ok(Some(value))
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

    /// The weight of a linear layer as floats.
    pub(crate) fn weight_floats(&mut self, weight: &Weight) -> Step<Value> {
        match weight {
            Weight::Quantized(weight) => {
                self.dequantized(&Value::Quantized(Arc::new(weight.clone())))
            }
            Weight::Half(name) => {
                let half = vec![Value::Tensor(name.clone()), Value::int(5)];
                let half = self.aten("to", half)?;
                self.aten("to", vec![half, Value::int(6)])
            }
        }
    }

    /// A weight of three dimensions for a convolution of vectors: it may have been packed as that
    /// of images.
    pub(crate) fn of_vectors(&mut self, conv: &Conv) -> Step<Conv> {
        let mut conv = conv.clone();
        if self.meta(&conv.weight.ints)?.sizes.len() == 4 {
            let args = vec![Value::Tensor(conv.weight.ints.clone()), Value::int(2)];
            if let Value::Tensor(ints) = self.aten("squeeze", args)? {
                conv.weight.ints = ints;
            }
        }
        for list in
            [&mut conv.stride, &mut conv.padding, &mut conv.output_padding, &mut conv.dilation]
        {
            let last = list.len().saturating_sub(1);
            list.drain(..last);
        }
        Ok(conv)
    }
}

/// The numbers of a pickled convolution: dimensions, stride, padding, dilation, output padding,
/// groups, whether it is transposed.
fn conv_of(numbers: &[i64], weight: &Arc<Quantized>, bias: Option<Name>) -> Option<Conv> {
    let (&dims, rest) = numbers.split_first()?;
    let dims = usize::try_from(dims).ok().filter(|dims| (1..=3).contains(dims))?;
    let list = |at: usize| rest.get(at * dims..(at + 1) * dims).map(<[i64]>::to_vec);
    Some(Conv {
        weight: (**weight).clone(),
        bias,
        stride: list(0)?,
        padding: list(1)?,
        dilation: list(2)?,
        output_padding: list(3)?,
        groups: *rest.get(4 * dims)?,
        transpose: *rest.get(4 * dims + 1)? & 1 != 0,
    })
}

fn tensor_of(value: &Value) -> Option<Name> {
    match value {
        Value::Tensor(name) => Some(name.clone()),
        _ => None,
    }
}

fn weight_of(value: &Value) -> Step<Weight> {
    match value {
        Value::Quantized(weight) => Ok(Weight::Quantized((**weight).clone())),
        Value::Tensor(name) => Ok(Weight::Half(name.clone())),
        other => crate::quantized::expected("a weight", other),
    }
}

/// Sizes as a list of values.
pub(crate) fn list_of(values: &[i64]) -> Value {
    Value::tuple(ints(values).into_iter().map(|e: Expr| Value::Int(e)).collect())
}
