//! The evaluator: runs a method over types, and flattens it into a graph of ATen calls.

pub(crate) mod arith;
pub(crate) mod autocast;
pub(crate) mod call;
pub(crate) mod const_eval;
pub(crate) mod context;
pub(crate) mod emit;
pub(crate) mod expr;
mod formula;
pub(crate) mod origin;
pub(crate) mod overload;
pub(crate) mod stmt;
pub(crate) mod to_fx;

use crate::{
    error::{Error, Problem},
    schema::Type,
    state::{
        State,
        memory::{ConditionalAlias, Memory, ReadNumbers},
    },
    types::Types,
    value::{Item, Ref, Value},
};
use context::{Budget, Context, Interface, Names, RunPolicy};
use pt2onnx_fx::Name;
use pt2onnx_torchscript_archive::Archive;
use rustc_hash::FxHashSet;
use std::cell::RefCell;

pub(crate) use crate::{error::Step, state::Env, value::expected};

/// How deeply expressions, statements and calls may nest together.
const MAX_DEPTH: usize = 400;

/// The abstract interpreter. All but `state` is constant for a run, or only grows.
pub(crate) struct Evaluator<'a> {
    pub(crate) cx: Context<'a>,
    pub(crate) policy: RunPolicy,
    pub(crate) state: State,
    pub(crate) memory: Memory,
    pub(crate) conditional: ConditionalAlias,
    pub(crate) numbers: ReadNumbers,
    pub(crate) names: Names,
    pub(crate) interface: Interface,
    pub(crate) budget: Budget,
    /// Whether branches of a condition on sizes were joined.
    pub(crate) saw_symbolic_branch: bool,
}

pub(crate) enum Flow {
    Next,
    Return(Value),
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(archive: &'a Archive, types: &'a mut dyn Types, policy: RunPolicy) -> Self {
        let mut state = State::default();
        state.calls.outside = "loading";
        Self {
            cx: Context {
                archive,
                types,
                pool: Vec::new(),
                pool_numbers: FxHashSet::default(),
                origins: RefCell::default(),
            },
            policy,
            state,
            memory: Memory::default(),
            conditional: ConditionalAlias::default(),
            numbers: ReadNumbers::default(),
            names: Names::default(),
            interface: Interface::default(),
            budget: Budget::default(),
            saw_symbolic_branch: false,
        }
    }

    /// The error of a problem where the interpreter is now.
    pub(crate) fn error(&self, problem: Problem) -> Error {
        Error::Run { site: Box::new(self.site()), problem }
    }

    pub(crate) fn step(&mut self) -> Step<()> {
        self.steps(1)
    }

    pub(crate) fn steps(&mut self, count: usize) -> Step<()> {
        let count = (count as u64).saturating_add(self.state.work.take());
        self.budget.steps = self.budget.steps.saturating_add(count);
        pt2onnx_cancel::check();
        if self.state.stale_read.take() {
            let text = "a list or dict that a condition or loop on data chose, and that is changed by another name,";
            return unsupported(text);
        }
        let most = self.policy.limits.steps;
        if self.budget.steps > most { Err(Problem::Steps(most)) } else { Ok(()) }
    }

    /// Runs something that may nest.
    pub(crate) fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        if self.state.calls.depth >= MAX_DEPTH {
            return Err(Problem::Depth(MAX_DEPTH));
        }
        self.state.calls.depth += 1;
        let result = run(self);
        self.state.calls.depth -= 1;
        result
    }

    pub(crate) fn alloc(&mut self, item: Item) -> Step<Ref> {
        let elements = match &item {
            Item::List { items, .. } => items.len(),
            Item::Dict(entries) => entries.len(),
            Item::Object { attributes, .. } => attributes.len(),
            Item::DynList(_) => 0,
        };
        self.count_elements(elements + 1)?;
        self.state.heap.push(item);
        Ok(Ref(self.state.heap.len() - 1))
    }

    /// Refuses a list of so many elements before it is made.
    pub(crate) fn room(&mut self, count: usize) -> Step<()> {
        self.steps(count)?;
        let elements = self.budget.elements;
        self.count_elements(count)?;
        self.budget.elements = elements;
        Ok(())
    }

    fn count_elements(&mut self, count: usize) -> Step<()> {
        self.budget.elements = self.budget.elements.saturating_add(count);
        let most = self.policy.limits.values;
        if self.budget.elements > most { Err(Problem::Memory(most)) } else { Ok(()) }
    }

    pub(crate) fn list(&mut self, items: Vec<Value>, element: Option<Type>) -> Step<Value> {
        Ok(Value::List(self.alloc(Item::List { items, element })?))
    }

    pub(crate) fn dict(&mut self, entries: Vec<(Value, Value)>) -> Step<Value> {
        Ok(Value::Dict(self.alloc(Item::Dict(entries))?))
    }

    pub(crate) fn items(&self, list: Ref) -> &[Value] {
        self.state.reads(list);
        match self.state.heap.get(list.0) {
            Some(Item::List { items, .. }) => items,
            _ => &[],
        }
    }

    /// An item, to be changed. Additions count.
    fn item_mut(&mut self, at: Ref) -> Step<Option<&mut Item>> {
        self.count_elements(1)?;
        self.state.changes(at);
        Ok(self.state.heap.get_mut(at.0))
    }

    pub(crate) fn items_mut(&mut self, list: Ref) -> Step<&mut Vec<Value>> {
        match self.item_mut(list)? {
            Some(Item::List { items, .. }) => Ok(items),
            _ => Err(Problem::Kind { expected: "a list", found: "another value".to_owned() }),
        }
    }

    pub(crate) fn entries(&self, dict: Ref) -> &[(Value, Value)] {
        self.state.reads(dict);
        match self.state.heap.get(dict.0) {
            Some(Item::Dict(entries)) => entries,
            _ => &[],
        }
    }

    pub(crate) fn entries_mut(&mut self, dict: Ref) -> Step<&mut Vec<(Value, Value)>> {
        match self.item_mut(dict)? {
            Some(Item::Dict(entries)) => Ok(entries),
            _ => Err(Problem::Kind { expected: "a dict", found: "another value".to_owned() }),
        }
    }

    pub(crate) fn sequence(&self, value: &Value) -> Option<Vec<Value>> {
        match value {
            Value::List(list) if self.dyn_list(*list).is_some() => None,
            Value::List(list) => Some(self.items(*list).to_vec()),
            Value::Tuple(tuple) => Some(tuple.items.clone()),
            _ => None,
        }
    }

    pub(crate) fn fresh(&mut self, wish: &str) -> Name {
        self.names.fresh(wish)
    }
}

/// Whether a value that has no parts has a type.
pub(crate) fn is_plain(value: &Value, ty: &Type) -> bool {
    matches!(
        (ty, value),
        (Type::Tensor, Value::Tensor(_))
            | (Type::Int, Value::Int(_))
            | (Type::Float, Value::Float(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::Complex, Value::Complex(..))
            | (Type::Number, Value::Int(_) | Value::Float(_) | Value::Complex(..))
            | (Type::Str, Value::Str(_) | Value::UnknownStr(_))
            | (Type::Device, Value::Device(_))
            | (Type::None, Value::None)
    )
}

/// The problem that a loop on data has no translation.
pub(crate) fn in_loop<T>(why: impl Into<String>) -> Step<T> {
    Err(Problem::Loop(why.into()))
}

pub(crate) fn unbound<T>(name: impl ToString) -> Step<T> {
    Err(Problem::Unbound(name.to_string()))
}

pub(crate) fn raises<T>(exception: impl Into<String>) -> Step<T> {
    Err(Problem::Raises(exception.into()))
}

pub(crate) fn unsupported<T>(what: impl Into<String>) -> Step<T> {
    Err(Problem::Unsupported(what.into()))
}
