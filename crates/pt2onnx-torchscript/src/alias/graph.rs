//! May-alias analysis: records which memory may be a copy of other memory, by name.

use crate::{error::Site, state::journal::Journal};
use pt2onnx_fx::Name;
use rustc_hash::{FxHashMap, FxHashSet};

/// Copies of memory. Memory has the name of the tensor that was made with it.
#[derive(Default)]
pub(crate) struct MayAlias {
    /// The possible sources of each copy.
    pub(crate) sources: FxHashMap<Name, Vec<Name>>,
    /// The possible copies of each source.
    pub(crate) copies: FxHashMap<Name, Vec<Name>>,
    /// Memory that holds the elements of lists.
    pub(crate) lists: FxHashSet<Name>,
    /// Lists whose elements may be the same tensor.
    pub(crate) repeated: FxHashSet<Name>,
    /// Tensors that stand for other memory while a branch or body runs.
    pub(crate) stand_ins: Journal<Name, Name>,
}

/// All names that can be reached from these, with them.
fn reached(
    from: impl IntoIterator<Item = Name>,
    edges: &FxHashMap<Name, Vec<Name>>,
) -> FxHashSet<Name> {
    let mut found: FxHashSet<Name> = FxHashSet::default();
    let mut open: Vec<Name> = from.into_iter().collect();
    while let Some(name) = open.pop() {
        if let Some(next) = edges.get(&name) {
            open.extend(next.iter().filter(|next| !found.contains(*next)).cloned());
        }
        found.insert(name);
    }
    found
}

impl MayAlias {
    /// The memory that this stands for, or this.
    pub(crate) fn memory_of(&self, memory: &Name) -> Name {
        last_of(memory, &self.stand_ins)
    }

    pub(crate) fn add(&mut self, copy: &Name, sources: &[Name]) {
        for source in sources.iter().filter(|source| *source != copy) {
            self.sources.entry(copy.clone()).or_default().push(source.clone());
            self.copies.entry(source.clone()).or_default().push(copy.clone());
        }
    }

    /// All that this memory may be in PyTorch: itself, and its sources.
    pub(crate) fn origins(&self, memory: &Name) -> FxHashSet<Name> {
        reached([memory.clone()], &self.sources)
    }

    /// The origins that are no copies themselves.
    pub(crate) fn first_origins(&self, memory: &Name) -> FxHashSet<Name> {
        self.origins(memory).into_iter().filter(|name| !self.sources.contains_key(name)).collect()
    }

    /// All that a write into this memory changes in PyTorch.
    pub(crate) fn touched(&self, memory: &Name) -> FxHashSet<Name> {
        let origins = self.origins(memory);
        let first = origins.iter().filter(|name| !self.sources.contains_key(*name)).cloned();
        let mut touched = reached(first.collect::<Vec<_>>(), &self.copies);
        touched.extend(origins);
        touched
    }
}

/// The last name of the chain that begins with this one.
pub(crate) fn last_of(name: &Name, next: &Journal<Name, Name>) -> Name {
    let mut name = name;
    for _ in 0..next.len() {
        match next.get(name) {
            Some(next) => name = next,
            None => break,
        }
    }
    name.clone()
}

/// Results of `contiguous` that may be their argument, and writes into their memory.
#[derive(Default)]
pub(crate) struct ConditionalAlias {
    pub(crate) results: FxHashSet<Name>,
    /// Whether what was written into is of the result, by its name, or else of the argument; and
    /// where that is.
    pub(crate) written: FxHashMap<Name, (bool, Site)>,
}
