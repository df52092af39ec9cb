//! Storages that may be one: a result of a branch may be one of several operands.

use rustc_hash::{FxHashMap, FxHashSet};

/// Which storages may be which earlier ones.
///
/// A result that is either `a` or `b` may be both, but `a` is never `b`: related are a storage, all
/// that it may be, and all that may be one of these.
#[derive(Default)]
pub(super) struct MayAlias {
    earlier: FxHashMap<usize, Vec<usize>>,
    later: FxHashMap<usize, Vec<usize>>,
    /// Storages whose content is not known any more, and neither is that of their later ones.
    unknown: FxHashSet<usize>,
}

impl MayAlias {
    /// Records that a storage may be an earlier one.
    pub(super) fn link(&mut self, storage: usize, earlier: usize) {
        if storage != earlier {
            self.earlier.entry(storage).or_default().push(earlier);
            self.later.entry(earlier).or_default().push(storage);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.earlier.is_empty()
    }

    /// Whether a write into another storage may have been one into this one.
    pub(super) fn is_unknown(&self, storage: usize) -> bool {
        self.unknown.contains(&storage)
    }

    /// The other storages that may be this one, without those whose content is not known.
    pub(super) fn related(&self, storage: usize) -> Vec<usize> {
        let mut found = FxHashSet::from_iter([storage]);
        let mut all = vec![storage];
        for links in [&self.earlier, &self.later] {
            let mut next = 0;
            while let Some(at) = all.get(next) {
                let linked = links.get(at).into_iter().flatten();
                let new = linked.filter(|to| !self.unknown.contains(to) && found.insert(**to));
                let new: Vec<usize> = new.copied().collect();
                all.extend(new);
                next += 1;
            }
        }
        all.swap_remove(0);
        all
    }

    /// The other storages that may be this one. A write makes their content unknown: they are not
    /// returned again.
    ///
    /// Each is visited once in all calls, since a storage is related to another one only through
    /// those that are known as long as both are.
    pub(super) fn written(&mut self, storage: usize) -> Vec<usize> {
        if self.is_empty() {
            return Vec::new();
        }
        let related = self.related(storage);
        self.unknown.extend(related.iter().copied());
        related
    }
}
