//! The interpreter: runs a method over types, and flattens it into a graph of ATen calls.

mod assemble;
mod branch;
mod builtins;
mod call;
mod compare;
mod contents;
mod emit;
mod expr;
mod fits;
mod frame;
mod graph;
mod inputs;
mod load;
mod module;
mod origin;
mod parts;
mod repeat;
mod stmt;
mod traced;

use crate::{
    archive::Archive,
    error::{Error, Problem, Result, Site},
    syntax::line_of,
    types::{Facts, Types},
    value::{Item, Ref, Value},
};
use frame::Frame;
use indexmap::IndexMap;
use pt2onnx_fx::{Argument, Constant, InputSpec, Name, Node};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashMap;

pub use assemble::{Flat, flatten};
pub use inputs::{Given, Size, parameters};

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
    heap: Vec<Item>,
    /// Elements of all lists, for the budget.
    elements: usize,
    nodes: Vec<Node>,
    /// Nodes that read results of a higher-order op which is not among the nodes yet.
    waiting: Vec<Node>,
    /// How many parts the assignment that runs takes its value apart into.
    unpacked: Option<usize>,
    /// The values that symbols which depend on data were read as.
    sources: FxHashMap<String, Argument>,
    /// Tensors that others have taken the place of, as `out=` has it.
    replaced: FxHashMap<Name, Name>,
    /// Truth values that were read from tensors.
    truths: FxHashMap<Expr, Name>,
    /// How often each name was taken.
    names: FxHashMap<String, usize>,
    /// How often each module was called.
    calls: FxHashMap<Name, usize>,
    /// Names of tensors that may share memory have the same root.
    roots: FxHashMap<Name, Name>,
    inputs: Vec<Argument>,
    specs: Vec<InputSpec>,
    state: IndexMap<String, Tensor>,
    constants: IndexMap<String, Constant>,
    /// `CONSTANTS`.
    pool: Vec<Value>,
    frames: Vec<Frame>,
    depth: usize,
    steps: u64,
    warnings: Vec<String>,
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
            heap: Vec::new(),
            elements: 0,
            nodes: Vec::new(),
            waiting: Vec::new(),
            unpacked: None,
            sources: FxHashMap::default(),
            replaced: FxHashMap::default(),
            truths: FxHashMap::default(),
            names: FxHashMap::default(),
            calls: FxHashMap::default(),
            roots: FxHashMap::default(),
            inputs: Vec::new(),
            specs: Vec::new(),
            state: IndexMap::default(),
            constants: IndexMap::default(),
            pool: Vec::new(),
            frames: Vec::new(),
            depth: 0,
            steps: 0,
            warnings: Vec::new(),
        }
    }

    /// The error of a problem where the interpreter is now.
    fn error(&self, problem: Problem) -> Error {
        Error::Run { site: Box::new(self.site()), problem }
    }

    /// Where the interpreter is now.
    fn site(&self) -> Site {
        let Some(frame) = self.frames.last() else {
            let place = self.archive.place().to_string();
            return Site { function: "loading".to_owned(), module: String::new(), line: place };
        };
        let (path, line) = self.line(frame);
        let module = self.frames.iter().rev().find_map(|f| f.module.as_ref());
        Site {
            function: frame.function.to_string(),
            module: module.map(|m| m.path.to_string()).unwrap_or_default(),
            line: format!("{path}:{line}"),
        }
    }

    fn line(&self, frame: &Frame) -> (&'a str, u32) {
        match self.archive.files().get(frame.file) {
            Some(file) => (&file.path, line_of(&file.text, frame.at)),
            None => ("", 0),
        }
    }

    /// Counts a step.
    fn step(&mut self) -> Step<()> {
        self.steps(1)
    }

    /// Counts steps.
    fn steps(&mut self, count: usize) -> Step<()> {
        self.steps = self.steps.saturating_add(count as u64);
        match self.steps > MAX_STEPS {
            true => Err(Problem::Steps(MAX_STEPS)),
            false => Ok(()),
        }
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
        };
        self.elements = self.elements.saturating_add(elements + 1);
        if self.elements > MAX_VALUES {
            return Err(Problem::Memory(MAX_VALUES));
        }
        self.heap.push(item);
        Ok(Ref(self.heap.len() - 1))
    }

    fn list(&mut self, items: Vec<Value>, element: Option<crate::schema::Type>) -> Step<Value> {
        Ok(Value::List(self.alloc(Item::List { items, element })?))
    }

    fn dict(&mut self, entries: Vec<(Value, Value)>) -> Step<Value> {
        Ok(Value::Dict(self.alloc(Item::Dict(entries))?))
    }

    /// The items of a list.
    fn items(&self, list: Ref) -> &[Value] {
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
        match self.heap.get_mut(list.0) {
            Some(Item::List { items, .. }) => Ok(items),
            _ => Err(Problem::Kind { expected: "a list", found: "another value".to_owned() }),
        }
    }

    /// The entries of a dict.
    fn entries(&self, dict: Ref) -> &[(Value, Value)] {
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
        match self.heap.get_mut(dict.0) {
            Some(Item::Dict(entries)) => Ok(entries),
            _ => Err(Problem::Kind { expected: "a dict", found: "another value".to_owned() }),
        }
    }

    /// The items of a list or tuple.
    fn sequence(&self, value: &Value) -> Option<Vec<Value>> {
        match value {
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
    Err(Problem::Kind { expected, found: found.kind().to_owned() })
}

/// The problem that something is not supported.
pub(crate) fn unsupported<T>(what: impl Into<String>) -> Step<T> {
    Err(Problem::Unsupported(what.into()))
}
