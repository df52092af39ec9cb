//! Maps whose changes can be undone, at a cost of what changed.

use rustc_hash::FxHashMap;
use std::{hash::Hash, ops::Deref};

/// Values by the keys that changed since a fork; `None`: the key has no value.
pub(crate) type Changes<K, V> = FxHashMap<K, Option<V>>;

/// A map that keeps what its keys held at each fork.
#[derive(Clone, Debug)]
pub struct Journal<K, V> {
    now: FxHashMap<K, V>,
    undo: Vec<Changes<K, V>>,
}

impl<K, V> Default for Journal<K, V> {
    fn default() -> Self {
        Self { now: FxHashMap::default(), undo: Vec::new() }
    }
}

impl<K, V> Deref for Journal<K, V> {
    type Target = FxHashMap<K, V>;

    fn deref(&self) -> &FxHashMap<K, V> {
        &self.now
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Journal<K, V> {
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let old = self.now.insert(key.clone(), value);
        if let Some(undo) = self.undo.last_mut() {
            undo.entry(key).or_insert(old);
        }
    }

    /// The value of a key after changes that were undone.
    pub(crate) fn after(&self, changes: &Changes<K, V>, key: &K) -> Option<V> {
        changes.get(key).cloned().unwrap_or_else(|| self.now.get(key).cloned())
    }

    pub(crate) fn set(&mut self, key: K, value: Option<V>) {
        match value {
            Some(value) => self.insert(key, value),
            None => self.remove(&key),
        }
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let (Some(old), Some(undo)) = (self.now.remove(key), self.undo.last_mut()) {
            undo.entry(key.clone()).or_insert(Some(old));
        }
    }

    /// Begins to record changes. Returns the depth for `rewind` or `commit`.
    pub(crate) fn fork(&mut self) -> usize {
        self.undo.push(Changes::default());
        self.undo.len() - 1
    }

    /// Undoes the changes since a fork, and ends those within it; returns the newest values.
    pub(crate) fn rewind(&mut self, depth: usize) -> Changes<K, V> {
        self.commit(depth + 1);
        let mut changes = self.undo.pop().unwrap_or_default();
        for (key, slot) in &mut changes {
            *slot = match slot.take() {
                Some(old) => self.now.insert(key.clone(), old),
                None => self.now.remove(key),
            };
        }
        changes
    }

    pub(crate) fn commit(&mut self, depth: usize) {
        for inner in self.undo.split_off(depth.min(self.undo.len())) {
            let Some(undo) = self.undo.last_mut() else { continue };
            for (key, old) in inner {
                undo.entry(key).or_insert(old);
            }
        }
    }

    pub(crate) fn is_forked(&self) -> bool {
        !self.undo.is_empty()
    }

    pub(crate) fn apply(&mut self, changes: Changes<K, V>) {
        changes.into_iter().for_each(|(key, value)| self.set(key, value));
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Extend<(K, V)> for Journal<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| self.insert(key, value));
    }
}

impl<K: Clone + Eq + Hash, V: Clone> FromIterator<(K, V)> for Journal<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self { now: entries.into_iter().collect(), undo: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contents(journal: &Journal<u8, u8>) -> Vec<(u8, u8)> {
        let mut entries: Vec<_> = journal.iter().map(|(k, v)| (*k, *v)).collect();
        entries.sort_unstable();
        entries
    }

    fn change(journal: &mut Journal<u8, u8>, changes: &[(u8, Option<u8>)]) {
        for (key, value) in changes {
            journal.set(*key, *value);
        }
    }

    proptest! {
        #[test]
        fn forks_are_undone_and_applied(
            start in prop::collection::vec((0u8..8, any::<u8>()), 0..8),
            outer in prop::collection::vec((0u8..8, any::<Option<u8>>()), 0..8),
            inner in prop::collection::vec((0u8..8, any::<Option<u8>>()), 0..8),
            keeps: bool,
        ) {
            let mut journal: Journal<u8, u8> = start.into_iter().collect();
            let first = contents(&journal);
            let root = journal.fork();
            change(&mut journal, &outer);
            let before = contents(&journal);
            let fork = journal.fork();
            change(&mut journal, &inner);
            let after = contents(&journal);
            if keeps {
                journal.commit(fork);
            } else {
                let changes = journal.rewind(fork);
                prop_assert_eq!(contents(&journal), before);
                journal.apply(changes);
            }
            prop_assert_eq!(contents(&journal), after.clone());
            let changes = journal.rewind(root);
            prop_assert_eq!(contents(&journal), first);
            journal.apply(changes);
            prop_assert_eq!(contents(&journal), after);
        }
    }
}
