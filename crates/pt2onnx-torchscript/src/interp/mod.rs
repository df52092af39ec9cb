//! The interpreter: runs a method over types, and flattens it into a graph of ATen calls.

mod argument;
mod assemble;
mod autocast;
mod branch;
mod builtins;
mod call;
mod carried;
mod cases;
mod changes;
mod compare;
mod contents;
mod copies;
mod copy_graph;
mod emit;
mod expr;
mod first_call;
mod fits;
mod flags;
mod forms;
mod frame;
mod graph;
mod heap;
mod in_place;
mod inputs;
mod itself;
mod live;
mod load;
mod merge;
mod module;
mod moves;
mod origin;
mod parts;
mod parts_list;
mod quantized;
mod ragged;
mod repeat;
mod sample;
mod saved_tensor;
mod sequence;
mod stacked;
mod state;
mod stmt;
mod strides;
mod traced;
mod undecided;
mod unsure;
mod writes;

use crate::{
    archive::Archive,
    error::{Error, Problem, Result},
    note::Note,
    ranges::Origin,
    types::{Facts, Types},
    value::{Item, Ref, Value},
};
use copy_graph::{Copies, Unsure};
use frame::Frame;
use heap::Heap;
use indexmap::IndexMap;
use pt2onnx_fx::{Argument, Constant, InputSpec, Name, Node};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use pt2onnx_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};
use std::{cell::Cell, sync::Arc};

pub use assemble::{Flat, Flattened, How, Loaded, flatten, flatten_as, inputs, loaded};
pub use inputs::{Given, Size, parameters, signature};

/// The most steps of a program: statements, expressions and elements of lists.
const MAX_STEPS: u64 = 20_000_000;
/// The most items of the heap and elements of its lists.
const MAX_VALUES: usize = 4_000_000;
/// How deeply expressions, statements and calls may nest together.
const MAX_DEPTH: usize = 400;
/// The most nodes of the program.
const MAX_NODES: usize = 400_000;

/// A step that failed: what is wrong; the interpreter adds where.
pub(crate) type Step<T> = Result<T, Problem>;

pub(crate) struct Interp<'a> {
    archive: &'a Archive,
    types: &'a mut dyn Types,
    facts: Facts,
    heap: Heap,
    /// Elements of all lists, for the budget.
    elements: usize,
    nodes: Vec<Node>,
    /// Nodes that read results of a higher-order op which is not among the nodes yet.
    waiting: Vec<Node>,
    /// How many parts the assignment that runs takes its value apart into.
    unpacked: Option<usize>,
    /// The values that symbols which depend on data were read as.
    sources: FxHashMap<String, Argument>,
    /// The tensors that symbols were read from.
    read_from: FxHashMap<String, Name>,
    /// The memory that operators wrote into.
    changed: FxHashSet<Name>,
    /// Tensors that others have taken the place of: with other sizes, or in a loop that writes into
    /// them.
    replaced: FxHashMap<Name, Name>,
    /// Views of tensors that the loop or branch which runs writes into. Where it reads one, the
    /// view is made again.
    hidden: FxHashSet<Name>,
    /// The nodes that made views, by the names of their results.
    views: FxHashMap<Name, Arc<Node>>,
    /// The conditions on sizes for whose cases the whole method runs.
    cases: Vec<Expr>,
    /// What holds in the branches that run.
    assumed: Vec<Expr>,
    /// Whether the method runs for the cases of each condition on sizes whose branches differ in
    /// more than the elements of tensors.
    by_cases: bool,
    /// Whether chunks are taken to be as many as they are asked for.
    chunks_as_asked: bool,
    /// Whether a list becomes a sequence where nothing else can be made of it.
    sequences: bool,
    /// How often what follows a condition ran in each of its branches.
    tails: usize,
    /// Whether there was such a condition.
    sizes_decide: bool,
    /// Whether the branches of conditions may differ in the elements of tensors only.
    strict: bool,
    /// Whether what is None after one branch of a condition only may be kept as such.
    optional: bool,
    /// The memory that was written into: the roots of the tensors.
    writes: FxHashSet<Name>,
    copies: Copies,
    unsure: Unsure,
    /// Truth values that were read from tensors.
    truths: FxHashMap<Expr, Name>,
    /// How often each name was taken.
    names: FxHashMap<String, usize>,
    /// The tensors that were written into, by the names of the results of the writes.
    wholes: FxHashMap<Name, Name>,
    /// The tensors that others have become in place, with other sizes, by what they became.
    objects: FxHashMap<Name, Name>,
    /// Those that changed in the branch or body that runs.
    resized: FxHashSet<Name>,
    /// How often each module was called.
    calls: FxHashMap<Name, usize>,
    /// Names of tensors that may share memory have the same root.
    roots: FxHashMap<Name, Name>,
    inputs: Vec<Argument>,
    specs: Vec<InputSpec>,
    state: IndexMap<String, Tensor>,
    constants: IndexMap<String, Constant>,
    /// Inputs of state: the attribute's path, the input and its name in the model.
    held: Vec<(String, Name, Name)>,
    /// `CONSTANTS`.
    pool: Vec<Value>,
    /// Those of them that are tensors without dimensions.
    pool_numbers: FxHashSet<Name>,
    frames: Vec<Frame>,
    /// Where parts of the code come from, by file and position.
    origins: FxHashMap<(usize, u32), Option<Arc<Origin>>>,
    depth: usize,
    /// The type that autocast makes operators compute in, where it is on.
    autocast: Option<DType>,
    /// What happens while no function runs.
    outside: &'static str,
    steps: u64,
    /// Steps of comparisons and texts, which are counted with the next other step.
    compared: Cell<u64>,
    warnings: Vec<Note>,
}

/// What a statement does with the flow of control.
pub(crate) enum Flow {
    Next,
    Return(Value),
}

/// The variables of a function.
pub(crate) type Env = FxHashMap<Name, Value>;

impl<'a> Interp<'a> {
    fn new(archive: &'a Archive, types: &'a mut dyn Types) -> Self {
        Self {
            archive,
            types,
            facts: Facts::default(),
            heap: Heap::default(),
            elements: 0,
            nodes: Vec::new(),
            waiting: Vec::new(),
            unpacked: None,
            sources: FxHashMap::default(),
            read_from: FxHashMap::default(),
            changed: FxHashSet::default(),
            replaced: FxHashMap::default(),
            hidden: FxHashSet::default(),
            views: FxHashMap::default(),
            cases: Vec::new(),
            assumed: Vec::new(),
            by_cases: false,
            chunks_as_asked: false,
            sequences: false,
            tails: 0,
            sizes_decide: false,
            strict: false,
            optional: true,
            writes: FxHashSet::default(),
            copies: Copies::default(),
            unsure: Unsure::default(),
            truths: FxHashMap::default(),
            names: FxHashMap::default(),
            wholes: FxHashMap::default(),
            objects: FxHashMap::default(),
            resized: FxHashSet::default(),
            calls: FxHashMap::default(),
            roots: FxHashMap::default(),
            inputs: Vec::new(),
            specs: Vec::new(),
            state: IndexMap::default(),
            constants: IndexMap::default(),
            held: Vec::new(),
            pool: Vec::new(),
            pool_numbers: FxHashSet::default(),
            frames: Vec::new(),
            origins: FxHashMap::default(),
            depth: 0,
            autocast: None,
            outside: "loading",
            steps: 0,
            compared: Cell::new(0),
            warnings: Vec::new(),
        }
    }

    /// The error of a problem where the interpreter is now.
    fn error(&self, problem: Problem) -> Error {
        Error::Run { site: Box::new(self.site()), problem }
    }

    /// Counts a step.
    fn step(&mut self) -> Step<()> {
        self.steps(1)
    }

    /// Counts steps.
    fn steps(&mut self, count: usize) -> Step<()> {
        let count = (count as u64).saturating_add(self.compared.take());
        self.steps = self.steps.saturating_add(count);
        if self.heap.misread() {
            let text = "a list or dict that a condition or loop on data chose, and that is changed by another name,";
            return unsupported(text);
        }
        if self.steps > MAX_STEPS { Err(Problem::Steps(MAX_STEPS)) } else { Ok(()) }
    }

    /// Runs something that may nest.
    fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Problem::Depth(MAX_DEPTH));
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    fn alloc(&mut self, item: Item) -> Step<Ref> {
        let elements = match &item {
            Item::List { items, .. } => items.len(),
            Item::Dict(entries) => entries.len(),
            Item::Object { attributes, .. } => attributes.len(),
            Item::Parts(_) => 0,
        };
        self.elements = self.elements.saturating_add(elements + 1);
        if self.elements > MAX_VALUES {
            return Err(Problem::Memory(MAX_VALUES));
        }
        self.heap.push(item);
        Ok(Ref(self.heap.len() - 1))
    }

    /// Counts the steps of a copy of the heap, and what it takes.
    fn copy_of_heap(&mut self) -> Step<()> {
        let size = |item: &Item| match item {
            Item::List { items, .. } => items.len() + 1,
            Item::Dict(entries) => entries.len() + 1,
            Item::Object { attributes, .. } => attributes.len() + 1,
            Item::Parts(_) => 1,
        };
        let copied: usize = self.heap.iter().map(size).sum();
        self.steps(copied)
    }

    /// Refuses a list of so many elements before it is made.
    fn room(&mut self, count: usize) -> Step<()> {
        self.steps(count)?;
        if self.elements.saturating_add(count) > MAX_VALUES {
            Err(Problem::Memory(MAX_VALUES))
        } else {
            Ok(())
        }
    }

    fn list(&mut self, items: Vec<Value>, element: Option<crate::schema::Type>) -> Step<Value> {
        Ok(Value::List(self.alloc(Item::List { items, element })?))
    }

    fn dict(&mut self, entries: Vec<(Value, Value)>) -> Step<Value> {
        Ok(Value::Dict(self.alloc(Item::Dict(entries))?))
    }

    /// The items of a list.
    fn items(&self, list: Ref) -> &[Value] {
        self.heap.reads(list);
        match self.heap.get(list.0) {
            Some(Item::List { items, .. }) => items,
            _ => &[],
        }
    }

    /// The items of a list, to be changed. What is added counts.
    fn items_mut(&mut self, list: Ref) -> Step<&mut Vec<Value>> {
        self.elements = self.elements.saturating_add(1);
        if self.elements > MAX_VALUES {
            return Err(Problem::Memory(MAX_VALUES));
        }
        self.heap.changes(list);
        match self.heap.get_mut(list.0) {
            Some(Item::List { items, .. }) => Ok(items),
            _ => Err(Problem::Kind { expected: "a list", found: "another value".to_owned() }),
        }
    }

    /// The entries of a dict.
    fn entries(&self, dict: Ref) -> &[(Value, Value)] {
        self.heap.reads(dict);
        match self.heap.get(dict.0) {
            Some(Item::Dict(entries)) => entries,
            _ => &[],
        }
    }

    fn entries_mut(&mut self, dict: Ref) -> Step<&mut Vec<(Value, Value)>> {
        self.elements = self.elements.saturating_add(1);
        if self.elements > MAX_VALUES {
            return Err(Problem::Memory(MAX_VALUES));
        }
        self.heap.changes(dict);
        match self.heap.get_mut(dict.0) {
            Some(Item::Dict(entries)) => Ok(entries),
            _ => Err(Problem::Kind { expected: "a dict", found: "another value".to_owned() }),
        }
    }

    /// The items of a list or tuple.
    fn sequence(&self, value: &Value) -> Option<Vec<Value>> {
        match value {
            Value::List(list) if self.parts_of(*list).is_some() => None,
            Value::List(list) => Some(self.items(*list).to_vec()),
            Value::Tuple(tuple) => Some(tuple.items.clone()),
            _ => None,
        }
    }

    /// A name that nothing has yet.
    fn fresh(&mut self, wish: &str) -> Name {
        let legal = |c: char| if c.is_alphanumeric() || c == '_' { c } else { '_' };
        let wish: String = wish.chars().map(legal).collect();
        loop {
            let count = self.names.entry(wish.clone()).or_default();
            let name = if *count == 0 { wish.clone() } else { format!("{wish}_{count}") };
            *count += 1;
            if *count == 1 || !self.names.contains_key(&name) {
                self.names.entry(name.clone()).or_insert(1);
                return name.into();
            }
        }
    }
}

/// The problem that a value is of another kind.
pub(crate) fn expected<T>(expected: &'static str, found: &Value) -> Step<T> {
    let unknown = found.number().is_some_and(|number| crate::value::known(number).is_none());
    let found = if unknown {
        format!("{} that inputs, data or sizes decide", found.kind())
    } else {
        found.kind().to_owned()
    };
    Err(Problem::Kind { expected, found })
}

/// The problem that something is not supported.
pub(crate) fn unsupported<T>(what: impl Into<String>) -> Step<T> {
    Err(Problem::Unsupported(what.into()))
}
