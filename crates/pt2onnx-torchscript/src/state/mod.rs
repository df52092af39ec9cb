//! The abstract state: all that a branch or a loop body may change.

pub(crate) mod equality;
pub(crate) mod heap;
pub(crate) mod journal;
pub(crate) mod liveness;
pub(crate) mod may_alias;
pub(crate) mod memory;

use crate::{
    note::Note,
    types::{Contents, Facts},
    value::{Ref, Value},
};
use heap::{Heap, HeapDelta};
use journal::{Changes, Journal};
use may_alias::MayAlias;
use pt2onnx_fx::{ModuleFrame, Name, Node};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use rustc_hash::FxHashSet;
use std::{cell::Cell, sync::Arc};

pub(crate) type Env = Journal<Name, Value>;

/// The state at a point of the program. [`fork`](Self::fork) begins a branch or body,
/// [`rewind`](Self::rewind) undoes it, both at a cost of what it changed. Types, ranges and symbols
/// in `facts` only grow: names are never used twice.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) heap: Heap,
    pub(crate) facts: Facts,
    pub(crate) nodes: Vec<Node>,
    /// The conditions that hold in the branches that run.
    pub(crate) path_condition: Vec<Expr>,
    /// How the branches that run may be joined.
    pub(crate) join: JoinPolicy,
    /// Memory that the model may have copies of, and the places of writes that did not reach them.
    pub(crate) copies: MayAlias,
    /// Whether an item of the heap was read that a change did not reach.
    pub(crate) stale_read: Cell<bool>,
    /// The memory that the running branch or body writes into, or from before a rewound one.
    pub(crate) mod_set: FxHashSet<Name>,
    /// How many values there were where the branch or body which runs began.
    pub(crate) region: usize,
    pub(crate) calls: CallStack,
    pub(crate) warnings: Vec<Note>,
    /// Steps of comparisons and texts, which are counted with the next other step.
    pub(crate) work: Cell<u64>,
}

pub(crate) struct Frame {
    /// Position of its file.
    pub(crate) file: usize,
    pub(crate) function: Name,
    /// Where in the file it is now.
    pub(crate) at: u32,
    /// How many items the heap had when it began.
    pub(crate) heap: usize,
    /// The module whose method it is.
    pub(crate) module: Option<ModuleFrame>,
    /// The calls of modules within it in which the node that runs was traced, outermost first.
    pub(crate) traced: Vec<ModuleFrame>,
}

impl Frame {
    /// The modules that run, outermost first.
    pub(crate) fn modules(&self) -> impl DoubleEndedIterator<Item = &ModuleFrame> {
        self.module.iter().chain(&self.traced)
    }
}

/// The functions that run, outermost first.
#[derive(Default)]
pub(crate) struct CallStack {
    pub(crate) frames: Vec<Frame>,
    /// How deeply expressions, statements and calls nest.
    pub(crate) depth: usize,
    /// The type that autocast makes operators compute in, where it is on.
    pub(crate) autocast: Option<DType>,
    /// How many parts the assignment that runs takes its value apart into.
    pub(crate) expected_arity: Option<usize>,
    /// The activity while no function runs, for messages.
    pub(crate) outside: &'static str,
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

pub(crate) struct Snapshot {
    /// The depth of the forks of all journals.
    depth: usize,
    nodes: usize,
    path_condition: usize,
    join: JoinPolicy,
    mod_set: FxHashSet<Name>,
    region: usize,
}

/// How many calls run, and how many warnings there are.
pub(crate) type Marks = (usize, usize);

/// The changes of a branch or body at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delta {
    pub(crate) heap: HeapDelta,
    pub(crate) contents: Changes<Name, Contents>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) stale: Changes<Name, Arc<str>>,
    pub(crate) mod_set: FxHashSet<Name>,
}

impl State {
    /// Begins a branch or body, or what may have to be undone.
    pub(crate) fn fork(&mut self) -> Snapshot {
        self.heap.fork();
        self.copies.stale.fork();
        Snapshot {
            depth: self.facts.contents.fork(),
            nodes: self.nodes.len(),
            path_condition: self.path_condition.len(),
            join: self.join,
            mod_set: std::mem::take(&mut self.mod_set),
            region: self.region,
        }
    }

    pub(crate) fn marks(&self) -> Marks {
        (self.calls.frames.len(), self.warnings.len())
    }

    /// Undoes what happened since a fork, and returns what was changed. Calls and warnings stay for
    /// the message of a failure, until [`unwind`](Self::unwind).
    pub(crate) fn rewind(&mut self, snapshot: Snapshot) -> Delta {
        // Nobody knows memory that was made since then.
        let values = &self.facts.values;
        let is_older = |name: &Name| values.get_index_of(name).is_some_and(|at| at < self.region);
        self.mod_set.retain(is_older);
        self.path_condition.truncate(snapshot.path_condition);
        self.join = snapshot.join;
        self.region = snapshot.region;
        Delta {
            heap: self.heap.rewind(snapshot.depth),
            contents: self.facts.contents.rewind(snapshot.depth),
            nodes: self.nodes.split_off(snapshot.nodes.min(self.nodes.len())),
            stale: self.copies.stale.rewind(snapshot.depth),
            mod_set: std::mem::replace(&mut self.mod_set, snapshot.mod_set),
        }
    }

    /// Makes changes again that were undone.
    pub(crate) fn apply(&mut self, delta: Delta) {
        for (at, item) in delta.heap.items {
            if let Some(slot) = self.heap.get_mut(at) {
                *slot = item;
            }
        }
        self.facts.contents.apply(delta.contents);
        self.nodes.extend(delta.nodes);
        self.copies.stale.apply(delta.stale);
        self.mod_set.extend(delta.mod_set);
    }

    /// Ends the calls that began since then, and drops the warnings.
    pub(crate) fn unwind(&mut self, (frames, warnings): Marks) {
        self.calls.frames.truncate(frames);
        self.warnings.truncate(warnings);
    }

    pub(crate) fn commit(&mut self, snapshot: Snapshot) {
        self.heap.commit(snapshot.depth);
        self.facts.contents.commit(snapshot.depth);
        self.copies.stale.commit(snapshot.depth);
        self.mod_set.extend(snapshot.mod_set);
    }

    /// Notes that an item is read. A list or dict that a condition or loop on data chose is a copy
    /// of what it chose from, and a change reaches only one of them.
    pub(crate) fn reads(&self, item: Ref) {
        let stale = &self.copies.stale;
        if !stale.is_empty() && stale.contains_key(&may_alias::memory_of(item)) {
            self.stale_read.set(true);
        }
    }

    /// Notes a change of an item, which reaches nothing that it may be.
    pub(crate) fn changes(&mut self, item: Ref) {
        self.reads(item);
        let missed = self.copies.missed_by_write(&may_alias::memory_of(item));
        self.copies.stale.extend(missed.into_iter().map(|item| (item, "".into())));
    }

    /// Whether a value was made in the branch or body which runs.
    pub(crate) fn is_of_region(&self, name: &Name) -> bool {
        self.facts.values.get_index_of(name).is_none_or(|at| at >= self.region)
    }
}
