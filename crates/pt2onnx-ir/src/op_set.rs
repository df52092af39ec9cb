//! Sets of operator types, for passes that look for a few operators among all nodes.

use rustc_hash::FxHasher;
use std::hash::Hasher;

/// A hash of a node's operator type. Models store it apart from the nodes, so that a search does
/// not read the nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpTag(u8);

impl OpTag {
    pub(crate) fn of(op: &str) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(op.as_bytes());
        Self((hasher.finish() >> 56) as u8)
    }
}

/// A set of operator types. It is not exact: it may contain other operators, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpSet([u128; 2]);

impl<'a> FromIterator<&'a str> for OpSet {
    fn from_iter<I: IntoIterator<Item = &'a str>>(ops: I) -> Self {
        let mut set = Self::default();
        for op in ops {
            set.insert(OpTag::of(op));
        }
        set
    }
}

impl OpSet {
    /// The operators that both sets have.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self([0, 1].map(|i| self.0[i] & other.0[i]))
    }

    /// The operators that one of the sets has.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self([0, 1].map(|i| self.0[i] | other.0[i]))
    }

    /// Whether it has all operators of another set.
    pub fn is_superset(self, other: Self) -> bool {
        self.intersection(other) == other
    }

    pub(crate) fn insert(&mut self, OpTag(tag): OpTag) {
        self.0[usize::from(tag >> 7)] |= 1 << (tag & 0x7f);
    }

    pub(crate) fn contains(self, OpTag(tag): OpTag) -> bool {
        self.0[usize::from(tag >> 7)] >> (tag & 0x7f) & 1 == 1
    }
}
