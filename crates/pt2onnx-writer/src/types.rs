//! Converts the IR's types to protobuf messages.

use crate::{error::Error, strings::text};
use pt2onnx_ir::{TensorType, Type};
use pt2onnx_proto::{
    TensorShapeProto, TypeProto,
    tensor_proto::DataType,
    tensor_shape_proto::{Dimension, dimension},
    type_proto,
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The type of a value. `owner` is the name for errors.
pub(crate) fn type_proto(ty: &Type, owner: &str) -> Result<TypeProto, Error> {
    let boxed = |inner: &Type| type_proto(inner, owner).map(|t| Some(Box::new(t)));
    let sizes = |t: &TensorType| {
        t.shape.as_ref().map(|dims| TensorShapeProto { dim: dims.iter().map(dimension).collect() })
    };
    let value = match ty {
        Type::Tensor(t) => type_proto::Value::TensorType(type_proto::Tensor {
            elem_type: Some(data_type(t.dtype, owner)?),
            shape: sizes(t),
        }),
        Type::Sparse(t) => type_proto::Value::SparseTensorType(type_proto::SparseTensor {
            elem_type: Some(data_type(t.dtype, owner)?),
            shape: sizes(t),
        }),
        Type::Map(key, t) => type_proto::Value::MapType(Box::new(type_proto::Map {
            key_type: Some(data_type(*key, owner)?),
            value_type: boxed(t)?,
        })),
        Type::Opaque(names) => type_proto::Value::OpaqueType(type_proto::Opaque {
            domain: text(&names.0),
            name: text(&names.1),
        }),
        Type::Sequence(t) => {
            type_proto::Value::SequenceType(Box::new(type_proto::Sequence { elem_type: boxed(t)? }))
        }
        Type::Optional(t) => {
            type_proto::Value::OptionalType(Box::new(type_proto::Optional { elem_type: boxed(t)? }))
        }
    };
    Ok(TypeProto { value: Some(value), denotation: None })
}

/// A number, a text over the program's symbols, or nothing if the IR has no better symbol than
/// `?7`.
fn dimension(dim: &Expr) -> Dimension {
    let invented = || !dim.all_symbols(|s| !s.starts_with('?'));
    let value = match dim.as_int() {
        Some(known) => Some(dimension::Value::DimValue(known)),
        None if invented() => None,
        None => Some(dimension::Value::DimParam(dim.to_string())),
    };
    Dimension { value, denotation: None }
}

/// The number of an element type. `owner` is the name for errors.
pub(crate) fn data_type(dtype: DType, owner: &str) -> Result<i32, Error> {
    Ok(i32::from(match dtype {
        DType::F32 => DataType::Float,
        DType::U8 => DataType::Uint8,
        DType::I8 => DataType::Int8,
        DType::U16 => DataType::Uint16,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::String => DataType::String,
        DType::Bool => DataType::Bool,
        DType::F16 => DataType::Float16,
        DType::F64 => DataType::Double,
        DType::U32 => DataType::Uint32,
        DType::U64 => DataType::Uint64,
        DType::C64 => DataType::Complex64,
        DType::C128 => DataType::Complex128,
        DType::BF16 => DataType::Bfloat16,
        DType::F8E4M3FN => DataType::Float8e4m3fn,
        DType::F8E4M3FNUZ => DataType::Float8e4m3fnuz,
        DType::F8E5M2 => DataType::Float8e5m2,
        DType::F8E5M2FNUZ => DataType::Float8e5m2fnuz,
        DType::F8E8M0 => DataType::Float8e8m0,
        DType::F4E2M1 => DataType::Float4e2m1,
        DType::U4 => DataType::Uint4,
        DType::I4 => DataType::Int4,
        DType::U2 => DataType::Uint2,
        DType::I2 => DataType::Int2,
        DType::C32 => {
            return Err(Error::NoSuchType { name: owner.to_owned(), dtype });
        }
    }))
}
