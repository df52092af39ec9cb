//! Quantised inputs and results: in the model they are three tensors, the integers, the scale and
//! the zero point.

use crate::{
    eval::{Evaluator, Step, call::Kwargs, expected, unsupported},
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
        let ints = self.tensor_input(path, dtype, sizes)?;
        let scale = self.tensor_input(&format!("{path}_scale"), DType::F64, &[])?;
        let zero_point = self.tensor_input(&format!("{path}_zero_point"), DType::I64, &[])?;
        let scale = self.aten("to", vec![scale, Value::int(6)])?;
        match (ints, scale, zero_point) {
            (Value::Tensor(ints), Value::Tensor(scale), Value::Tensor(zero_point)) => {
                Ok(wrap(ints, kind, Scheme::Computed { scale, zero_point }))
            }
            (ints, ..) => expected("a tensor", &ints),
        }
    }

    /// The integers of a quantised result, its scales as float32, and its zero points, which are of
    /// the type of the integers.
    pub(crate) fn quantized_parts(&mut self, quantized: &Quantized) -> Step<[Value; 3]> {
        let ints = Value::Tensor(self.ints_of(quantized)?);
        let (_, _, number) = quantized.kind.range();
        let (scale, zero_point) = match &quantized.scheme {
            Scheme::Known { scale, zero_point } => {
                let dtype = |number| Kwargs::from([("dtype".into(), Value::int(number))]);
                let (scale, zero) = (vec![Value::float(*scale)], vec![Value::int(*zero_point)]);
                let scale = self.operator("aten", "scalar_tensor", scale, dtype(6))?;
                (scale, self.operator("aten", "scalar_tensor", zero, dtype(number))?)
            }
            Scheme::Computed { scale, zero_point }
            | Scheme::Channels { scales: scale, zero_points: zero_point, .. } => {
                let scale = vec![Value::Tensor(scale.clone()), Value::int(6)];
                let zero = vec![Value::Tensor(zero_point.clone()), Value::int(number)];
                (self.aten("to", scale)?, self.aten("to", zero)?)
            }
        };
        Ok([ints, scale, zero_point])
    }
}
