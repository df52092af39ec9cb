//! Type promotion of operands: PyTorch's rules of `pt2onnx-tensor`, applied to values of the model.

use crate::Cx;
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{Category, DType, Scalar, result_type};

/// A `Tensor` parameter that was given a number, a `Scalar` parameter that was given a symbolic one: operands of
/// arithmetic. Numbers do not take part in type promotion as tensors do.
#[derive(Clone, Debug)]
pub enum TensorOrScalar {
    /// A tensor.
    Tensor(Value),
    /// A known number.
    Scalar(Scalar),
    /// An integer over symbols.
    SymInt(Expr),
    /// A float over symbols.
    SymFloat(Expr),
}

impl From<Value> for TensorOrScalar {
    fn from(v: Value) -> Self {
        TensorOrScalar::Tensor(v)
    }
}

impl From<Scalar> for TensorOrScalar {
    fn from(s: Scalar) -> Self {
        TensorOrScalar::Scalar(s)
    }
}

impl Cx<'_, '_> {
    /// The type that PyTorch computes in, given these operands.
    pub fn result_type(&self, operands: &[TensorOrScalar]) -> DType {
        let categorised = operands.iter().map(|o| match o {
            TensorOrScalar::Tensor(v) => {
                let category = if self.rank(*v) == 0 { Category::Zero } else { Category::Dim };
                (self.dtype(*v), category)
            }
            TensorOrScalar::Scalar(Scalar::Bool(_)) => (DType::Bool, Category::Number),
            TensorOrScalar::Scalar(Scalar::Int(_)) | TensorOrScalar::SymInt(_) => {
                (DType::I64, Category::Number)
            }
            TensorOrScalar::Scalar(Scalar::Float(_)) | TensorOrScalar::SymFloat(_) => {
                (DType::F32, Category::Number)
            }
            TensorOrScalar::Scalar(Scalar::Complex(..)) => (DType::C64, Category::Number),
        });
        result_type(categorised).unwrap_or(DType::F32)
    }

    /// An operand as a tensor of that type.
    pub fn as_tensor(&self, operand: &TensorOrScalar, dtype: DType) -> Value {
        match operand {
            TensorOrScalar::Tensor(v) => self.cast(*v, dtype),
            TensorOrScalar::Scalar(s) => self.scalar(*s, dtype),
            TensorOrScalar::SymInt(e) | TensorOrScalar::SymFloat(e) => {
                self.cast(self.number(e), dtype)
            }
        }
    }

    /// Both operands in the type that PyTorch computes in.
    pub fn promote(
        &self,
        a: impl Into<TensorOrScalar>,
        b: impl Into<TensorOrScalar>,
    ) -> (Value, Value) {
        let (a, b) = (a.into(), b.into());
        let operands = [a, b];
        let dtype = self.result_type(&operands);
        (self.as_tensor(&operands[0], dtype), self.as_tensor(&operands[1], dtype))
    }

    /// The type of an op that gives floats for integers: the operands' common type, or float32 (PyTorch's default) where
    /// that is no float.
    pub fn float_type(&self, dtype: DType) -> DType {
        if dtype.is_float() || dtype.is_complex() { dtype } else { DType::F32 }
    }

    /// `x` as a float, as ops like `sin` take it.
    pub fn to_float(&self, x: Value) -> Value {
        self.cast(x, self.float_type(self.dtype(x)))
    }
}
