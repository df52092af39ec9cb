//! Type promotion of operands, by PyTorch's rules (`pt2onnx-tensor`).

use crate::Cx;
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{Category, DType, Scalar, result_type};

/// An operand of arithmetic. In a program, a `Tensor` parameter can get a number, and a `Scalar`
/// parameter a symbolic one. Numbers take part in type promotion in another way than tensors.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// The element type in which PyTorch computes with these operands.
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
                (self.default_float(), Category::Number)
            }
            TensorOrScalar::Scalar(Scalar::Complex(..)) => {
                (self.default_complex(), Category::Number)
            }
        });
        result_type(categorised).unwrap_or_else(|| self.default_float())
    }

    /// The operand as a tensor of type `dtype`.
    pub fn as_tensor(&self, operand: &TensorOrScalar, dtype: DType) -> Value {
        match operand {
            TensorOrScalar::Tensor(v) => self.cast(*v, dtype),
            TensorOrScalar::Scalar(s) => self.scalar(*s, dtype),
            TensorOrScalar::SymInt(e) | TensorOrScalar::SymFloat(e) => {
                self.cast(self.number(e), dtype)
            }
        }
    }

    /// Both operands in the element type in which PyTorch computes.
    pub fn promote(
        &self,
        a: impl Into<TensorOrScalar>,
        b: impl Into<TensorOrScalar>,
    ) -> (Value, Value) {
        let operands = [a.into(), b.into()];
        self.both_as_tensors(&operands, self.result_type(&operands))
    }

    /// Both operands in the [`float_type`](Self::float_type) of the one in which PyTorch computes.
    /// Integers become floats at once: -3 is -3 beside uint8, too.
    pub fn promote_to_float(
        &self,
        a: impl Into<TensorOrScalar>,
        b: impl Into<TensorOrScalar>,
    ) -> (Value, Value) {
        let operands = [a.into(), b.into()];
        self.both_as_tensors(&operands, self.float_type(self.result_type(&operands)))
    }

    fn both_as_tensors(&self, [a, b]: &[TensorOrScalar; 2], dtype: DType) -> (Value, Value) {
        (self.as_tensor(a, dtype), self.as_tensor(b, dtype))
    }

    /// The float type that integers become: PyTorch's default type when the program was made, which
    /// the recorded output shows.
    pub fn default_float(&self) -> DType {
        match self.default_meta().map(|meta| meta.dtype.to_real()) {
            Some(dtype @ (DType::F64 | DType::F16 | DType::BF16)) => dtype,
            Some(_) => DType::F32,
            None => self.default_dtype(),
        }
    }

    /// The complex type that complex numbers of Python have.
    pub fn default_complex(&self) -> DType {
        match self.default_float() {
            DType::F64 => DType::C128,
            DType::F16 => DType::C32,
            _ => DType::C64,
        }
    }

    /// The result type of ops that turn integers into floats: `dtype` if it is a float or complex
    /// type, otherwise PyTorch's default type when the program was made.
    pub fn float_type(&self, dtype: DType) -> DType {
        if dtype.is_float() || dtype.is_complex() { dtype } else { self.default_float() }
    }

    /// `x` cast to [`float_type`](Self::float_type), as ops like `sin` do.
    pub fn to_float(&self, x: Value) -> Value {
        self.cast(x, self.float_type(self.dtype(x)))
    }
}
