//! The uses of a value. Most values have one or two, a shared constant may have thousands.

use crate::ids::{NodeId, RegionId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A place where a value is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// An input of a node, and its position.
    Input(NodeId, u32),
    /// An output slot of a region, and its position.
    Output(RegionId, u32),
}

impl Use {
    /// The node and the position of its input.
    pub fn input(self) -> Option<(NodeId, usize)> {
        match self {
            Self::Input(node, i) => Some((node, i as usize)),
            Self::Output(..) => None,
        }
    }
}

/// Up to this number, uses are searched one by one.
const FEW: usize = 8;

/// The set of uses of a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    list: SmallVec<[Use; 2]>,
    /// The position of each use in the list, if there are more than [`FEW`].
    places: Option<Box<FxHashMap<Use, usize>>>,
}

impl Uses {
    pub(crate) fn as_slice(&self) -> &[Use] {
        &self.list
    }

    pub(crate) fn insert(&mut self, at: Use) {
        if self.place(at).is_some() {
            return;
        }
        if let Some(places) = &mut self.places {
            places.insert(at, self.list.len());
        }
        self.list.push(at);
        if self.places.is_none() && self.list.len() > FEW {
            let places = self.list.iter().enumerate().map(|(i, at)| (*at, i));
            self.places = Some(Box::new(places.collect()));
        }
    }

    /// Removes a use; the last use moves to its position.
    pub(crate) fn remove(&mut self, at: Use) {
        let Some(i) = self.place(at) else {
            return;
        };
        self.list.swap_remove(i);
        if let Some(places) = &mut self.places {
            places.remove(&at);
            if let Some(moved) = self.list.get(i) {
                places.insert(*moved, i);
            }
        }
    }

    fn place(&self, at: Use) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(&at).copied(),
            None => self.list.iter().position(|u| *u == at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indexmap::IndexSet;

    #[test]
    fn few_or_many_they_are_a_set_in_order() {
        let at = |i: u32| Use::Output(RegionId::MAIN, i);
        let (mut uses, mut set) = (Uses::default(), IndexSet::new());
        // Numbers up and down, some of them twice.
        for step in 0..200 {
            let (i, up) = (step * 7 % 40, step % 100 < 60);
            if up {
                uses.insert(at(i));
                set.insert(at(i));
            } else {
                uses.remove(at(i));
                set.swap_remove(&at(i));
            }
            assert!(uses.as_slice().iter().eq(&set), "step {step}");
        }
    }
}
