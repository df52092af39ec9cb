//! Converts tensors to arrays and back. Operators that only move elements use unsigned integers of
//! their width.

use ndarray::ArrayD;
use pt2onnx_tensor::{DType, Element, Tensor};

/// The elements as `T`, which must have the same width. Bits are not converted. Elements of less
/// than 8 bits are bytes each.
pub(super) fn array<T: Element>(t: &Tensor) -> Option<ArrayD<T>> {
    if size_of::<T>() * 8 != t.dtype().bits().max(8) {
        return None;
    }
    let bytes = match t.dtype().bits() {
        0..8 => t.codes()?.into(),
        _ => t.to_bytes(),
    };
    let elements = bytes.chunks_exact(size_of::<T>()).map(T::from_le).collect();
    ArrayD::from_shape_vec(super::call::dim(t.shape()), elements).ok()
}

/// The tensor of these elements, whose bits are those of `dtype`.
pub(super) fn tensor<T: Element>(dtype: DType, array: &ArrayD<T>) -> Option<Tensor> {
    let mut bytes = Vec::with_capacity(array.len() * size_of::<T>());
    array.iter().for_each(|e| e.push_le(&mut bytes));
    match dtype.bits() {
        0..8 => Tensor::from_codes(dtype, array.shape(), &bytes).ok(),
        _ => Tensor::new(dtype, array.shape(), bytes).ok(),
    }
}

/// The elements of a tensor of float32 or float64.
pub(super) fn doubles(t: &Tensor) -> Option<ArrayD<f64>> {
    match t.dtype() {
        DType::F32 => Some(array::<f32>(t)?.mapv(f64::from)),
        DType::F64 => array::<f64>(t),
        _ => None,
    }
}

/// The tensor of these numbers, rounded to `dtype`.
pub(super) fn floats(dtype: DType, numbers: &ArrayD<f64>) -> Option<Tensor> {
    match dtype {
        DType::F32 => tensor(dtype, &numbers.mapv(|v| v as f32)),
        DType::F64 => tensor(dtype, numbers),
        _ => None,
    }
}

/// `$body` with `$T` the unsigned integer as wide as the elements of `$dtype`, or a byte for less
/// than 8 bits; `None` where there is none.
macro_rules! by_width {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.bits() {
            2 | 4 | 8 => {
                type $T = u8;
                $body
            }
            16 => {
                type $T = u16;
                $body
            }
            32 => {
                type $T = u32;
                $body
            }
            64 => {
                type $T = u64;
                $body
            }
            _ => None,
        }
    };
}

/// `$body` with `$T` the Rust type of the numbers of `$dtype`; `None` for types without arithmetic.
macro_rules! by_number {
    ($dtype:expr, $T:ident => $body:expr) => {{
        macro_rules! with {
            ($t:ty) => {{
                type $T = $t;
                $body
            }};
        }
        match $dtype {
            DType::F64 => with!(f64),
            DType::F32 => with!(f32),
            DType::F16 => with!(half::f16),
            DType::BF16 => with!(half::bf16),
            DType::I64 => with!(i64),
            DType::I32 => with!(i32),
            DType::I16 => with!(i16),
            DType::I8 => with!(i8),
            DType::U64 => with!(u64),
            DType::U32 => with!(u32),
            DType::U16 => with!(u16),
            DType::U8 => with!(u8),
            _ => None,
        }
    }};
}

pub(super) use {by_number, by_width};
