//! Python's numbers: bool, int, float and complex.

use crate::{DType, Tensor};
use half::{bf16, f16};

/// A Python number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    Complex(f64, f64),
}

impl Scalar {
    /// The value as a float. A complex number becomes its real part.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b.into(),
            Scalar::Int(i) => i as f64,
            Scalar::Float(f) | Scalar::Complex(f, _) => f,
        }
    }

    /// The value as an integer. Floats are truncated towards zero and clamped to the range of
    /// `i64`; a complex number becomes its real part.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b.into(),
            Scalar::Int(i) => i,
            Scalar::Float(f) | Scalar::Complex(f, _) => f as i64,
        }
    }

    /// Whether the value is not zero.
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Float(f) => f != 0.0,
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }

    /// A 0-d tensor with this value. The conversion is that of C: integers wrap.
    ///
    /// Returns `None` for types without a conversion: complex, sub-byte, 8-bit float and string
    /// types.
    pub fn to_tensor(self, dtype: DType) -> Option<Tensor> {
        let i = self.to_i64();
        Some(match dtype {
            DType::F64 => Tensor::scalar(self.to_f64()),
            DType::F32 => Tensor::scalar(self.to_f64() as f32),
            DType::F16 => Tensor::scalar(f16::from_f64(self.to_f64())),
            DType::BF16 => Tensor::scalar(bf16::from_f64(self.to_f64())),
            DType::I64 => Tensor::scalar(i),
            DType::I32 => Tensor::scalar(i as i32),
            DType::I16 => Tensor::scalar(i as i16),
            DType::I8 => Tensor::scalar(i as i8),
            DType::U64 => Tensor::scalar(i as u64),
            DType::U32 => Tensor::scalar(i as u32),
            DType::U16 => Tensor::scalar(i as u16),
            DType::U8 => Tensor::scalar(i as u8),
            DType::Bool => Tensor::scalar(self.to_bool()),
            _ => return None,
        })
    }
}

macro_rules! from {
    ($($t:ty => $variant:ident),*) => {$(
        impl From<$t> for Scalar {
            fn from(v: $t) -> Self {
                Scalar::$variant(v.into())
            }
        }
    )*};
}
from!(bool => Bool, i64 => Int, i32 => Int, f64 => Float);
