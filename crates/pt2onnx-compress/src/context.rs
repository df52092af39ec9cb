//! State that the quantisation of all weights of a model shares, and matrices with swapped
//! dimensions.

use crate::{
    Axes, ChannelMoments, Compressed, Edit, Format, Options, Quantised, Quantize, Scheme, Weight,
    bytes::Tensors, feedback::Feedback,
};
use pt2onnx_ir::Value;
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// State that all weights of a model share.
pub(crate) struct Cx<'a> {
    pub edit: Edit<'a>,
    pub options: &'a Options,
    pub quantize: Quantize,
    /// The ways to make up for errors, of weights whose products were seen.
    pub feedback: FxHashMap<Value, Arc<Feedback>>,
    /// The moments of the inputs of the products of weights that are known without samples.
    pub channels: FxHashMap<Value, Arc<ChannelMoments>>,
    /// Weights that keep 8 bits where others have 4.
    pub at_8_bits: FxHashSet<Value>,
    /// The smallest scales that weights may have, by channel.
    pub least: FxHashMap<Value, Vec<f32>>,
    pub done: &'a mut Compressed,
}

impl Cx<'_> {
    /// The block of a weight: that of the options, where scales may lie along the dimension that is
    /// summed over.
    pub fn block(&self, weight: &Weight) -> Option<usize> {
        self.options.block_size.filter(|_| weight.tensor.rank() == 2)
    }

    /// The scheme of weights that the standard's operators take. Where runtimes on CPUs compute
    /// with codes, these have no sign, unless it is asked for: on x86 processors without VNNI, ONNX
    /// Runtime's products of uint8 and int8 saturate, and those of uint8 do not.
    pub fn scheme(&self, weight: &Weight) -> Scheme {
        let dtype = weight.dtype;
        let own = matches!(dtype, DType::F16 | DType::BF16) && self.edit.model.opset >= 19;
        Scheme {
            format: match self.quantize {
                Quantize::Int8 | Quantize::DynamicInt8 | Quantize::StaticInt8 => Format::Int8,
                Quantize::Int4 if self.at_8_bits.contains(&weight.value) => Format::Int8,
                Quantize::Int4 => Format::Int4,
                Quantize::Float8 => Format::Float8,
            },
            symmetric: !self.options.zero_points,
            unsigned: match self.quantize {
                Quantize::DynamicInt8 => !self.options.signed,
                Quantize::StaticInt8 => !self.options.symmetric_activations && !self.options.signed,
                _ => false,
            },
            scale: if own { dtype } else { DType::F32 },
            restored: dtype,
        }
    }

    /// The known moments of the inputs of a weight's products.
    pub fn inputs(&self, weight: &Weight) -> Option<Arc<ChannelMoments>> {
        let seen = self.feedback.get(&weight.value).map(|feedback| feedback.inputs.clone());
        seen.or_else(|| self.channels.get(&weight.value).cloned())
    }

    /// Whether a weight becomes smaller.
    pub fn saves(&self, weight: &Weight, tensors: &Tensors) -> bool {
        tensors.nbytes() < weight.tensor.numel().saturating_mul(weight.dtype.bits()) / 8
    }

    /// Notes what becomes of a weight.
    pub fn note(&mut self, weight: &Weight, made: &Arc<Quantised>, bytes: usize) {
        let grain = match made.block {
            Some(block) => format!("blocks of {block}"),
            _ if made.along.is_none() => "one scale".to_owned(),
            _ => "by channel".to_owned(),
        };
        let quantize = match made.scheme.format {
            Format::Int8 if self.quantize == Quantize::Int4 => Quantize::Int8,
            _ => self.quantize,
        };
        let form = format!("{quantize}, {grain}");
        self.done.note(weight, form, bytes, made.losses.clone());
    }
}

/// A matrix with its dimensions swapped, over the same memory.
pub(crate) fn swapped(tensor: &Tensor) -> Option<Tensor> {
    tensor.permuted(&[1, 0])
}

pub(crate) fn swapped_axes(axes: Axes) -> Axes {
    Axes { channel: 1 - axes.channel, sum: 1 - axes.sum }
}
