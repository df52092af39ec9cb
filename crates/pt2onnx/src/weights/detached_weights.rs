//! Weights detached from the program during an export, so that nothing is computed from them.

use super::notes::Notes;
use crate::{error::Error, naming::target, options::Options};
use pt2onnx_fx::{ExportedProgram, InputSpec, graph::Constant};
use pt2onnx_ir::{Def, Model, Use, Value, ValueData};
use pt2onnx_report::fingerprint;
use pt2onnx_tensor::Tensor;
use pt2onnx_writer::Weights;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Values of parameters and persistent buffers, detached before the program is lowered: the model
/// gets none, or callers may replace them.
#[derive(Default)]
pub(crate) struct DetachedWeights {
    /// Values by the name of the weight.
    values: FxHashMap<String, Tensor>,
    /// The constants of the model that they belong to.
    constants: Vec<(Value, Tensor)>,
    /// The number of weights for which the archive has no values; if there are any, that of all
    /// weights.
    fake: (usize, usize),
    /// Whether the model stays without values.
    hollow: bool,
    /// Whether they are inputs of the model.
    as_inputs: bool,
    /// All tensors of a program whose model stays without values: weights without, constants with
    /// theirs.
    tensors: Vec<(String, Option<Tensor>)>,
    /// Other names of tied weights, and the first name of each.
    tied: BTreeMap<String, String>,
}

impl DetachedWeights {
    /// Detaches values from the program, if the options ask for it or the archive has none. Passes
    /// over the program come first, as they read which weights share memory.
    ///
    /// # Errors
    /// The program reads some tensors with values and others without.
    pub(crate) fn detach(program: &mut ExportedProgram, options: &Options) -> Result<Self, Error> {
        let (fake, all) = without_values(program);
        if options.weights != Weights::None && !fake.is_empty() && fake.len() < all {
            return Err(Error::Write(pt2onnx_writer::Error::NoData(fake)));
        }
        let fake = (fake.len(), all);
        let hollow = options.weights == Weights::None || fake.0 > 0;
        let as_inputs = options.keep_initializers_as_inputs;
        let values = if hollow || as_inputs { leave_out(program) } else { LeftOut::default() };
        let tensors = if hollow { tensors(program) } else { Vec::new() };
        let LeftOut { values, tied } = values;
        Ok(Self { values, fake, hollow, as_inputs, tensors, tied, ..Self::default() })
    }

    /// Finds the constants of a model that was just lowered, before they are renamed.
    pub(crate) fn find(&mut self, model: &Model) {
        let values = std::mem::take(&mut self.values);
        let constants = model.values().filter(|(_, data)| data.constant().is_some());
        let found = constants.filter_map(|(value, data)| {
            let tensor = values.get(data.name.as_deref()?)?;
            Some((value, tensor.view_as_real()))
        });
        self.constants = found.collect();
    }

    /// A warning if the model has no weights although the options do not ask for that.
    pub(crate) fn warning(&self, options: &Options) -> Option<String> {
        let (fake, all) = self.fake;
        (fake > 0 && options.weights == Weights::Auto).then(|| {
            format!(
                "the archive has no values for {fake} of {all} weights: the model is written without weights; \
                 it is complete when weights are applied"
            )
        })
    }

    /// The program's tensors that the finished model does not have under their names.
    fn notes(&self, model: &Model) -> Notes {
        let mut notes = Notes::default();
        if self.tensors.is_empty() {
            return notes;
        }
        let live = model.values().filter(|(_, data)| match data.def() {
            Def::Constant(_) => data.uses().len() > 0,
            _ => true,
        });
        let there: FxHashSet<&str> =
            live.filter_map(|(_, data)| target(data).or(data.name.as_deref())).collect();
        for (name, tensor) in &self.tensors {
            match self.tied.get(name).filter(|first| there.contains(first.as_str())) {
                _ if there.contains(name.as_str()) => {}
                Some(first) => {
                    notes.tied.insert(name.clone(), first.clone());
                }
                None => {
                    notes.unused.insert(name.clone(), tensor.as_ref().map(fingerprint));
                }
            }
        }
        notes
    }

    /// Attaches the values, as constants or inputs. Returns the constants from which nothing was
    /// computed. Where weights with values are inputs, so are the other initialisers of torch.onnx:
    /// non-persistent buffers and constants of the program, but for those that are outputs.
    pub(crate) fn attach(
        self,
        model: &mut Model,
        program: Option<&ExportedProgram>,
    ) -> FxHashSet<Value> {
        self.notes(model).write(model);
        if !self.hollow {
            for (value, tensor) in &self.constants {
                model.set_constant(*value, tensor.clone());
            }
        }
        let constants = self.constants.into_iter().map(|(value, _)| value);
        if self.as_inputs {
            as_inputs(model, constants);
            if !self.hollow {
                let values = model.values();
                let others =
                    values.filter(|(_, data)| is_initializer(data, program) && !is_output(data));
                let others: Vec<Value> = others.map(|(value, _)| value).collect();
                as_inputs(model, others);
            }
            return FxHashSet::default();
        }
        constants.collect()
    }
}

/// All tensors of a program, and the values of those that are no weights.
fn tensors(program: &ExportedProgram) -> Vec<(String, Option<Tensor>)> {
    let weights = program.state.keys().map(|name| (name.clone(), None));
    let constants = program.constants.iter().filter_map(|(name, constant)| match constant {
        Constant::Tensor(tensor) => {
            Some((name.clone(), Some(tensor.clone()).filter(Tensor::has_data)))
        }
        Constant::Opaque { .. } => None,
    });
    weights.chain(constants).collect()
}

/// The tensors without values among those that a program reads, and if there are any, the number of
/// tensors that it reads. It may write into others, such as `parameter.data` in a program that was
/// captured under `strict=True`.
fn without_values(program: &ExportedProgram) -> (Vec<String>, usize) {
    let constants = program.constants.values().filter_map(|constant| match constant {
        Constant::Tensor(tensor) => Some(tensor),
        Constant::Opaque { .. } => None,
    });
    if program.state.values().chain(constants).all(Tensor::has_data) {
        return (Vec::new(), 0);
    }
    let mut read = FxHashSet::default();
    let args = program.graph.nodes.iter().flat_map(|node| node.args.iter().map(|a| &a.value));
    for arg in args.chain(&program.graph.outputs) {
        arg.for_each_name(&mut |name| _ = read.insert(name.clone()));
    }
    let inputs = program.signature.inputs.iter();
    let targets = inputs.filter(|i| i.name().is_some_and(|name| read.contains(name)));
    let (mut fake, mut all) = (Vec::new(), 0);
    for target in targets.filter_map(InputSpec::target) {
        let constant = || match program.constants.get(&**target)? {
            Constant::Tensor(tensor) => Some(tensor),
            Constant::Opaque { .. } => None,
        };
        let Some(tensor) = program.state.get(&**target).or_else(constant) else {
            continue;
        };
        fake.extend((!tensor.has_data()).then(|| target.to_string()));
        all += 1;
    }
    (fake, all)
}

/// The result of [`leave_out`].
#[derive(Default)]
struct LeftOut {
    /// Values by the name of the weight.
    values: FxHashMap<String, Tensor>,
    /// Other names of tied weights, and the first name of each.
    tied: BTreeMap<String, String>,
}

/// Removes the values of a state dict, parameters and persistent buffers, from a program. Tied
/// weights stay tied.
fn leave_out(program: &mut ExportedProgram) -> LeftOut {
    let mut hollow: FxHashMap<usize, Vec<(Tensor, Tensor, &str)>> = FxHashMap::default();
    let mut left_out = LeftOut::default();
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
        let without = match known.iter().find(|(full, ..)| full.same(tensor)) {
            Some((_, without, first)) => {
                left_out.tied.insert(target.to_string(), (*first).to_owned());
                without.clone()
            }
            None => {
                let without = tensor.without_data();
                known.push((tensor.clone(), without.clone(), target));
                without
            }
        };
        left_out.values.insert(target.to_string(), std::mem::replace(tensor, without));
    }
    left_out
}

/// Whether a value of a finished model is an initialiser as torch.onnx makes them: a tensor of the
/// program, or a large constant.
pub(crate) fn is_initializer(data: &ValueData, program: Option<&ExportedProgram>) -> bool {
    let name = target(data).or(data.name.as_deref());
    let known = |p: &ExportedProgram| {
        name.is_some_and(|name| p.state.contains_key(name) || p.constants.contains_key(name))
    };
    let tensor = data.constant();
    tensor.is_some_and(|t| program.is_some_and(known) || pt2onnx_writer::is_initializer(data, t))
}

fn is_output(data: &ValueData) -> bool {
    data.uses().any(|used| matches!(used, Use::Output(..)))
}

/// Makes constants inputs of the model, which are these constants unless the caller gives something
/// else.
fn as_inputs(model: &mut Model, constants: impl IntoIterator<Item = Value>) {
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
