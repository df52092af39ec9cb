//! Remembers what followed from facts, until there are more of them.

use rustc_hash::FxHashMap;
use std::{
    hash::Hash,
    sync::{Arc, Mutex, OnceLock},
};

/// The most results that are kept. After that, all are forgotten.
const MAX_RESULTS: usize = 1 << 16;

/// Results by what they are of. Clones share them, as they have the same facts.
#[derive(Clone, Debug)]
pub(crate) struct Memo<K, V>(OnceLock<Arc<Mutex<FxHashMap<K, V>>>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Memo<K, V> {
    /// The result that is known, or else the one that is computed now.
    pub fn get(&self, key: &K, compute: impl FnOnce() -> V) -> V {
        let results = self.0.get_or_init(Arc::default);
        // Nothing that panics runs under the lock.
        let known = results.lock().ok().and_then(|known| known.get(key).cloned());
        known.unwrap_or_else(|| {
            let value = compute();
            if let Ok(mut known) = results.lock() {
                if known.len() >= MAX_RESULTS {
                    known.clear();
                }
                known.insert(key.clone(), value.clone());
            }
            value
        })
    }

    /// Forgets all results.
    pub fn forget(&mut self) {
        self.0 = OnceLock::new();
    }
}
