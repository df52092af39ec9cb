//! What values refer to. A list or dict that a condition on data chose is a copy of both that it chose from, and a change reaches only one
//! of the three: reading the others afterwards is an error.

use crate::value::{Item, Ref};
use rustc_hash::FxHashSet;
use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
};

/// The items, and which of them are copies.
#[derive(Clone, Default)]
pub(super) struct Heap {
    items: Vec<Item>,
    /// Items that are one object in PyTorch, or may be.
    alike: Vec<[Ref; 2]>,
    /// Items that a change did not reach.
    outdated: FxHashSet<usize>,
    /// Whether such an item was read.
    misread: Cell<bool>,
}

impl Heap {
    /// Notes that two items may be one object in PyTorch.
    pub(super) fn may_be(&mut self, copy: Ref, other: Ref) {
        self.alike.push([copy, other]);
        if self.outdated.contains(&other.0) {
            self.outdated.insert(copy.0);
        }
    }

    /// Notes a change of an item.
    pub(super) fn changes(&mut self, item: Ref) {
        self.reads(item);
        let (mut open, mut seen) = (vec![item], FxHashSet::default());
        while let Some(at) = open.pop() {
            if !seen.insert(at.0) {
                continue;
            }
            for [a, b] in &self.alike {
                open.extend((*a == at).then_some(*b).into_iter().chain((*b == at).then_some(*a)));
            }
        }
        seen.remove(&item.0);
        self.outdated.extend(seen);
    }

    /// Notes that an item is read.
    pub(super) fn reads(&self, item: Ref) {
        if self.outdated.contains(&item.0) {
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
        self.alike.extend(
            other
                .alike
                .iter()
                .filter(|pair| !self.alike.contains(pair))
                .copied()
                .collect::<Vec<_>>(),
        );
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
