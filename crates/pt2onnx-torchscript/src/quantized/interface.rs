//! Quantised inputs and results: in the model they are three tensors, the integers, the scale and
//! the zero point.

use crate::{
    eval::{Evaluator, Step, unsupported},
    load::inputs::Size,
    quantized::wrap,
    value::{
        Value,
        quantized::{Kind, Quantized, Scheme},
    },
};
use pt2onnx_tensor::DType;

impl Evaluator<'_> {
    /// An input that is a quantised tensor with one scale: `x`, `x_scale` and `x_zero_point`, of
    /// the types that PyTorch's exporter of TorchScript gives them.
    pub(crate) fn quantized_input(
        &mut self,
        path: &str,
        dtype: DType,
        sizes: &[Size],
    ) -> Step<Value> {
        let Some(kind) = Kind::of_ints(dtype) else {
            return unsupported(format!("an input that is quantised to {dtype}"));
        };
        let ints = self.tensor_input(path, dtype, sizes)?.tensor()?.clone();
        let scale = self.tensor_input(&format!("{path}_scale"), DType::F64, &[])?;
        let zero_point = self.tensor_input(&format!("{path}_zero_point"), DType::I64, &[])?;
        let scale = self.cast(scale, DType::F32)?.tensor()?.clone();
        let zero_point = zero_point.tensor()?.clone();
        Ok(wrap(ints, kind, Scheme::Computed { scale, zero_point }))
    }

    /// The integers of a quantised result, its scales as float32, and its zero points, which are of
    /// the type of the integers.
    pub(crate) fn quantized_parts(&mut self, quantized: &Quantized) -> Step<[Value; 3]> {
        let (ints, dtype) = (self.ints_of(quantized)?, quantized.kind.ints());
        let (scale, zero_point) = match &quantized.scheme {
            Scheme::Known { scale, zero_point } => (
                self.scalar_tensor(&Value::float(*scale), DType::F32)?,
                self.scalar_tensor(&Value::int(*zero_point), dtype)?,
            ),
            Scheme::Computed { scale, zero_point }
            | Scheme::Channels { scales: scale, zero_points: zero_point, .. } => {
                (self.cast(scale, DType::F32)?, self.cast(zero_point, dtype)?)
            }
        };
        Ok([ints.into(), scale, zero_point])
    }
}
