//! Finds the dimension that a symbol or an axis stands for.

use super::{
    DimError,
    symbols::{Scope, symbols},
};
use crate::naming::find;
use pt2onnx_ir::{Model, Type, Value};
use pt2onnx_symbolic::Expr;

pub(super) fn symbol_of(dim: &Expr, target: &str) -> Result<String, DimError> {
    let (value, axis) = place(target).unwrap_or((target, 0));
    let (value, text) = (value.to_owned(), dim.to_string());
    match dim.as_symbol() {
        Some(symbol) => Ok(symbol.to_owned()),
        None if dim.is_static() => Err(DimError::Static { value, axis, dim: text }),
        None => Err(DimError::Derived { value, axis, dim: text }),
    }
}

/// Splits `x.0` into a value and an axis.
pub(super) fn place(target: &str) -> Option<(&str, i64)> {
    let (value, axis) = target.rsplit_once('.')?;
    Some((value, axis.parse().ok()?))
}

/// The dimension that a symbol or `VALUE.AXIS` stands for.
pub(super) fn dim(model: &Model, scope: Scope, target: &str) -> Result<Expr, DimError> {
    let symbols = symbols(model, scope);
    if symbols.contains(target) {
        return Ok(Expr::symbol(target));
    }
    if let Some((name, axis)) = place(target)
        && let Some(value) = find(model, name)
    {
        return axis_of(model, value, name, axis).map(|(_, dim)| dim);
    }
    let inputs = model.inputs().iter().filter_map(|v| model[*v].name.as_deref());
    let target = target.to_owned();
    if let Some((value, _)) = place(&target) {
        let (value, inputs) = (value.to_owned(), inputs.collect::<Vec<_>>().join(", "));
        return Err(DimError::NoInput { target, value, inputs });
    }
    let shown: Vec<String> =
        symbols.iter().filter(|s| !s.starts_with('?')).map(|s| format!("`{s}`")).collect();
    let example = inputs.into_iter().next().map_or("x.0".to_owned(), |name| format!("{name}.0"));
    Err(DimError::Target {
        target,
        example,
        symbols: if shown.is_empty() {
            "the program's symbols (it has none)".to_owned()
        } else {
            shown.join(", ")
        },
    })
}

pub(super) fn end(model: &Model, name: &str) -> Result<Value, DimError> {
    find(model, name)
        .filter(|v| model.inputs().contains(v) || model.output_values().any(|o| o == *v))
        .ok_or_else(|| DimError::NoValue(name.to_owned()))
}

/// The index and size of an axis; a negative axis counts from the last.
pub(super) fn axis_of(
    model: &Model,
    value: Value,
    name: &str,
    axis: i64,
) -> Result<(usize, Expr), DimError> {
    let tensor = model[value].ty.as_ref().and_then(Type::as_tensor);
    let shape = tensor.and_then(|t| t.shape.as_deref()).unwrap_or_default();
    let index = match axis {
        0.. => Some(axis),
        _ => axis.checked_add_unsigned(shape.len() as u64),
    };
    let index = index.and_then(|i| usize::try_from(i).ok());
    let dim = index.and_then(|i| Some((i, shape.get(i)?.clone())));
    dim.ok_or_else(|| DimError::NoAxis { value: name.to_owned(), axis, rank: shape.len() })
}
