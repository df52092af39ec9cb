//! Converts tensors to and from ONNX Runtime's.

use half::{bf16, f16};
use ort::value::{DynValue, PrimitiveTensorElementType, Tensor as OrtTensor, TensorElementType};
use pt2onnx_tensor::{DType, Element, Tensor};
use std::fmt::Debug;

pub(super) fn to_ort(t: &Tensor) -> Result<DynValue, String> {
    fn of<T: Element + PrimitiveTensorElementType + Debug>(t: &Tensor) -> Result<DynValue, String> {
        let elements = t.to_vec::<T>().ok_or("it has no values")?;
        OrtTensor::from_array((t.shape().to_vec(), elements))
            .map(|v| v.into_dyn())
            .map_err(|e| e.to_string())
    }
    match t.dtype() {
        DType::F64 => of::<f64>(t),
        DType::F32 => of::<f32>(t),
        DType::F16 => of::<f16>(t),
        DType::BF16 => of::<bf16>(t),
        DType::I64 => of::<i64>(t),
        DType::I32 => of::<i32>(t),
        DType::I16 => of::<i16>(t),
        DType::I8 => of::<i8>(t),
        DType::U64 => of::<u64>(t),
        DType::U32 => of::<u32>(t),
        DType::U16 => of::<u16>(t),
        DType::U8 => of::<u8>(t),
        DType::Bool => of::<bool>(t),
        DType::String => {
            let texts = t.as_strings().unwrap_or_default().iter();
            let texts =
                texts.map(|text| String::from_utf8(text.to_vec()).map_err(|e| e.to_string()));
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            OrtTensor::from_string_array((t.shape().to_vec(), texts.as_slice()))
                .map(|v| v.into_dyn())
                .map_err(|e| e.to_string())
        }
        other => Err(format!("tensors of {other} cannot be passed")),
    }
}

/// The type of tensors with elements of this type.
pub(super) fn element_type(ty: TensorElementType) -> Result<DType, String> {
    Ok(match ty {
        TensorElementType::Float64 => DType::F64,
        TensorElementType::Float32 => DType::F32,
        TensorElementType::Float16 => DType::F16,
        TensorElementType::Bfloat16 => DType::BF16,
        TensorElementType::Int64 => DType::I64,
        TensorElementType::Int32 => DType::I32,
        TensorElementType::Int16 => DType::I16,
        TensorElementType::Int8 => DType::I8,
        TensorElementType::Uint64 => DType::U64,
        TensorElementType::Uint32 => DType::U32,
        TensorElementType::Uint16 => DType::U16,
        TensorElementType::Uint8 => DType::U8,
        TensorElementType::Bool => DType::Bool,
        TensorElementType::String => DType::String,
        other => return Err(format!("tensors of {other} cannot be passed")),
    })
}

pub(super) fn from_ort(value: &DynValue) -> Result<Tensor, String> {
    fn of<T: Element + PrimitiveTensorElementType>(value: &DynValue) -> Result<Tensor, String> {
        let (shape, elements) = value.try_extract_tensor::<T>().map_err(|e| e.to_string())?;
        let shape = shape.iter().map(|&s| usize::try_from(s));
        let shape: Vec<usize> = shape.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
        Tensor::from_slice(shape, elements).map_err(|e| e.to_string())
    }
    match value.dtype().tensor_type() {
        Some(TensorElementType::Float64) => of::<f64>(value),
        Some(TensorElementType::Float32) => of::<f32>(value),
        Some(TensorElementType::Float16) => of::<f16>(value),
        Some(TensorElementType::Bfloat16) => of::<bf16>(value),
        Some(TensorElementType::Int64) => of::<i64>(value),
        Some(TensorElementType::Int32) => of::<i32>(value),
        Some(TensorElementType::Int16) => of::<i16>(value),
        Some(TensorElementType::Int8) => of::<i8>(value),
        Some(TensorElementType::Uint64) => of::<u64>(value),
        Some(TensorElementType::Uint32) => of::<u32>(value),
        Some(TensorElementType::Uint16) => of::<u16>(value),
        Some(TensorElementType::Uint8) => of::<u8>(value),
        Some(TensorElementType::Bool) => of::<bool>(value),
        Some(other) => Err(format!("tensors of {other} cannot be read")),
        None => Err("it is no tensor".to_owned()),
    }
}
