//! May-alias analysis: what PyTorch may have once where the model has copies. A write reaches one
//! of the copies only, and makes the others stale.

use super::journal::Journal;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;

/// Copies by what names them, and for stale ones a note of the write.
#[derive(Debug)]
pub(crate) struct MayAlias<K, W> {
    /// The possible sources of each copy.
    sources: FxHashMap<K, Vec<K>>,
    /// The possible copies of each source.
    copies: FxHashMap<K, Vec<K>>,
    pub(crate) stale: Journal<K, W>,
}

impl<K, W> Default for MayAlias<K, W> {
    fn default() -> Self {
        Self {
            sources: FxHashMap::default(),
            copies: FxHashMap::default(),
            stale: Journal::default(),
        }
    }
}

impl<K: Clone + Eq + Hash, W: Clone> MayAlias<K, W> {
    /// Notes that a copy may be this source.
    pub(crate) fn link(&mut self, copy: &K, source: &K) {
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
    pub(crate) fn origins(&self, of: &K) -> FxHashSet<K> {
        reached([of.clone()], &self.sources, |_| true)
    }

    /// The origins that are no copies themselves.
    pub(crate) fn first_origins(&self, of: &K) -> FxHashSet<K> {
        let mut origins = self.origins(of);
        origins.retain(|origin| !self.sources.contains_key(origin));
        origins
    }

    /// All that this may be, and all that may be one of these.
    pub(crate) fn related(&self, of: &K) -> FxHashSet<K> {
        reached(self.origins(of), &self.copies, |_| true)
    }

    /// All that a write makes stale: what is related, other than what it writes into.
    pub(crate) fn missed_by_write(&self, to: &K) -> FxHashSet<K> {
        if !self.sources.contains_key(to) && !self.copies.contains_key(to) {
            return FxHashSet::default();
        }
        // All that is related to something stale is stale, but for what was written.
        let is_fresh = |other: &K| !self.stale.contains_key(other);
        let origins = reached([to.clone()], &self.sources, is_fresh);
        let mut missed = reached(origins, &self.copies, is_fresh);
        missed.remove(to);
        missed
    }
}

/// All that can be reached from these, with them.
fn reached<K: Clone + Eq + Hash>(
    from: impl IntoIterator<Item = K>,
    edges: &FxHashMap<K, Vec<K>>,
    follows: impl Fn(&K) -> bool,
) -> FxHashSet<K> {
    let mut open: Vec<K> = from.into_iter().collect();
    let mut found: FxHashSet<K> = open.iter().cloned().collect();
    while let Some(at) = open.pop() {
        for next in edges.get(&at).into_iter().flatten() {
            if follows(next) && found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}
