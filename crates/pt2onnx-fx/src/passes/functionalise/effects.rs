//! Effects of a graph on its inputs, and the memory of its outputs.

use super::memory::{Id, Memory, Writer};
use crate::{
    graph::{Argument, Name, TensorMeta},
    views::View,
};
use rustc_hash::FxHashMap;

/// Inputs of a graph that share memory with other inputs. They are given by their positions.
#[derive(Clone, Default)]
pub(super) struct Ties {
    pub(super) views: Vec<Tie>,
    /// Pairs of inputs that may share memory.
    pub(super) unsure: Vec<(usize, usize)>,
}

/// An input that is a view of another one.
#[derive(Clone)]
pub(super) struct Tie {
    pub(super) input: usize,
    pub(super) base: usize,
    /// The views that lead from the base to the input, with their types. Empty if they are one
    /// tensor.
    pub(super) path: Vec<(View, TensorMeta)>,
}

/// Effects of a graph on its inputs.
pub(super) struct Effects {
    pub(super) mutated: Vec<MutatedInput>,
    pub(super) returned: Vec<Returned>,
}

/// An input that was written into or changed otherwise.
pub(super) struct MutatedInput {
    /// Its position.
    pub(super) input: usize,
    /// Its value at the end.
    pub(super) value: Name,
    pub(super) writer: Writer,
    /// Whether its elements changed.
    pub(super) is_written: bool,
    /// Whether its name stands for another tensor or another view of it at the end.
    pub(super) is_renamed: bool,
}

/// Where an output lies in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Returned {
    /// The input that it is.
    pub(super) input: Option<usize>,
    /// The inputs that it may share memory with.
    pub(super) shares: Vec<usize>,
    /// The earlier outputs that it may share memory with.
    pub(super) outputs: Vec<usize>,
}

impl Effects {
    /// The effect on an input.
    pub(super) fn of(&self, input: usize) -> Option<&MutatedInput> {
        let at = self.mutated.binary_search_by_key(&input, |mutated| mutated.input).ok()?;
        self.mutated.get(at)
    }
}

/// Where the outputs of a graph with these inputs lie.
pub(super) fn returned(
    inputs: &[(Option<Name>, Id)],
    outputs: &[Argument],
    memory: &mut Memory,
) -> Vec<Returned> {
    let mut of_storage: FxHashMap<usize, Returned> = FxHashMap::default();
    let mut of_id = FxHashMap::default();
    for (at, (_, id)) in inputs.iter().enumerate().filter(|(_, (name, _))| name.is_some()) {
        of_id.entry(*id).or_insert(at);
        of_storage.entry(memory.storage(*id)).or_default().shares.push(at);
    }
    let mut all = Vec::with_capacity(outputs.len());
    for (at, output) in outputs.iter().enumerate() {
        let mut returned = Returned::default();
        if let Argument::Tensor(name) = output {
            let id = memory.tensor(name);
            returned.input = of_id.get(&id).copied();
            for storage in std::iter::once(memory.storage(id)).chain(memory.related(id)) {
                let sharing = of_storage.entry(storage).or_default();
                returned.shares.extend(&sharing.shares);
                returned.outputs.extend(&sharing.outputs);
            }
            of_storage.entry(memory.storage(id)).or_default().outputs.push(at);
        }
        all.push(returned);
    }
    all
}
