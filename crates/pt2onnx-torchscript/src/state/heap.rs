//! The heap: lists, dicts and objects, addressed by index.

use crate::value::Item;
use std::{collections::BTreeMap, ops::Deref};

/// The items, which are never removed.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    items: Vec<Item>,
    /// For each fork, the items that changed since then as they were.
    undo: Vec<HeapDelta>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct HeapDelta {
    /// Items that changed since a fork, by their position.
    pub(crate) items: BTreeMap<usize, Item>,
    /// How many items there were at the fork.
    pub(crate) old: usize,
}

impl Deref for Heap {
    type Target = [Item];

    fn deref(&self) -> &[Item] {
        &self.items
    }
}

impl Heap {
    pub(crate) fn push(&mut self, item: Item) {
        self.items.push(item);
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Item> {
        let item = self.items.get_mut(at)?;
        if let Some(fork) = self.undo.last_mut().filter(|fork| at < fork.old) {
            fork.items.entry(at).or_insert_with(|| item.clone());
        }
        Some(item)
    }

    /// An item as it was at the last fork; `None` for one that was made since.
    pub(crate) fn before(&self, at: usize) -> Option<&Item> {
        let fork = self.undo.last().filter(|fork| at < fork.old)?;
        fork.items.get(&at).or_else(|| self.items.get(at))
    }

    /// The items that changed since the last fork, as they were before, in order.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&usize, &Item)> {
        self.undo.last().into_iter().flat_map(|fork| &fork.items)
    }

    /// As [`Journal::fork`](super::journal::Journal::fork).
    pub(crate) fn fork(&mut self) {
        self.undo.push(HeapDelta { items: BTreeMap::new(), old: self.items.len() });
    }

    /// Undoes the changes since a fork, and returns the newest items.
    pub(crate) fn rewind(&mut self, depth: usize) -> HeapDelta {
        self.commit(depth + 1);
        let mut delta = self.undo.pop().unwrap_or_default();
        for (at, item) in &mut delta.items {
            if let Some(slot) = self.items.get_mut(*at) {
                std::mem::swap(slot, item);
            }
        }
        delta
    }

    pub(crate) fn commit(&mut self, depth: usize) {
        for inner in self.undo.split_off(depth.min(self.undo.len())) {
            let Some(fork) = self.undo.last_mut() else { continue };
            for (at, item) in inner.items.into_iter().filter(|(at, _)| *at < fork.old) {
                fork.items.entry(at).or_insert(item);
            }
        }
    }
}
