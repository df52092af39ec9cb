//! Groups items by their keys.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::hash::Hash;

/// Keys and what has them, in order of appearance.
pub(crate) type Grouped<K, T> = IndexMap<K, Vec<T>, FxBuildHasher>;

pub(crate) fn grouped<K: Hash + Eq, T>(items: impl IntoIterator<Item = (K, T)>) -> Grouped<K, T> {
    let mut groups = Grouped::default();
    for (key, item) in items {
        groups.entry(key).or_insert_with(Vec::new).push(item);
    }
    groups
}
