//! The heap: lists, dicts and objects, addressed by index. A list or dict that a condition or loop
//! on data chose is a copy of what it chose from, and a change reaches only one of them: reading
//! the others afterwards is an error.

use super::{journal::Changes, may_alias::MayAlias};
use crate::value::{Item, Ref};
use std::{cell::Cell, collections::BTreeMap};

/// Items that changed since a fork, by their position.
pub(crate) type ItemChanges = BTreeMap<usize, Item>;

/// The items, and which of them are copies. Items are never removed.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    items: Vec<Item>,
    /// Items that changed since each fork as they were then, and how many items there were.
    undo: Vec<(ItemChanges, usize)>,
    /// Items that may be others.
    copies: MayAlias<Ref, ()>,
    /// Whether an item was read that a change did not reach.
    stale_read: Cell<bool>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct HeapDelta {
    pub(crate) items: ItemChanges,
    pub(crate) stale: Changes<Ref, ()>,
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
    pub(crate) fn fork(&mut self) -> usize {
        self.undo.push((ItemChanges::default(), self.items.len()));
        self.copies.stale.fork()
    }

    /// Undoes the changes since a fork, and returns the newest items.
    pub(crate) fn rewind(&mut self, depth: usize) -> HeapDelta {
        let stale = self.copies.stale.rewind(depth);
        self.commit(depth + 1);
        let (mut items, old) = self.undo.pop().unwrap_or_default();
        for (at, item) in &mut items {
            if let Some(slot) = self.items.get_mut(*at) {
                std::mem::swap(slot, item);
            }
        }
        HeapDelta { items, stale, old }
    }

    pub(crate) fn commit(&mut self, depth: usize) {
        self.copies.stale.commit(depth);
        for (inner, _) in self.undo.split_off(depth.min(self.undo.len())) {
            let Some((undo, old)) = self.undo.last_mut() else { continue };
            for (at, item) in inner.into_iter().filter(|(at, _)| at < old) {
                undo.entry(at).or_insert(item);
            }
        }
    }

    /// Notes that an item may be another one in PyTorch.
    pub(crate) fn may_be(&mut self, copy: Ref, other: Ref) {
        self.copies.link(&copy, &other);
    }

    /// Notes a change of an item, which reaches nothing that it may be.
    pub(crate) fn changes(&mut self, item: Ref) {
        self.reads(item);
        let missed = self.copies.missed_by_write(&item);
        self.copies.stale.extend(missed.into_iter().map(|item| (item, ())));
    }

    /// Makes items stale again, and others not.
    pub(crate) fn apply_stale(&mut self, stale: Changes<Ref, ()>) {
        self.copies.stale.apply(stale);
    }

    pub(crate) fn add_stale(&mut self, stale: &Changes<Ref, ()>) {
        let stale = stale.iter().filter(|(_, is_stale)| is_stale.is_some());
        self.copies.stale.extend(stale.map(|(item, _)| (*item, ())));
    }

    pub(crate) fn reads(&self, item: Ref) {
        if self.copies.stale.contains_key(&item) {
            self.stale_read.set(true);
        }
    }

    /// Whether an item was read that a change did not reach, since this was last asked.
    pub(crate) fn stale_read(&self) -> bool {
        self.stale_read.take()
    }
}
