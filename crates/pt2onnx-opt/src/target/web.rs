//! onnxruntime-web: JavaScript's interface has tensors of some element types, and nothing else.

use super::{
    error::{TargetError, Unrunnable},
    name::Target,
    runtime::types,
};
use pt2onnx_ir::{Model, Type, Value};
use pt2onnx_tensor::DType::{self, *};

/// The element types of its tensors, besides texts.
const TYPES: u32 = types(&[F64, F32, F16, I64, I32, I16, I8, U64, U32, U16, U8, Bool, I4, U4]);

/// Checks inputs and outputs.
///
/// # Errors
/// Some are of other types.
pub(super) fn check(model: &Model) -> Result<(), TargetError> {
    let has = |dtype: DType| dtype == String || TYPES & types(&[dtype]) != 0;
    let lacks = |value: &Value| match model[*value].ty.as_ref()? {
        Type::Tensor(tensor) if has(tensor.dtype) => None,
        ty => Some(ty.to_string()),
    };
    let inputs = model[Model::MAIN].inputs().iter().map(|&value| ("input", value));
    let ends = inputs.chain(model.output_values().map(|value| ("output", value)));
    let failures = ends.filter_map(|(kind, value)| {
        let place = format!("{kind} {}", model[value].name.as_deref().unwrap_or("without a name"));
        lacks(&value).map(|ty| Unrunnable { place, reason: format!("JavaScript has no {ty}") })
    });
    let failures: Vec<_> = failures.collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(TargetError::Nodes { target: Target::Web, failures })
    }
}
