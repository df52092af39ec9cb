//! ONNX types of FX tensors, and constants of Python numbers.

use pt2onnx_fx::graph::TensorMeta;
use pt2onnx_ir::{Builder, Shape, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

/// A Python number as a 0-d constant of PyTorch's default dtype for it: int64, float32 or bool.
pub(super) fn python_number(builder: &Builder, scalar: Scalar) -> Value {
    let dtype = match scalar {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) | Scalar::Complex(..) => DType::F32,
    };
    builder.scalar(scalar, dtype)
}

/// The ONNX type of a tensor. A complex tensor is one of real/imaginary pairs, in a last dimension
/// of 2.
pub(crate) fn onnx_type(meta: &TensorMeta) -> Type {
    let mut sizes: Shape = meta.sizes.clone();
    if meta.dtype.is_complex() {
        sizes.push(Expr::int(2));
    }
    Type::tensor(meta.dtype.to_real(), sizes)
}
