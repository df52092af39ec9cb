//! Packed weights: what their pickles hold, and the operators that pack and unpack.

use crate::{
    eval::{Evaluator, Step, call::Kwargs, expected, unsupported},
    quantized::{Given, wrap},
    value::{
        Value, args,
        quantized::{Conv, Kind, Packed, Quantized, Scheme, Weight},
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
        Ok(wrap(ints, kind, scheme))
    }

    /// Packed weights of a pickle: an object of `class` with this state.
    pub(crate) fn saved_packed(&mut self, class: &str, state: &Value) -> Step<Value> {
        let name = class.rsplit('.').next().unwrap_or(class);
        let list = |value: &Value| self.sequence(value).unwrap_or_default();
        let packed = match (name, list(state).as_slice()) {
            ("LinearPackedParamsBase", [weight, bias]) => {
                Some(Packed::Linear { weight: weight_of(weight)?, bias: tensor_of(bias) })
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
                let weight = tensors.iter().find_map(quantized_of);
                let bias = tensors.iter().find_map(tensor_of);
                let conv = numbers.zip(weight).and_then(|(n, weight)| conv_of(&n, weight, bias));
                conv.map(Packed::Conv)
            }
            ("CellParamsBase", [Value::Str(kind), _, _, numbers, packed])
                if matches!(&**kind, "quantized_dynamic" | "quantized_fp16") =>
            {
                let reduce_range = list(numbers).first().and_then(Value::as_int).unwrap_or(0) != 0;
                match list(packed).as_slice() {
                    [Value::Packed(input), Value::Packed(hidden)] => {
                        let (input, hidden) = (input.clone(), hidden.clone());
                        Some(Packed::Cell { input, hidden, reduce_range })
                    }
                    _ => None,
                }
            }
            ("EmbeddingPackedParamsBase", [Value::Int(_), tensors, ..]) => {
                list(tensors).first().and_then(quantized_of).map(Packed::Embedding)
            }
            _ => None,
        };
        match packed {
            Some(packed) => Ok(Value::Packed(Arc::new(packed))),
            None => unsupported(format!("an object of {class} in this form")),
        }
    }

    /// An operator that packs: `linear_prepack`, `conv2d_prepack`.
    pub(crate) fn prepack(&mut self, name: &str, given: &Given) -> Step<Option<Value>> {
        let packed = match name {
            "linear_prepack" => Packed::Linear {
                weight: weight_of(&given.get("W"))?,
                bias: tensor_of(&given.get("B")),
            },
            "linear_prepack_fp16" => Packed::Linear {
                weight: Weight::Half(given.get("W").tensor()?.clone()),
                bias: tensor_of(&given.get("B")),
            },
            "embedding_bag_prepack" => match given.get("weight") {
                Value::Quantized(weight) => Packed::Embedding(weight),
                _ => return Ok(None),
            },
            "make_quantized_cell_params_dynamic" | "make_quantized_cell_params_fp16" => {
                let (Value::Packed(input), Value::Packed(hidden)) =
                    (given.get("w_ih"), given.get("w_hh"))
                else {
                    return unsupported("these parameters of a recurrent layer");
                };
                Packed::Cell { input, hidden, reduce_range: given.is_true("reduce_range") }
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
        let ([Some(stride), Some(padding), Some(dilation), Some(output_padding)], Some(groups)) =
            (Conv::SETTINGS.map(numbers), given.get("groups").as_int())
        else {
            return unsupported("a convolution whose settings are not known");
        };
        let settings = [stride, padding, dilation, output_padding];
        let transpose = name.starts_with("conv_transpose");
        Ok(Conv { weight, bias: tensor_of(&given.get("bias")), settings, groups, transpose })
    }

    /// An operator that unpacks or asks: `linear_unpack`, `conv2d_stride`.
    pub(crate) fn unpack(&mut self, name: &str, packed: &Packed) -> Step<Option<Value>> {
        let name = name.trim_end_matches("_fp16");
        let unpacks = name.ends_with("unpack");
        Ok(match packed {
            Packed::Linear { weight, bias } if unpacks => {
                let weight: Value = match weight {
                    Weight::Quantized(weight) => weight.into(),
                    Weight::Half(name) => name.into(),
                };
                Some(self.tuple(args![weight, bias], None)?)
            }
            Packed::Conv(conv) if unpacks => {
                Some(self.tuple(args![&conv.weight, &conv.bias], None)?)
            }
            Packed::Conv(conv) if name.ends_with("groups") => Some(conv.groups.into()),
            Packed::Conv(conv) if name.ends_with("transpose") => {
                Some(i64::from(conv.transpose).into())
            }
            Packed::Conv(conv) => {
                // `padding` also ends `output_padding`.
                let mut settings = Conv::SETTINGS.iter().zip(&conv.settings).rev();
                match settings.find(|(setting, _)| name.ends_with(**setting)) {
                    Some((_, list)) => Some(self.int_list(list.iter().map(|i| Expr::int(*i)))?),
                    None => None,
                }
            }
            Packed::Embedding(weight) if unpacks => Some(weight.into()),
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

    /// A weight of three dimensions for a convolution of vectors: it may have been packed as that
    /// of images.
    pub(crate) fn of_vectors(&mut self, conv: &Conv) -> Step<Conv> {
        let mut conv = conv.clone();
        if self.meta(&conv.weight.ints)?.sizes.len() == 4 {
            let ints = self.aten_tensor("squeeze", args![&conv.weight.ints, 2])?;
            conv.weight = Arc::new(Quantized { ints, ..(*conv.weight).clone() });
        }
        for list in &mut conv.settings {
            list.drain(..list.len().saturating_sub(1));
        }
        Ok(conv)
    }
}

/// The numbers of a pickled convolution: dimensions, stride, padding, dilation, output padding,
/// groups, whether it is transposed.
fn conv_of(numbers: &[i64], weight: Arc<Quantized>, bias: Option<Name>) -> Option<Conv> {
    let (&dims, rest) = numbers.split_first()?;
    let dims = usize::try_from(dims).ok().filter(|dims| (1..=3).contains(dims))?;
    let list = |at: usize| rest.get(at * dims..(at + 1) * dims).map(<[i64]>::to_vec);
    Some(Conv {
        weight,
        bias,
        settings: [list(0)?, list(1)?, list(2)?, list(3)?],
        groups: *rest.get(4 * dims)?,
        transpose: *rest.get(4 * dims + 1)? & 1 != 0,
    })
}

fn tensor_of(value: &Value) -> Option<Name> {
    value.tensor().ok().cloned()
}

fn quantized_of(value: &Value) -> Option<Arc<Quantized>> {
    match value {
        Value::Quantized(quantized) => Some(quantized.clone()),
        _ => None,
    }
}

fn weight_of(value: &Value) -> Step<Weight> {
    match value {
        Value::Quantized(weight) => Ok(Weight::Quantized(weight.clone())),
        Value::Tensor(name) => Ok(Weight::Half(name.clone())),
        other => expected("a weight", other),
    }
}
