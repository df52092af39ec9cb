//! Which items of the heap values and other items refer to.

use crate::value::{Callee, Item, Ref, Value};
use rustc_hash::FxHashSet;

impl Value {
    pub(crate) fn references(&self, found: &mut Vec<Ref>) {
        match self {
            Self::List(at) | Self::Dict(at) | Self::Object(at) => found.push(*at),
            Self::Tuple(tuple) => tuple.items.iter().for_each(|item| item.references(found)),
            Self::Optional(optional) => optional.value.references(found),
            Self::Enum(member) => member.value.references(found),
            Self::Callee(callee) => match &**callee {
                Callee::Method(owner, _) => owner.references(found),
                Callee::Closure(_, seen) => seen.iter().for_each(|(_, v)| v.references(found)),
                _ => {}
            },
            _ => {}
        }
    }
}

impl Item {
    pub(crate) fn references(&self, found: &mut Vec<Ref>) {
        match self {
            Self::List { items, .. } => items.iter().for_each(|item| item.references(found)),
            Self::Dict(entries) => {
                entries.iter().flat_map(|(k, v)| [k, v]).for_each(|value| value.references(found));
            }
            Self::Object { attributes, .. } => {
                attributes.values().for_each(|value| value.references(found));
            }
            Self::DynList(parts) => found.extend(parts.lengths()),
        }
    }
}

/// Adds the items that these reach.
pub(crate) fn reachable<'h>(
    item: impl Fn(usize) -> Option<&'h Item>,
    mut open: Vec<Ref>,
    found: &mut FxHashSet<usize>,
) {
    while let Some(at) = open.pop() {
        if found.insert(at.0)
            && let Some(item) = item(at.0)
        {
            item.references(&mut open);
        }
    }
}
