//! The abstract state: all that a branch or a loop body may change.

pub(crate) mod equality;
pub(crate) mod frame;
pub(crate) mod heap;
pub(crate) mod journal;
pub(crate) mod liveness;
pub(crate) mod memory;

use crate::{
    note::Note,
    types::{Contents, Facts},
    value::Value,
};
use frame::CallStack;
use heap::{Heap, HeapDelta, HeapFork};
use journal::{Changes, Journal};
use pt2onnx_fx::{Name, Node};
use pt2onnx_symbolic::Expr;
use rustc_hash::FxHashSet;
use std::{cell::Cell, sync::Arc};

/// The variables of a function.
pub(crate) type Env = Journal<Name, Value>;

/// The state at a point of the program. [`fork`](Self::fork) begins a branch or body,
/// [`rewind`](Self::rewind) undoes it, both at a cost of what it changed. Types, ranges and symbols
/// in `facts` only grow: names are never used twice.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) heap: Heap,
    pub(crate) facts: Facts,
    contents_undo: Option<Changes<Name, Contents>>,
    pub(crate) nodes: Vec<Node>,
    /// The conditions that hold in the branches that run.
    pub(crate) path_condition: Vec<Expr>,
    /// How the branches that run may be joined.
    pub(crate) join: JoinPolicy,
    /// Tensors that others have taken the place of: with other sizes, or in a branch or loop that
    /// writes into them.
    pub(crate) substitution: Journal<Name, Name>,
    /// Views of tensors that the loop or branch which runs writes into. Where it reads one, the
    /// view is made again.
    pub(crate) stale_views: Journal<Name, ()>,
    /// Memory that a write did not reach, and where that write is.
    pub(crate) stale: Journal<Name, Arc<str>>,
    /// The memory that the branch or body which runs writes into.
    pub(crate) mod_set: FxHashSet<Name>,
    /// The tensors that get other sizes in place in the branch or body which runs.
    pub(crate) shape_mutated: FxHashSet<Name>,
    /// How many values there were where the branch or body which runs began.
    pub(crate) region: usize,
    pub(crate) calls: CallStack,
    pub(crate) warnings: Vec<Note>,
    /// Steps of comparisons and texts, which are counted with the next other step.
    pub(crate) work: Cell<u64>,
}

/// In what the branches of a condition may differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum JoinPolicy {
    /// In the elements of tensors only.
    Exact,
    /// Also in numbers and sizes.
    AllowNumbers,
    /// Also in whether a value is None.
    #[default]
    AllowOptional,
}

impl JoinPolicy {
    pub(crate) fn is_exact(self) -> bool {
        self == Self::Exact
    }

    pub(crate) fn allows_optional(self) -> bool {
        self == Self::AllowOptional
    }
}

/// The records from before a fork.
pub(crate) struct Snapshot {
    heap: HeapFork,
    contents: Option<Changes<Name, Contents>>,
    nodes: usize,
    path_condition: usize,
    join: JoinPolicy,
    substitution: Option<Changes<Name, Name>>,
    stale_views: Option<Changes<Name, ()>>,
    stale: Option<Changes<Name, Arc<str>>>,
    mod_set: FxHashSet<Name>,
    shape_mutated: FxHashSet<Name>,
    region: usize,
}

/// Which calls run, and how many warnings there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    frames: usize,
    depth: usize,
    warnings: usize,
}

/// The changes of a branch or body at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delta {
    pub(crate) heap: HeapDelta,
    pub(crate) contents: Changes<Name, Contents>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) substitution: Changes<Name, Name>,
    pub(crate) stale_views: Changes<Name, ()>,
    pub(crate) stale: Changes<Name, Arc<str>>,
    pub(crate) mod_set: FxHashSet<Name>,
    pub(crate) shape_mutated: FxHashSet<Name>,
}

impl State {
    /// Begins a branch or body, or what may have to be undone.
    pub(crate) fn fork(&mut self) -> Snapshot {
        Snapshot {
            heap: self.heap.fork(),
            contents: self.contents_undo.replace(Changes::default()),
            nodes: self.nodes.len(),
            path_condition: self.path_condition.len(),
            join: self.join,
            substitution: self.substitution.fork(),
            stale_views: self.stale_views.fork(),
            stale: self.stale.fork(),
            mod_set: std::mem::take(&mut self.mod_set),
            shape_mutated: std::mem::take(&mut self.shape_mutated),
            region: self.region,
        }
    }

    pub(crate) fn marks(&self) -> Marks {
        Marks {
            frames: self.calls.frames.len(),
            depth: self.calls.depth,
            warnings: self.warnings.len(),
        }
    }

    /// Undoes what happened since a fork, and returns what was changed. Calls and warnings stay for
    /// the message of a failure, until [`unwind`](Self::unwind).
    pub(crate) fn rewind(&mut self, snapshot: Snapshot) -> Delta {
        let mut contents =
            std::mem::replace(&mut self.contents_undo, snapshot.contents).unwrap_or_default();
        for (name, slot) in &mut contents {
            *slot = match slot.take() {
                Some(old) => self.facts.contents.insert(name.clone(), old),
                None => self.facts.contents.remove(name),
            };
        }
        self.path_condition.truncate(snapshot.path_condition);
        self.join = snapshot.join;
        self.region = snapshot.region;
        Delta {
            heap: self.heap.rewind(snapshot.heap),
            contents,
            nodes: self.nodes.split_off(snapshot.nodes.min(self.nodes.len())),
            substitution: self.substitution.rewind(snapshot.substitution),
            stale_views: self.stale_views.rewind(snapshot.stale_views),
            stale: self.stale.rewind(snapshot.stale),
            mod_set: std::mem::replace(&mut self.mod_set, snapshot.mod_set),
            shape_mutated: std::mem::replace(&mut self.shape_mutated, snapshot.shape_mutated),
        }
    }

    /// Makes changes again that were undone, other than what took the place of tensors.
    pub(crate) fn apply(&mut self, delta: Delta) {
        for (at, item) in delta.heap.items {
            if let Some(slot) = self.heap.get_mut(at) {
                *slot = item;
            }
        }
        self.heap.apply_stale(delta.heap.stale);
        for (name, contents) in delta.contents {
            match contents {
                Some(contents) => self.set_contents(name, contents),
                None => self.forget_contents(&name),
            }
        }
        self.nodes.extend(delta.nodes);
        self.stale.apply(delta.stale);
    }

    /// Ends the calls that began since then, and drops the warnings.
    pub(crate) fn unwind(&mut self, marks: &Marks) {
        self.end_calls(marks);
        self.warnings.truncate(marks.warnings);
    }

    /// Ends the calls that began since then.
    pub(crate) fn end_calls(&mut self, marks: &Marks) {
        self.calls.frames.truncate(marks.frames);
        self.calls.depth = marks.depth;
    }

    /// Keeps what happened since a fork.
    pub(crate) fn commit(&mut self, snapshot: Snapshot) {
        self.heap.commit(snapshot.heap);
        let inner = std::mem::replace(&mut self.contents_undo, snapshot.contents);
        if let Some(undo) = &mut self.contents_undo {
            for (name, old) in inner.unwrap_or_default() {
                undo.entry(name).or_insert(old);
            }
        }
        self.substitution.commit(snapshot.substitution);
        self.stale_views.commit(snapshot.stale_views);
        self.stale.commit(snapshot.stale);
        self.mod_set.extend(snapshot.mod_set);
        self.shape_mutated.extend(snapshot.shape_mutated);
    }

    /// Whether what happens may be undone.
    pub(crate) fn is_forked(&self) -> bool {
        self.contents_undo.is_some()
    }

    /// Notes the elements of a tensor.
    pub(crate) fn set_contents(&mut self, name: Name, contents: Contents) {
        let old = self.facts.contents.insert(name.clone(), contents);
        if let Some(undo) = &mut self.contents_undo {
            undo.entry(name).or_insert(old);
        }
    }

    /// Forgets the elements of a tensor.
    pub(crate) fn forget_contents(&mut self, name: &Name) {
        if let (Some(old), Some(undo)) = (self.facts.contents.remove(name), &mut self.contents_undo)
        {
            undo.entry(name.clone()).or_insert(Some(old));
        }
    }

    /// Whether a value was made in the branch or body which runs.
    pub(crate) fn is_of_region(&self, name: &Name) -> bool {
        self.facts.values.get_index_of(name).is_none_or(|at| at >= self.region)
    }
}
