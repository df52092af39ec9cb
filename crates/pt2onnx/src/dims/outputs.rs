//! Names that a caller gives to axes of outputs of a finished model.

use super::{
    lookup::axis_of,
    rename::valid,
    symbols::{Scope, substitute, symbols},
};
use pt2onnx_ir::{Model, Type};
use pt2onnx_symbolic::Expr;
use std::collections::{BTreeMap, BTreeSet};

/// Names axes of outputs: value, axis and name of each. Outputs that the model does not have, and
/// outputs that are inputs, stay.
///
/// A size that no input has gets its name wherever it occurs; otherwise only that axis gets it, so
/// that the name may also be an expression.
///
/// # Returns
/// Names that an axis cannot have: it is static, or there is none.
pub(crate) fn name_outputs(
    model: &mut Model,
    scope: Scope,
    names: &[(String, i64, String)],
) -> Vec<String> {
    let mut problems = Vec::new();
    for (output, axis, name) in names {
        if let Err(problem) = name_output(model, scope, (output, *axis, name)) {
            problems.push(problem);
        }
    }
    problems
}

fn name_output(
    model: &mut Model,
    scope: Scope,
    (output, axis, name): (&str, i64, &str),
) -> Result<(), String> {
    let named = model.output_values().find(|v| model[*v].name.as_deref() == Some(output));
    let Some(value) = named.filter(|v| !model.inputs().contains(v)) else { return Ok(()) };
    if model[value].ty.as_ref().and_then(Type::as_tensor).is_none_or(|t| t.shape.is_none()) {
        return Ok(());
    }
    let (index, dim) = axis_of(model, value, output, axis).map_err(|error| error.to_string())?;
    let name = valid(&format!("{output}.{axis}"), name).map_err(|error| error.to_string())?;
    if dim.is_static() {
        let text = "for all inputs, so it is not called";
        return Err(format!("axis {axis} of the output `{output}` is {dim} {text} `{name}`"));
    }
    match dim.as_symbol() {
        Some(symbol) if symbol == name => {}
        Some(symbol) if !of_inputs(model, symbol) && !symbols(model, scope).contains(&name) => {
            let names = BTreeMap::from([(symbol.to_owned(), Expr::symbol(&name))]);
            substitute(model, &names, scope);
        }
        _ => {
            if let Some(Type::Tensor(t)) = &mut model[value].ty
                && let Some(dim) = t.shape.as_mut().and_then(|s| s.get_mut(index))
            {
                *dim = Expr::symbol(&name);
            }
        }
    }
    Ok(())
}

/// Whether a size of an input depends on a symbol.
fn of_inputs(model: &Model, symbol: &str) -> bool {
    let types = model.inputs().iter().filter_map(|v| model[*v].ty.as_ref()?.as_tensor());
    let shapes = types.filter_map(|t| t.shape.as_deref());
    let found: BTreeSet<_> = shapes.flatten().flat_map(Expr::symbols).collect();
    found.iter().any(|s| s.to_string() == symbol)
}
