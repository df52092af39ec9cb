//! Which tensors share memory, by name. It only grows, as names are never used twice.

use crate::error::Site;
use pt2onnx_fx::{Argument, Name, Node};
use pt2onnx_symbolic::Expr;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Memory {
    /// Tensors that may share memory have the same class, which has the name of one of them.
    alias_class: FxHashMap<Name, Name>,
    /// The tensors of each class whose elements were known at some time since the last write.
    known: FxHashMap<Name, Vec<Name>>,
    /// The tensors that were written into, by the names of the results of the writes.
    pub(crate) write_base: FxHashMap<Name, Name>,
    /// The tensors that others have become in place, with other sizes, by what they became.
    pub(crate) identity: FxHashMap<Name, Name>,
    /// The tensors that have taken the place of others, with other sizes.
    pub(crate) newest: FxHashMap<Name, Name>,
    /// The nodes that made views, by the names of their results.
    pub(crate) views: FxHashMap<Name, Arc<Node>>,
    /// All classes that operators wrote into.
    pub(crate) written: FxHashSet<Name>,
    /// Classes that hold the elements of lists.
    pub(crate) lists: FxHashSet<Name>,
    /// Those of them whose elements may be the same tensor.
    pub(crate) repeated: FxHashSet<Name>,
}

impl Memory {
    /// Notes a tensor that may share the memory of a class.
    pub(crate) fn share(&mut self, name: Name, class: Name) {
        self.alias_class.insert(name, class);
    }

    pub(crate) fn class_of<'n>(&'n self, name: &'n Name) -> &'n Name {
        self.alias_class.get(name).unwrap_or(name)
    }

    /// Whether a tensor is in the class of another one.
    pub(crate) fn is_view(&self, name: &Name) -> bool {
        self.class_of(name) != name
    }

    /// Notes that the elements of a tensor are known.
    pub(crate) fn set_known(&mut self, name: &Name) {
        let class = self.class_of(name).clone();
        self.known.entry(class).or_default().push(name.clone());
    }

    /// The tensors of a class whose elements may be known. They are dropped if this is for good.
    pub(crate) fn known_of(&mut self, class: &Name, drops: bool) -> Vec<Name> {
        if drops {
            self.known.remove(class).unwrap_or_default()
        } else {
            self.known.get(class).cloned().unwrap_or_default()
        }
    }

    pub(crate) fn current(&self, name: &Name) -> Name {
        let whole = self.write_base.get(name).unwrap_or(name);
        match self.newest.get(self.identity.get(whole).unwrap_or(whole)) {
            Some(newest) if newest != whole => newest.clone(),
            _ => name.clone(),
        }
    }

    pub(crate) fn write_base_of(&self, name: &Name) -> Name {
        let name = self.current(name);
        self.write_base.get(&name).cloned().unwrap_or(name)
    }
}

/// Results of `contiguous` that may be their argument, and writes into their memory.
#[derive(Default)]
pub(crate) struct ConditionalAlias {
    pub(crate) results: FxHashSet<Name>,
    /// By the result: whether the write is into it, or else into the argument; and where it is.
    pub(crate) written: FxHashMap<Name, (bool, Site)>,
}

#[derive(Default)]
pub(crate) struct ReadNumbers {
    /// The results of nodes that symbols which depend on data stand for.
    pub(crate) sources: FxHashMap<String, Argument>,
    /// The tensors that symbols were read from.
    pub(crate) read_from: FxHashMap<String, Name>,
    /// The tensors that truth values were read from.
    pub(crate) truths: FxHashMap<Expr, Name>,
}
