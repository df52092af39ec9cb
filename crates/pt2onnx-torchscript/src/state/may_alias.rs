//! May-alias analysis: what PyTorch may have once where the model has copies. A write reaches one
//! of the copies only, and makes the others stale.

use super::journal::Journal;
use crate::value::Ref;
use pt2onnx_fx::Name;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Copies by the names of their memory: of a class of tensors, or of an item of the heap.
#[derive(Debug, Default)]
pub(crate) struct MayAlias {
    /// The possible sources of each copy.
    sources: FxHashMap<Name, Vec<Name>>,
    /// The possible copies of each source.
    copies: FxHashMap<Name, Vec<Name>>,
    /// Stale memory, and the place of the write.
    pub(crate) stale: Journal<Name, Arc<str>>,
}

/// The name of the memory of an item: no tensor is called so.
pub(crate) fn memory_of(at: Ref) -> Name {
    format!("[{}]", at.0).into()
}

impl MayAlias {
    /// Notes that a copy may be this source.
    pub(crate) fn link(&mut self, copy: &Name, source: &Name) {
        if copy == source {
            return;
        }
        self.sources.entry(copy.clone()).or_default().push(source.clone());
        self.copies.entry(source.clone()).or_default().push(copy.clone());
        if let Some(write) = self.stale.get(source).cloned() {
            self.stale.insert(copy.clone(), write);
        }
    }

    /// All that this may be: itself, and its sources.
    pub(crate) fn origins(&self, of: &Name) -> FxHashSet<Name> {
        reached([of.clone()], &self.sources, |_| true)
    }

    /// The origins that are no copies themselves.
    pub(crate) fn first_origins(&self, of: &Name) -> FxHashSet<Name> {
        let mut origins = self.origins(of);
        origins.retain(|origin| !self.sources.contains_key(origin));
        origins
    }

    /// All that this may be, and all that may be one of these.
    pub(crate) fn related(&self, of: &Name) -> FxHashSet<Name> {
        reached(self.origins(of), &self.copies, |_| true)
    }

    /// All that a write makes stale: what is related, other than what it writes into.
    pub(crate) fn missed_by_write(&self, to: &Name) -> FxHashSet<Name> {
        if !self.sources.contains_key(to) && !self.copies.contains_key(to) {
            return FxHashSet::default();
        }
        // All that is related to something stale is stale, but for what was written.
        let is_fresh = |other: &Name| !self.stale.contains_key(other);
        let origins = reached([to.clone()], &self.sources, is_fresh);
        let mut missed = reached(origins, &self.copies, is_fresh);
        missed.remove(to);
        missed
    }
}

/// All that can be reached from these, with them.
fn reached(
    from: impl IntoIterator<Item = Name>,
    edges: &FxHashMap<Name, Vec<Name>>,
    follows: impl Fn(&Name) -> bool,
) -> FxHashSet<Name> {
    let mut open: Vec<Name> = from.into_iter().collect();
    let mut found: FxHashSet<Name> = open.iter().cloned().collect();
    while let Some(at) = open.pop() {
        for next in edges.get(&at).into_iter().flatten() {
            if follows(next) && found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}
