//! What values refer to. A list or dict that a condition or loop on data chose is a copy of what it
//! chose from, and a change reaches only one of them: reading the others afterwards is an error.

use crate::value::{Item, Ref};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
};

/// The items, and which of them are copies.
#[derive(Clone, Default)]
pub(super) struct Heap {
    items: Vec<Item>,
    /// What items may be in PyTorch, and the other way round.
    sources: FxHashMap<Ref, FxHashSet<Ref>>,
    copies: FxHashMap<Ref, FxHashSet<Ref>>,
    /// Items that a change did not reach.
    outdated: FxHashSet<Ref>,
    /// Whether such an item was read.
    misread: Cell<bool>,
}

impl Heap {
    /// Notes that an item may be another one in PyTorch.
    pub(super) fn may_be(&mut self, copy: Ref, other: Ref) {
        self.sources.entry(copy).or_default().insert(other);
        self.copies.entry(other).or_default().insert(copy);
        if self.outdated.contains(&other) {
            self.outdated.insert(copy);
        }
    }

    /// Notes a change of an item, which reaches neither what it may be nor what may be one of
    /// these.
    pub(super) fn changes(&mut self, item: Ref) {
        self.reads(item);
        let mut whole = vec![item];
        let mut at = 0;
        while let Some(of) = whole.get(at) {
            let sources = self.sources.get(of).into_iter().flatten();
            let more: Vec<Ref> =
                sources.filter(|source| self.outdated.insert(**source)).copied().collect();
            whole.extend(more);
            at += 1;
        }
        // What is outdated once stays so: nobody asks for its copies again.
        while let Some(of) = whole.pop() {
            let copies = self.copies.remove(&of).into_iter().flatten();
            whole.extend(copies.filter(|copy| self.outdated.insert(*copy)));
        }
        self.outdated.remove(&item);
    }

    /// Notes that an item is read.
    pub(super) fn reads(&self, item: Ref) {
        if self.outdated.contains(&item) {
            self.misread.set(true);
        }
    }

    /// Whether an item was read that a change did not reach. It is asked once.
    pub(super) fn misread(&self) -> bool {
        self.misread.take()
    }

    /// Takes the items that were made since there were so many.
    pub(super) fn made_since(&mut self, count: usize) -> Vec<Item> {
        self.items.split_off(count.min(self.items.len()))
    }

    /// Adds what another heap, of another branch, knows of copies.
    pub(super) fn learn(&mut self, other: &Self) {
        for (edges, others) in
            [(&mut self.sources, &other.sources), (&mut self.copies, &other.copies)]
        {
            for (item, found) in others {
                edges.entry(*item).or_default().extend(found);
            }
        }
        self.outdated.extend(&other.outdated);
    }
}

impl Deref for Heap {
    type Target = Vec<Item>;

    fn deref(&self) -> &Vec<Item> {
        &self.items
    }
}

impl DerefMut for Heap {
    fn deref_mut(&mut self) -> &mut Vec<Item> {
        &mut self.items
    }
}
