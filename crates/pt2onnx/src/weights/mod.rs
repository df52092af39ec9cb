//! Weights apart from the model: left out of it, and put in later.

mod read;

pub use read::{WeightsError, read_weights};

use crate::naming::{entry, target};
use indexmap::IndexMap;
use pt2onnx_fx::{ExportedProgram, InputSpec, graph::Constant};
use pt2onnx_ir::{Def, Model, TensorType, Value, ValueData};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// Why the model cannot have a weight.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// It is not among those given.
    #[error("weight `{name}`, {ty}: is not among those given")]
    Missing {
        /// As the model calls it.
        name: String,
        /// What it should be.
        ty: WeightType,
    },
    /// It is of another element type or of other sizes.
    #[error("weight `{name}`: is {wanted} in the model, {found} was given")]
    Type {
        /// As the model calls it.
        name: String,
        /// What it should be.
        wanted: WeightType,
        /// What was given.
        found: WeightType,
    },
    /// The model has other values for it, which may have gone into others as well.
    #[error(
        "weight `{0}`: has other values in the model, and other constants may have been computed from them"
    )]
    Filled(
        /// As the model calls it.
        String,
    ),
}

/// Element type and sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightType {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub shape: Vec<usize>,
}

impl WeightType {
    fn of(tensor: &Tensor) -> Self {
        Self { dtype: tensor.dtype(), shape: tensor.shape().to_vec() }
    }
}

impl fmt::Display for WeightType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

/// Gives values to the weights that a model has without: those that [`Weights::None`](crate::Weights::None) left out, by
/// their names in the program. Inputs of such names get them as what they are unless the caller gives something else.
/// Nothing is copied.
///
/// Returns the names of those that the model has no use for.
///
/// # Errors
/// Everything that is missing or does not fit; the model is then as it was.
pub fn apply_weights(
    model: &mut Model,
    weights: &IndexMap<String, Tensor>,
) -> Result<Vec<String>, Vec<Misfit>> {
    apply(model, weights, &FxHashSet::default())
}

/// As [`apply_weights`]; constants that are `replaceable` may have values already.
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

/// What a weight must be to become this value: a constant in use, or an input of known type that was none of the
/// program's own.
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

/// Whether the model cannot run without: a constant without values, or an input that says it is a weight.
fn needs_values(data: &ValueData) -> bool {
    match data.constant() {
        Some(tensor) => !tensor.has_data() && tensor.nbytes() > 0,
        None => data.default.is_none() && matches!(kind(data), Some("PARAMETER" | "BUFFER")),
    }
}

/// What a value says it was to the program.
fn kind(data: &ValueData) -> Option<&str> {
    entry(data, "pkg.torch.export.graph_signature.InputSpec.kind")
}

/// Complex numbers are pairs in the model.
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

/// How many of a program's tensors have no values, and how many there are.
pub(crate) fn without_values(program: &ExportedProgram) -> (usize, usize) {
    let constants = program.constants.values().filter_map(|c| match c {
        Constant::Tensor(tensor) => Some(tensor),
        Constant::Opaque { .. } => None,
    });
    let (mut fake, mut all) = (0, 0);
    for tensor in program.state.values().chain(constants) {
        fake += usize::from(!tensor.has_data());
        all += 1;
    }
    (fake, all)
}

/// Takes the values of parameters and persistent buffers, what a state dict has, from a program, so that nothing is
/// computed from them; by name. Those that are tied stay tied.
pub(crate) fn leave_out(program: &mut ExportedProgram) -> FxHashMap<String, Tensor> {
    let mut hollow: FxHashMap<usize, Vec<(Tensor, Tensor)>> = FxHashMap::default();
    let mut taken = FxHashMap::default();
    for input in &program.signature.inputs {
        let (InputSpec::Parameter { target, .. }
        | InputSpec::Buffer { target, persistent: true, .. }) = input
        else {
            continue;
        };
        let Some(tensor) = program.state.get_mut(&**target) else {
            continue;
        };
        let known = hollow.entry(tensor.address()).or_default();
        let without = match known.iter().find(|(full, _)| full.same(tensor)) {
            Some((_, without)) => without.clone(),
            None => {
                let without = tensor.without_data();
                known.push((tensor.clone(), without.clone()));
                without
            }
        };
        taken.insert(target.to_string(), std::mem::replace(tensor, without));
    }
    taken
}

/// Constants of a model that was just lowered, and what was taken from them.
pub(crate) fn taken_from(model: &Model, taken: FxHashMap<String, Tensor>) -> Vec<(Value, Tensor)> {
    let constants = model.values().filter(|(_, data)| data.constant().is_some());
    constants
        .filter_map(|(value, data)| {
            let tensor = taken.get(data.name.as_deref()?)?;
            Some((value, tensor.view_as_real()))
        })
        .collect()
}

/// Puts back what was taken.
pub(crate) fn restore(model: &mut Model, taken: &[(Value, Tensor)]) {
    for (value, tensor) in taken {
        model.set_constant(*value, tensor.clone());
    }
}

/// Makes constants inputs of the model, which are these constants unless the caller gives something else.
pub(crate) fn as_inputs(model: &mut Model, constants: impl IntoIterator<Item = Value>) {
    for constant in constants {
        let ValueData { name, ty, metadata, doc_string, .. } = model[constant].clone();
        if model[constant].uses().len() == 0 {
            continue;
        }
        let default = model[constant].constant().filter(|t| t.has_data());
        let default = default.cloned().map(Box::new);
        let input = model.add_input(Model::MAIN, ty);
        model.replace_all_uses(constant, input);
        model[constant].name = None;
        let data = &mut model[input];
        (data.name, data.metadata, data.doc_string) = (name, metadata, doc_string);
        data.default = default;
    }
}
