//! Converts tensors to arrays and back. Operators that only move elements use unsigned integers of
//! their width.

use ndarray::{ArrayD, IxDyn};
use pt2onnx_tensor::{DType, Element, Tensor};

/// The elements as `T` of the same width, bit for bit. Elements below 8 bits are bytes each.
pub(super) fn array<T: Element>(t: &Tensor) -> Option<ArrayD<T>> {
    if size_of::<T>() * 8 != t.dtype().bits().max(8) {
        return None;
    }
    let bytes = match t.dtype().bits() {
        0..8 => t.codes()?.into(),
        _ => t.to_bytes(),
    };
    shaped(t.shape(), bytes.chunks_exact(size_of::<T>()).map(T::from_le).collect())
}

pub(super) fn shaped<T>(shape: &[usize], elements: Vec<T>) -> Option<ArrayD<T>> {
    ArrayD::from_shape_vec(IxDyn(shape), elements).ok()
}

pub(super) fn tensor<T: Element>(dtype: DType, array: &ArrayD<T>) -> Option<Tensor> {
    of_elements(dtype, array.shape(), array.iter().copied())
}

/// The same of elements in row-major order.
pub(super) fn of_elements<T: Element>(
    dtype: DType,
    shape: &[usize],
    elements: impl IntoIterator<Item = T>,
) -> Option<Tensor> {
    let mut bytes = Vec::with_capacity(shape.iter().product::<usize>() * size_of::<T>());
    elements.into_iter().for_each(|e| e.push_le(&mut bytes));
    match dtype.bits() {
        0..8 => Tensor::from_codes(dtype, shape, &bytes).ok(),
        _ => Tensor::new(dtype, shape, bytes).ok(),
    }
}

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
    ($dtype:expr, $T:ident => $body:expr) => {{
        macro_rules! with {
            ($t:ty) => {{
                type $T = $t;
                $body
            }};
        }
        match $dtype.bits() {
            2 | 4 | 8 => with!(u8),
            16 => with!(u16),
            32 => with!(u32),
            64 => with!(u64),
            _ => None,
        }
    }};
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
