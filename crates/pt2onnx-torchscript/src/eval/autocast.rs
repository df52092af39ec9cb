//! `with torch.autocast("cpu")` in a script: the operators within cast their tensors, as PyTorch's
//! executor makes them (its pass `Autocast`). Traces have these casts already. Autocast on other
//! devices does not concern the model.

use crate::{
    eval::{Evaluator, Step, call::Kwargs, unsupported},
    value::Value,
};
use pt2onnx_fx::archive::{c10_number, dtype_of_c10};
use pt2onnx_tensor::DType;

/// Operators that compute in the type of the region.
const REDUCED: &str = "_convolution conv1d conv2d conv3d conv_tbc conv_transpose1d convolution prelu addmm addmv \
     addr matmul mm mv linear addbmm baddbmm bmm lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell";

const FULL: &str = "native_layer_norm acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh \
     tan pow softplus gelu layer_norm group_norm frobenius_norm nuclear_norm cosine_similarity \
     cosine_embedding_loss hinge_embedding_loss kl_div l1_loss smooth_l1_loss mse_loss \
     margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss \
     multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp addcdiv \
     addcmul atan2 bilinear cross dot equal index_put tensordot add sub mul div";

/// Operators that compute in float32 unless a type is given.
const SUMS: &str = "prod log_softmax cumprod cumsum sum";

impl Evaluator<'_> {
    /// The type that operators within a `with` compute in; only autocast on the CPU changes it.
    pub(crate) fn autocast_within(&self, manager: &Value) -> Step<Option<DType>> {
        let Value::Object(object) = manager else { return Ok(self.state.calls.autocast) };
        let (class, attributes, _) = self.object_at(*object)?;
        let device = attributes.get("device").and_then(Value::as_str);
        if !class.python_name().ends_with("autocast_mode.autocast") || device != Some("cpu") {
            return Ok(self.state.calls.autocast);
        }
        let dtype = attributes.get("fast_dtype").and_then(Value::as_int).and_then(dtype_of_c10);
        match (attributes.get("_enabled").and_then(Value::as_bool), dtype) {
            (Some(false), _) => Ok(None),
            (Some(true), Some(dtype)) => Ok(Some(dtype)),
            _ => unsupported("autocast whose arguments are not known"),
        }
    }

    /// Casts the arguments of an operator.
    pub(crate) fn autocast_arguments(
        &mut self,
        namespace: &str,
        name: &str,
        args: &mut [Value],
        kwargs: &mut Kwargs,
    ) -> Step<()> {
        let Some(reduced) = self.state.calls.autocast.filter(|_| namespace == "aten") else {
            return Ok(());
        };
        let given = |key: &str| {
            kwargs.iter().any(|(name, value)| name == key && !matches!(value, Value::None))
        };
        let is_in = |list: &str| list.split_whitespace().any(|op| op == name);
        let (from, to): (&[DType], DType) = if is_in(REDUCED) {
            (&[DType::F32], reduced)
        } else if is_in(FULL) || is_in(SUMS) && !given("dtype") {
            (&[DType::F16, DType::BF16], DType::F32)
        } else {
            return Ok(());
        };
        if given("out") {
            return Ok(());
        }
        let dtype = c10_number(to).map_or(Value::None, Value::int);
        for value in args.iter_mut().chain(kwargs.iter_mut().map(|(_, value)| value)) {
            if let Value::Tensor(tensor) = value
                && self.meta(tensor).is_ok_and(|meta| from.contains(&meta.dtype))
            {
                let cast = vec![value.clone(), dtype.clone()];
                *value = self.operator("aten", "to", cast, Kwargs::new())?;
            }
        }
        Ok(())
    }
}
