//! Gives values to the weights of a model.

use super::{Misfit, WeightType};
use crate::naming::{entry, target};
use indexmap::IndexMap;
use pt2onnx_ir::{Def, Model, TensorType, Value, ValueData};
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashSet;

/// Gives values to the weights of a model that have none, such as those that [`Weights::None`](crate::Weights::None)
/// left out. Weights are found by their names in the program. An input with the name of a weight gets it as its
/// default value. Nothing is copied.
///
/// Returns the names of the weights that the model does not use.
///
/// # Errors
/// Everything that is missing or does not fit. The model is then unchanged.
pub fn apply_weights(
    model: &mut Model,
    weights: &IndexMap<String, Tensor>,
) -> Result<Vec<String>, Vec<Misfit>> {
    apply(model, weights, &FxHashSet::default())
}

/// Does the same as [`apply_weights`], but constants that are `replaceable` may have values already.
pub(crate) fn apply(
    model: &mut Model,
    weights: &IndexMap<String, Tensor>,
    replaceable: &FxHashSet<Value>,
) -> Result<Vec<String>, Vec<Misfit>> {
    let (mut fitting, mut misfits) = (Vec::new(), Vec::new());
    let mut used: FxHashSet<&str> = FxHashSet::default();
    for (value, data) in model.values() {
        let key = target(data).or(data.name.as_deref());
        let given = key.and_then(|key| weights.get_key_value(key));
        let name = || data.name.as_deref().unwrap_or_default().to_owned();
        let Some(wanted) = open(data) else { continue };
        match given {
            Some((key, tensor)) => {
                used.insert(key);
                let tensor = as_the_model_has_it(tensor, &wanted);
                let found = WeightType::of(&tensor);
                let filled = data.constant().filter(|t| t.has_data());
                match filled.filter(|_| !replaceable.contains(&value)) {
                    _ if found != wanted => {
                        let name = name();
                        misfits.push(Misfit::Type { name, wanted, found });
                    }
                    Some(there) if there.to_bytes() == tensor.to_bytes() => {}
                    Some(_) => misfits.push(Misfit::Filled(name())),
                    None => fitting.push((value, tensor)),
                }
            }
            None if needs_values(data) => {
                misfits.push(Misfit::Missing { name: name(), ty: wanted })
            }
            None => {}
        }
    }
    if !misfits.is_empty() {
        return Err(misfits);
    }
    for (value, tensor) in fitting {
        put(model, value, tensor);
    }
    let surplus = weights.keys().filter(|name| !used.contains(name.as_str()));
    Ok(surplus.cloned().collect())
}

/// The type that a weight must have to become this value. Only constants in use, and inputs of known type that are
/// not user inputs of the program, can take a weight.
fn open(data: &ValueData) -> Option<WeightType> {
    match data.def() {
        Def::Constant(tensor) => (data.uses().len() > 0).then(|| WeightType::of(tensor)),
        Def::Input(Model::MAIN, _) if kind(data) != Some("USER_INPUT") => {
            let TensorType { dtype, shape } = data.ty.as_ref()?.as_tensor()?;
            let sizes = shape.as_ref()?.iter();
            let sizes = sizes.map(|d| usize::try_from(d.as_int()?).ok());
            Some(WeightType { dtype: *dtype, shape: sizes.collect::<Option<_>>()? })
        }
        _ => None,
    }
}

/// Whether the model cannot run without a value for it: a constant without values, or an input that is a parameter or
/// buffer.
fn needs_values(data: &ValueData) -> bool {
    match data.constant() {
        Some(tensor) => !tensor.has_data() && tensor.nbytes() > 0,
        None => data.default.is_none() && matches!(kind(data), Some("PARAMETER" | "BUFFER")),
    }
}

/// The kind of input that the value was in the program.
fn kind(data: &ValueData) -> Option<&str> {
    entry(data, "pkg.torch.export.graph_signature.InputSpec.kind")
}

/// The tensor as the model has it: complex numbers as real/imaginary pairs.
fn as_the_model_has_it(tensor: &Tensor, wanted: &WeightType) -> Tensor {
    match tensor.dtype() == wanted.dtype {
        true => tensor.clone(),
        false => tensor.view_as_real(),
    }
}

fn put(model: &mut Model, value: Value, tensor: Tensor) {
    match model[value].def() {
        Def::Input(..) => model[value].default = Some(Box::new(tensor)),
        _ => {
            model.set_constant(value, tensor);
        }
    }
}
