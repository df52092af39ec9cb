//! Emits dropout in training mode.

use crate::Cx;
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;

/// Each element of `x` zero with probability `p`, the others divided by `1 - p`; and a mask, which
/// is true where elements are kept: `Dropout`. It does not allow a `p` of 1.
pub fn dropout(cx: &Cx, x: Value, p: f64) -> [Value; 2] {
    if p >= 1.0 {
        return [cx.mul(x, 0.0), cx.full(&cx.shape(x), false, DType::Bool)];
    }
    let (ratio, training) = (cx.scalar(p, DType::F32), cx.scalar(true, DType::Bool));
    let outputs =
        cx.emit("Dropout", &[Some(x), Some(ratio), Some(training)], Default::default(), 2);
    [outputs[0], outputs[1]]
}
