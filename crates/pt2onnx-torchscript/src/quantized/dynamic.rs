//! Dynamic quantisation: a tensor is quantised by its own range when the model runs.

use crate::{
    eval::{Evaluator, Step, call::Kwargs, expected, unsupported},
    quantized::Given,
    schema::Schema,
    value::{
        Value, args,
        quantized::{Kind, Packed, Scheme, Weight},
    },
};
use pt2onnx_tensor::DType;

/// `MatMulInteger`, which no operator of PyTorch is.
const MATMUL_INTEGER: &str = "pt2onnx::matmul_integer(Tensor a, Tensor b, Tensor a_zero_point, Tensor? b_zero_point) -> Tensor";
/// The smallest scale that PyTorch chooses.
const SMALLEST_SCALE: f64 = 6.1e-5;

impl Evaluator<'_> {
    /// `quantize_per_tensor_dynamic(x, dtype, reduce_range)`.
    pub(crate) fn new_dynamic(&mut self, _: &str, given: &Given) -> Step<Value> {
        self.by_own_range(given.get("self"), given.kind()?, given.is_true("reduce_range"))
    }

    /// A linear layer whose operand is quantised by its own range. It sums integers, as PyTorch
    /// does: where floats are quantised only by the weight, runtimes choose kernels of less
    /// precision.
    pub(crate) fn dynamic_linear(
        &mut self,
        x: Value,
        packed: &Packed,
        reduce_range: bool,
    ) -> Step<Value> {
        let Packed::Linear { weight: Weight::Quantized(weight), bias } = packed else {
            return unsupported("a dynamic layer whose weight is not quantised");
        };
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
        let columns = self.aten("t", args![&weight.ints])?;
        let Some(schema) = Schema::parse(MATMUL_INTEGER) else {
            return unsupported("a product of integers");
        };
        let operands = args![&x.ints, columns, zero_point, weight_zero];
        let sum = self.emit(&schema, operands.into_iter().map(Some).collect())?;
        let sum = self.cast(sum, DType::F32)?;
        let scale = self.cast(scale, DType::F32)?;
        let scale = self.aten("mul", vec![scale, weight_scale])?;
        let made = self.aten("mul", vec![sum, scale])?;
        match bias {
            Some(bias) => self.aten("add", args![made, bias]),
            None => Ok(made),
        }
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
}
