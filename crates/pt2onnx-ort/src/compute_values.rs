//! Computes intermediate values of a model.

use crate::{
    bodies::{Collected, Owners, collect, in_main, owners, region, together},
    error::RunError,
    session::{Session, SessionOptions},
};
use pt2onnx_ir::{Def, Model, Value};
use pt2onnx_tensor::Tensor;

/// Computes values, each given with the name that errors show, for these inputs. A value can be an
/// input, a weight, an output, or the result of any node. A value in the body of an `If`, `Loop` or
/// `Scan` gets one more dimension in front: an entry for each time that it is computed, in order.
///
/// # Errors
/// [`RunError::NoValue`] for values in functions; [`RunError::Output`] if the sizes of a value in a
/// body change from time to time; and those of [`Session::new`] and [`Session::run`].
pub fn compute_values(
    model: &Model,
    values: &[(Value, &str)],
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, RunError> {
    let mut model = model.clone();
    let owners = owners(&model);
    for (value, name) in values {
        if region(&model, *value).is_some_and(|r| !in_main(&model, &owners, r)) {
            return Err(RunError::NoValue((*name).to_owned()));
        }
    }
    let ends: Vec<Value> = model.inputs().to_vec();
    if ends.len() != inputs.len() {
        let name = |v: &Value| model[*v].name.as_deref().unwrap_or_default().to_owned();
        let (given, names) = (inputs.len(), ends.iter().map(name).collect());
        return Err(RunError::Inputs { given, names });
    }
    if values.iter().any(|(v, _)| model[*v].ty.is_none()) {
        pt2onnx_opt::infer_types(&mut model);
    }
    // The outputs from which each value is put together.
    let mut sources: Vec<(Value, Vec<Value>)> = Vec::new();
    for &(value, name) in values {
        if sources.iter().any(|(known, _)| *known == value) {
            continue;
        }
        let outputs = outputs_of(&mut model, &owners, value)
            .map_err(|reason| RunError::Output { name: name.to_owned(), reason })?;
        sources.extend(outputs.map(|outputs| (value, outputs)));
    }
    let computed: Vec<Value> = sources.iter().flat_map(|(_, outputs)| outputs).copied().collect();
    let mut results = Vec::new();
    if !computed.is_empty() {
        model.set_outputs(Model::MAIN, &computed);
        model.assign_names();
        let mut session = Session::new(&model, &SessionOptions::default(), &[])?;
        results = session.run(inputs)?;
    }
    let known = ends.into_iter().zip(inputs.iter().cloned());
    let mut known: Vec<(Value, Tensor)> = known.collect();
    // One result for a value of the main graph, two for one of a body.
    let mut results = results.into_iter();
    for (value, outputs) in sources {
        let name = model[value].name.as_deref().unwrap_or_default();
        match (outputs.len(), results.next(), results.as_slice().first()) {
            (2, Some(elements), Some(sizes)) => {
                let ty = model[value].ty.as_ref();
                known.push((value, together(name, &elements, sizes, ty)?));
                results.next();
            }
            (_, Some(result), _) => known.push((value, result)),
            _ => {}
        }
    }
    let tensors = values.iter().map(|(value, _)| match model[*value].constant() {
        Some(weight) => Some(weight.clone()),
        None => known.iter().find(|(v, _)| v == value).map(|(_, t)| t.clone()),
    });
    // Each value is a weight, an input or a result.
    Ok(tensors.flatten().collect())
}

/// The outputs from which a value is put together: itself, or two for a value in a body, its
/// elements and their sizes. `None` if it need not be computed.
fn outputs_of(
    model: &mut Model,
    owners: &Owners,
    value: Value,
) -> Result<Option<Vec<Value>>, String> {
    match (region(model, value), model[value].def()) {
        (None, _) | (Some(Model::MAIN), Def::Input(..)) => Ok(None),
        (Some(Model::MAIN), _) => Ok(Some(vec![value])),
        (Some(body), _) => {
            let Collected { elements, sizes } = collect(model, owners, value, body)?;
            Ok(Some(vec![elements, sizes]))
        }
    }
}
