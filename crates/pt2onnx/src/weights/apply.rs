//! Gives values to the weights of a model.

use super::{
    notes::Notes,
    weight_mismatch::{Misfit, Unused, WeightType},
};
use crate::naming::{entry, target};
use indexmap::IndexMap;
use pt2onnx_ir::{Def, FOLDED_FROM, Model, TensorType, Value, ValueData};
use pt2onnx_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

/// Gives values to the weights of a model that have none, such as those that
/// [`Weights::None`](crate::Weights::None) left out. Weights are found by their names in the
/// program. An input with the name of a weight gets it as its default value. A tied weight is found
/// by any of its names. Nothing is copied.
///
/// A weight that the model does not use is an error: it may have another name there, or other
/// constants were computed from it. Weights that the program itself does not use are ignored, if
/// the model was exported without weights and lists them.
///
/// # Errors
/// Everything that is missing, does not fit or is not used. The model is then unchanged.
pub fn apply_weights(
    model: &mut Model,
    weights: &IndexMap<String, Tensor>,
) -> Result<(), Vec<Misfit>> {
    apply_weights_with(model, weights, Unused::Error).map(drop)
}

/// Does the same as [`apply_weights`], and weights that the model does not use may be allowed.
/// Returns their names.
///
/// # Errors
/// Those of [`apply_weights`].
pub fn apply_weights_with(
    model: &mut Model,
    weights: &IndexMap<String, Tensor>,
    unused: Unused,
) -> Result<Vec<String>, Vec<Misfit>> {
    apply(model, weights, &FxHashSet::default(), unused)
}

/// Does the same as [`apply_weights`], but constants that are `replaceable` may have values
/// already.
pub(crate) fn apply(
    model: &mut Model,
    weights: &IndexMap<String, Tensor>,
    replaceable: &FxHashSet<Value>,
    unused: Unused,
) -> Result<Vec<String>, Vec<Misfit>> {
    let notes = Notes::of(model);
    let (mut fitting, mut misfits) = (Vec::new(), Vec::new());
    let mut used: FxHashSet<&str> = FxHashSet::default();
    let mut tied: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    for (other, name) in &notes.tied {
        tied.entry(name).or_default().push(other);
    }
    for (value, data) in model.values() {
        let Some(wanted) = open(data) else { continue };
        let key = target(data).or(data.name.as_deref());
        let others = key.and_then(|key| tied.get(key)).into_iter().flatten().copied();
        let mut given =
            key.into_iter().chain(others).filter_map(|name| weights.get_key_value(name));
        let name = || data.name.as_deref().unwrap_or_default().to_owned();
        let Some((key, tensor)) = given.next() else {
            if needs_values(data) {
                misfits.push(Misfit::Missing { name: name(), ty: wanted });
            }
            continue;
        };
        used.insert(key);
        for (other, also) in given {
            used.insert(other);
            if !equal(tensor, also) {
                misfits.push(Misfit::Tied { name: other.clone(), other: key.clone() });
            }
        }
        let tensor = as_the_model_has_it(tensor, &wanted);
        let found = WeightType::of(&tensor);
        let filled = data.constant().filter(|t| t.has_data() && !replaceable.contains(&value));
        match filled {
            _ if found != wanted => {
                misfits.push(Misfit::Type { name: name(), wanted, found });
            }
            Some(there) if there.to_bytes() == tensor.to_bytes() => {}
            Some(_) => misfits.push(Misfit::Filled(name())),
            None => fitting.push((value, tensor)),
        }
    }
    let surplus = weights.iter().filter(|(name, _)| !used.contains(name.as_str()));
    let (ignored, surplus): (Vec<_>, Vec<_>) =
        surplus.partition(|(name, tensor)| notes.ignores(name, tensor));
    let named = |(name, _): &(&String, _)| (*name).clone();
    if unused == Unused::Error {
        misfits.extend(surplus.iter().map(named).map(Misfit::Unused));
    }
    if !misfits.is_empty() {
        return Err(misfits);
    }
    for (value, tensor) in fitting {
        put(model, value, tensor);
    }
    Ok(surplus.iter().chain(&ignored).map(named).collect())
}

/// Whether two tensors have the same type and elements.
fn equal(a: &Tensor, b: &Tensor) -> bool {
    WeightType::of(a) == WeightType::of(b) && a.to_bytes() == b.to_bytes()
}

/// The type that a weight must have to become this value. Only constants in use, and inputs of
/// known type that are not user inputs of the program, can take a weight.
fn open(data: &ValueData) -> Option<WeightType> {
    match data.def() {
        // A constant computed from a weight is not that weight.
        Def::Constant(_) if entry(data, FOLDED_FROM).is_some() => None,
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

/// Whether the model cannot run without a value for it: a constant without values, or an input that
/// is a parameter or buffer.
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
    if tensor.dtype() == wanted.dtype { tensor.clone() } else { tensor.view_as_real() }
}

fn put(model: &mut Model, value: Value, tensor: Tensor) {
    match model[value].def() {
        Def::Input(..) => model[value].default = Some(Box::new(tensor)),
        _ => {
            model.set_constant(value, tensor);
        }
    }
}
