//! Converts types of values.

use super::error::{Invalid, Result};
use pt2onnx_ir::{Model, TensorType, Type, schema};
use pt2onnx_proto::{TensorShapeProto, TypeProto, tensor_shape_proto::dimension, type_proto};
use pt2onnx_symbolic::{Expr, MAX_RANK};
use pt2onnx_tensor::DType;

/// A type; `None` if the file does not state it, or not its element type.
pub(super) fn type_of(model: &mut Model, proto: TypeProto, place: &str) -> Result<Option<Type>> {
    use type_proto::Value;
    let Some(value) = proto.value else {
        return Ok(None);
    };
    let mut inner = |boxed: Option<Box<TypeProto>>| match boxed {
        Some(proto) => type_of(model, *proto, place),
        None => Ok(None),
    };
    Ok(match value {
        Value::TensorType(t) => {
            let (number, shape) = (t.elem_type(), t.shape);
            tensor(model, number, shape, place)?.map(Type::Tensor)
        }
        Value::SparseTensorType(t) => {
            let (number, shape) = (t.elem_type(), t.shape);
            tensor(model, number, shape, place)?.map(Type::Sparse)
        }
        Value::SequenceType(t) => inner(t.elem_type)?.map(|t| Type::Sequence(Box::new(t))),
        Value::OptionalType(t) => inner(t.elem_type)?.map(|t| Type::Optional(Box::new(t))),
        Value::MapType(t) => {
            let key = t.key_type();
            let value = inner(t.value_type)?;
            value.map(|t| Ok(Type::Map(dtype(key, place)?, Box::new(t)))).transpose()?
        }
        Value::OpaqueType(t) => {
            let names = (t.domain().to_owned(), t.name().to_owned());
            Some(Type::Opaque(Box::new(names)))
        }
    })
}

fn tensor(
    model: &mut Model,
    number: i32,
    shape: Option<TensorShapeProto>,
    place: &str,
) -> Result<Option<TensorType>> {
    if number == 0 {
        return Ok(None);
    }
    if let Some(rank) = shape.as_ref().map(|s| s.dim.len()).filter(|rank| *rank > MAX_RANK) {
        return Err(Invalid::Rank(rank).at(place));
    }
    let mut size = |value| match value {
        Some(dimension::Value::DimValue(known)) if known >= 0 => Expr::int(known),
        // A symbol that begins with `?` is the IR's own, for an unknown size.
        Some(dimension::Value::DimParam(name)) if !name.is_empty() && !name.starts_with('?') => {
            Expr::symbol(&name)
        }
        // Some producers write -1 for an unknown size.
        _ => model.unknown_dim(),
    };
    Ok(Some(TensorType {
        dtype: dtype(number, place)?,
        shape: shape.map(|s| s.dim.into_iter().map(|d| size(d.value)).collect()),
    }))
}

/// The element type of that number.
pub(super) fn dtype(number: i32, place: &str) -> Result<DType> {
    schema::dtype(number.into()).ok_or_else(|| Invalid::ElementType(number).at(place))
}

/// Whether it states the meaning of a value or of its dimensions.
pub(super) fn has_denotations(proto: &TypeProto) -> bool {
    let shape = match &proto.value {
        Some(type_proto::Value::TensorType(t)) => t.shape.as_ref(),
        Some(type_proto::Value::SparseTensorType(t)) => t.shape.as_ref(),
        _ => None,
    };
    let denotes = |text: &Option<String>| text.as_ref().is_some_and(|t| !t.is_empty());
    denotes(&proto.denotation)
        || shape.is_some_and(|s| s.dim.iter().any(|d| denotes(&d.denotation)))
}
