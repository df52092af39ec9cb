//! Dynamic quantisation: a tensor is quantised by its own range when the model runs.

use super::plain::kind_of;
use crate::{
    interp::{Interp, Step, call::Kwargs, expected, unsupported},
    quantized::{Kind, Scheme},
    value::Value,
};

/// The smallest scale that PyTorch chooses.
const SMALLEST_SCALE: f64 = 6.1e-5;

impl Interp<'_> {
    /// A float tensor quantised by its own range, and dequantised.
    pub(super) fn through_integers(&mut self, x: Value, reduce_range: bool) -> Step<Value> {
        let quantized = self.by_own_range(x, Kind::Quint8, reduce_range)?;
        self.dequantized(&quantized)
    }

    /// `quantize_per_tensor_dynamic(x, dtype, reduce_range)`.
    pub(super) fn new_dynamic(&mut self, args: &[Value], kwargs: &Kwargs) -> Step<Value> {
        let given = self.given("aten::quantize_per_tensor_dynamic", args, kwargs)?;
        let kind = kind_of(&given)?;
        self.by_own_range(given.get("self"), kind, given.is_true("reduce_range"))
    }

    fn by_own_range(&mut self, x: Value, kind: Kind, reduce_range: bool) -> Step<Value> {
        let (low, high, number) = kind.range();
        if !matches!(kind, Kind::Quint8 | Kind::Qint8) {
            return unsupported("a dynamic quantisation to this type");
        }
        let (low, high) = if reduce_range { (low / 2, high / 2) } else { (low, high) };
        let args = vec![
            x.clone(),
            Value::int(low),
            Value::int(high),
            Value::float(SMALLEST_SCALE),
            Value::int(number),
        ];
        let chosen = self.operator("quantized_decomposed", "choose_qparams", args, Kwargs::new())?;
        match self.sequence(&chosen).as_deref() {
            Some([Value::Tensor(scale), Value::Tensor(zero_point)]) => {
                let (scale, zero_point) = (scale.clone(), zero_point.clone());
                self.quantized(x, kind, &Scheme::Computed { scale, zero_point })
            }
            _ => expected("a scale and a zero point", &chosen),
        }
    }
}
