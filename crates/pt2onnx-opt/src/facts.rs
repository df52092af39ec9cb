//! What is known of values: types, sizes, constants.

use pt2onnx_ir::{Def, Model, Shape, Value, is_unknown_symbol};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// Element type of a tensor, if known.
pub(crate) fn dtype(model: &Model, value: Value) -> Option<DType> {
    Some(model[value].ty.as_ref()?.as_tensor()?.dtype)
}

/// Sizes, if the rank is known.
pub(crate) fn shape(model: &Model, value: Value) -> Option<&Shape> {
    model[value].ty.as_ref()?.as_tensor()?.shape.as_ref()
}

/// Element type and sizes of a tensor, if known.
pub(crate) fn tensor_type(model: &Model, value: Value) -> Option<(DType, &Shape)> {
    let tensor = model[value].ty.as_ref()?.as_tensor()?;
    Some((tensor.dtype, tensor.shape.as_ref()?))
}

/// Number of dimensions, if known.
pub(crate) fn rank(model: &Model, value: Value) -> Option<usize> {
    shape(model, value).map(Vec::len)
}

/// Whether a size is what its expression says: no part of it is an unknown dimension.
pub(crate) fn known(dim: &Expr) -> bool {
    dim.is_static() || !dim.symbols().iter().any(|s| is_unknown_symbol(s))
}

/// Element type and element of a float constant that has one element.
pub(crate) fn number_of(model: &Model, value: Value) -> Option<(DType, f64)> {
    let Def::Constant(t) = model[value].def() else {
        return None;
    };
    if t.numel() != 1 || !t.has_data() {
        return None;
    }
    Some((t.dtype(), *floats(t)?.first()?))
}

/// The number that all elements of a float tensor are, if it is a constant without a name or expands a number. A constant with a
/// name may get other values later.
pub(crate) fn filling_of(model: &Model, value: Value) -> Option<f64> {
    let data = &model[value];
    if let Def::Constant(t) = data.def() {
        let elements = floats(t).filter(|_| t.has_data() && data.name.is_none())?;
        let first = *elements.first()?;
        return elements.iter().all(|e| *e == first).then_some(first);
    }
    let node = &model[model.producer(value)?];
    let expanded = node.input(0).filter(|_| node.is("Expand"))?;
    number_of(model, expanded).map(|(_, number)| number)
}

/// The elements of a tensor of floats.
fn floats(t: &Tensor) -> Option<Vec<f64>> {
    fn all<T: pt2onnx_tensor::Element>(t: &Tensor, f: impl Fn(T) -> f64) -> Option<Vec<f64>> {
        Some(t.to_vec::<T>()?.into_iter().map(f).collect())
    }
    match t.dtype() {
        DType::F64 => all::<f64>(t, |v| v),
        DType::F32 => all::<f32>(t, f64::from),
        DType::F16 => all::<half::f16>(t, f64::from),
        DType::BF16 => all::<half::bf16>(t, f64::from),
        _ => None,
    }
}
