//! The heap: lists, dicts and objects, addressed by index.

use crate::value::Item;
use std::collections::BTreeMap;

/// Items that changed since a fork, by their position.
pub(crate) type ItemChanges = BTreeMap<usize, Item>;

/// The items, which are never removed.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    items: Vec<Item>,
    /// Items that changed since each fork as they were then, and how many items there were.
    undo: Vec<(ItemChanges, usize)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct HeapDelta {
    pub(crate) items: ItemChanges,
    /// How many items there were at the fork.
    pub(crate) old: usize,
}

impl Heap {
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }

    pub(crate) fn push(&mut self, item: Item) {
        self.items.push(item);
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Item> {
        self.items.get(at)
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Item> {
        let item = self.items.get_mut(at)?;
        if let Some((undo, old)) = self.undo.last_mut()
            && at < *old
        {
            undo.entry(at).or_insert_with(|| item.clone());
        }
        Some(item)
    }

    /// An item as it was at the last fork; `None` for one that was made since.
    pub(crate) fn before(&self, at: usize) -> Option<&Item> {
        match self.undo.last() {
            Some((undo, old)) if at < *old => undo.get(&at).or_else(|| self.items.get(at)),
            _ => None,
        }
    }

    /// The items that changed since the last fork, as they were before, in order.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (usize, &Item)> {
        self.undo.last().into_iter().flat_map(|(undo, _)| undo.iter().map(|(at, item)| (*at, item)))
    }

    /// As [`Journal::fork`](super::journal::Journal::fork).
    pub(crate) fn fork(&mut self) {
        self.undo.push((ItemChanges::default(), self.items.len()));
    }

    /// Undoes the changes since a fork, and returns the newest items.
    pub(crate) fn rewind(&mut self, depth: usize) -> HeapDelta {
        self.commit(depth + 1);
        let (mut items, old) = self.undo.pop().unwrap_or_default();
        for (at, item) in &mut items {
            if let Some(slot) = self.items.get_mut(*at) {
                std::mem::swap(slot, item);
            }
        }
        HeapDelta { items, old }
    }

    pub(crate) fn commit(&mut self, depth: usize) {
        for (inner, _) in self.undo.split_off(depth.min(self.undo.len())) {
            let Some((undo, old)) = self.undo.last_mut() else { continue };
            for (at, item) in inner.into_iter().filter(|(at, _)| at < old) {
                undo.entry(at).or_insert(item);
            }
        }
    }
}
