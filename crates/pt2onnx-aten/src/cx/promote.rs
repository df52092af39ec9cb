//! Type promotion as PyTorch does it: c10/core/ScalarType.h (promoteTypes) and ATen/native/TypeProperties.cpp (result_type).

use crate::Cx;
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

/// The type that values of both types fit in, by PyTorch's table.
pub fn promote_types(a: DType, b: DType) -> DType {
    use DType::*;
    if a == b {
        return a;
    }
    match (a, b) {
        (Bool, other) | (other, Bool) => other,
        (C128, _) | (_, C128) => C128,
        (C64 | C32, F64) | (F64, C64 | C32) => C128,
        (C64, _) | (_, C64) => C64,
        (C32, F32 | BF16) | (F32 | BF16, C32) => C64,
        (C32, _) | (_, C32) => C32,
        (F64, _) | (_, F64) => F64,
        (F32, _) | (_, F32) => F32,
        (F16, BF16) | (BF16, F16) => F32,
        (F16, _) | (_, F16) => F16,
        (BF16, _) | (_, BF16) => BF16,
        _ if a.is_float() => a,
        _ if b.is_float() => b,
        // Integers: the wider; uint8 beside a signed type needs the next wider signed one.
        (U8, I8) | (I8, U8) => I16,
        _ if a.bits() > b.bits() => a,
        _ if b.bits() > a.bits() => b,
        _ if a.is_unsigned() => b,
        _ => a,
    }
}

/// What takes part in promotion: tensors with dimensions, 0-d tensors and numbers, the later only by their kind.
pub fn result_type(operands: impl IntoIterator<Item = (DType, Category)>) -> Option<DType> {
    let mut by_category = [None; 3];
    for (dtype, category) in operands {
        let slot: &mut Option<DType> = &mut by_category[category as usize];
        *slot = Some(slot.map_or(dtype, |d| promote_types(d, dtype)));
    }
    let [dim, zero, number] = by_category;
    combine(dim, combine(zero, number))
}

/// Category of an operand of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// A tensor of one dimension or more.
    Dim,
    /// A 0-d tensor.
    Zero,
    /// A Python number.
    Number,
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    let (Some(higher), Some(lower)) = (higher, lower) else {
        return higher.or(lower);
    };
    Some(match () {
        () if higher.is_complex() => higher,
        () if higher.is_float() && lower.is_complex() => to_complex(higher),
        () if higher.is_float() => higher,
        () if higher == DType::Bool || lower.is_float() || lower.is_complex() => {
            promote_types(higher, lower)
        }
        () => higher,
    })
}

fn to_complex(real: DType) -> DType {
    match real {
        DType::F64 => DType::C128,
        DType::F16 => DType::C32,
        _ => DType::C64,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use Category::*;
    use DType::*;

    #[test]
    fn numbers_only_lift_the_kind() {
        for (operands, expected) in [
            (vec![(I32, Dim), (I64, Number)], I32),
            (vec![(I32, Dim), (F32, Number)], F32),
            (vec![(F16, Dim), (F32, Number)], F16),
            (vec![(F16, Dim), (F64, Zero)], F16),
            (vec![(F16, Dim), (F32, Dim)], F32),
            (vec![(U8, Dim), (I8, Dim)], I16),
            (vec![(Bool, Dim), (I64, Number)], I64),
            (vec![(I8, Zero), (I64, Number)], I8),
            (vec![(I64, Zero), (F32, Number), (I8, Dim)], F32),
            (vec![(F16, Dim), (BF16, Dim)], F32),
            (vec![(F64, Dim), (C64, Number)], C128),
        ] {
            assert_eq!(result_type(operands.clone()), Some(expected), "{operands:?}");
        }
    }
}
