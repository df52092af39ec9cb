//! Rust types that can be elements of tensors.

use crate::DType;
use half::{bf16, f16};

/// A Rust type with the same layout as a [`DType`].
pub trait Element: Copy + PartialEq + Send + Sync + 'static {
    /// The element type with this layout.
    const DTYPE: DType;
    /// Appends the little-endian bytes of the value to `to`.
    fn push_le(self, to: &mut Vec<u8>);
    /// Reads a value from its little-endian bytes. If `bytes` has another length than the type, the
    /// value is 0.
    fn from_le(bytes: &[u8]) -> Self;
}

macro_rules! element {
    ($($t:ty => $d:ident),*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            fn push_le(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
            fn from_le(bytes: &[u8]) -> Self {
                bytes.try_into().map(Self::from_le_bytes).unwrap_or_default()
            }
        }
    )*};
}
element!(f64 => F64, f32 => F32, f16 => F16, bf16 => BF16, i64 => I64, i32 => I32, i16 => I16, i8 => I8,
         u64 => U64, u32 => U32, u16 => U16, u8 => U8);

impl Element for bool {
    const DTYPE: DType = DType::Bool;
    fn push_le(self, to: &mut Vec<u8>) {
        to.push(self.into());
    }
    fn from_le(bytes: &[u8]) -> Self {
        bytes.first().is_some_and(|&b| b != 0)
    }
}
