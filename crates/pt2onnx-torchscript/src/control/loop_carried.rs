//! Loops on data, their loop-carried values, and where these stand in the values of variables.

use crate::{
    syntax::{Expr, ExprKind, Stmt, StmtKind},
    value::{Item, Optional, Ref, Tuple, Value},
};
use pt2onnx_fx::{Name, TensorMeta};
use pt2onnx_symbolic::Expr as Sym;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The place of a loop-carried value.
#[derive(Clone, PartialEq)]
pub(crate) enum Slot {
    /// A part of a variable: a tensor or number in the tuples that it holds.
    Variable(Name, Vec<usize>),
    /// The elements of a list of unknown length.
    List(Ref),
    /// A part of what an object, list or dict has at a place, as of a variable.
    Member(Ref, Place, Vec<usize>),
}

impl Slot {
    /// Whether it is a part of a member, at this place or any.
    pub(crate) fn is_member(&self, item: Ref, place: Option<&Place>) -> bool {
        matches!(self, Self::Member(of, at, _) if *of == item && place.is_none_or(|place| at == place))
    }

    /// Its name in messages and in the model.
    pub(crate) fn name(&self) -> Name {
        match self {
            Self::Variable(name, _) => name.clone(),
            Self::Member(_, place, _) => place.name(),
            Self::List(_) => "list".into(),
        }
    }
}

/// Where something is in an object, list or dict.
#[derive(Clone, PartialEq)]
pub(crate) enum Place {
    Attribute(Name),
    /// A position in a list, or among the entries of a dict.
    Element(usize),
}

impl Place {
    pub(crate) fn name(&self) -> Name {
        match self {
            Self::Attribute(name) => name.clone(),
            Self::Element(at) => format!("element_{at}").into(),
        }
    }
}

impl Item {
    /// The values of an object, list or dict by their places.
    pub(crate) fn members(&self) -> Box<dyn Iterator<Item = (Place, &Value)> + '_> {
        let element = |(at, value)| (Place::Element(at), value);
        match self {
            Self::List { items, .. } => Box::new(items.iter().enumerate().map(element)),
            Self::Dict(entries) => {
                Box::new(entries.iter().map(|(_, value)| value).enumerate().map(element))
            }
            Self::Object { attributes, .. } => Box::new(
                attributes.iter().map(|(name, value)| (Place::Attribute(name.clone()), value)),
            ),
            Self::DynList(_) => Box::new(std::iter::empty()),
        }
    }
}

/// A slot, its tensor before the loop, a value of its kind, and the type of its tensors.
#[derive(Clone)]
pub(crate) struct Carried {
    pub(crate) slot: Slot,
    pub(crate) initial: Name,
    pub(crate) like: Value,
    pub(crate) meta: TensorMeta,
    /// Whether an iteration begins with a copy of it, into which it writes.
    pub(crate) own: bool,
}

/// The condition of a loop.
pub(crate) enum Test<'e> {
    /// The condition of `while`.
    While(&'e Expr),
    /// `for target in range(start, end)`: the variable that counts, its first value and the end.
    Range(Name, Value, Value),
}

/// A loop.
pub(crate) struct Loop<'e> {
    pub(crate) test: &'e Test<'e>,
    pub(crate) body: &'e [Stmt],
    /// The variables that the body assigns to.
    pub(crate) names: Vec<Name>,
    /// Lists and dicts that only this variable refers to.
    pub(crate) unique_owners: FxHashSet<(Name, Ref)>,
    pub(crate) carried: Vec<Carried>,
    /// The symbols of sizes that change from iteration to iteration.
    pub(crate) changing: Vec<Sym>,
}

/// Steps of a path into what may be None, other than positions: whether and what it is.
const PRESENT: usize = usize::MAX;
const HELD: usize = usize::MAX - 1;

/// The places of tensors and numbers in a value. A value that may be None has two parts: whether it
/// is there, and the value then.
pub(crate) fn leaves(value: &Value) -> Vec<Vec<usize>> {
    let below = |at: usize, part: &Value| {
        leaves(part).into_iter().map(move |path| [vec![at], path].concat()).collect::<Vec<_>>()
    };
    match value {
        Value::Tensor(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) => vec![Vec::new()],
        Value::Tuple(tuple) => {
            tuple.items.iter().enumerate().flat_map(|(at, item)| below(at, item)).collect()
        }
        Value::Optional(maybe) => [vec![vec![PRESENT]], below(HELD, &maybe.value)].concat(),
        _ => Vec::new(),
    }
}

/// The value at a place. A value that is there is also read as one that may be None.
pub(crate) fn at_path(value: &Value, path: &[usize]) -> Option<Value> {
    match (path.split_first(), value) {
        (None, _) => Some(value.clone()),
        (Some((&PRESENT, _)), _) => Some(Value::Bool(Optional::parts(value).0)),
        (Some((&HELD, rest)), _) => at_path(&Optional::parts(value).1, rest),
        (Some((&at, rest)), Value::Tuple(tuple)) => at_path(tuple.items.get(at)?, rest),
        _ => None,
    }
}

/// A value with another one at a place.
pub(crate) fn with_path(value: &Value, path: &[usize], new: Value) -> Value {
    match (path.split_first(), value) {
        (Some((&at, rest)), Value::Tuple(tuple)) => {
            let mut items = tuple.items.clone();
            if let Some(item) = items.get_mut(at) {
                *item = with_path(item, rest, new);
            }
            Value::Tuple(Arc::new(Tuple::new(items, tuple.class.clone())))
        }
        (Some((&PRESENT, _)), Value::Optional(maybe)) => match new {
            Value::Bool(present) => {
                Value::Optional(Arc::new(Optional { present, value: maybe.value.clone() }))
            }
            _ => value.clone(),
        },
        (Some((_, rest)), Value::Optional(maybe)) => Value::Optional(Arc::new(Optional {
            present: maybe.present.clone(),
            value: with_path(&maybe.value, rest, new),
        })),
        _ => new,
    }
}

/// The variables that statements assign to.
pub(crate) fn assigned(body: &[Stmt], names: &mut Vec<Name>) {
    fn target(expr: &Expr, names: &mut Vec<Name>) {
        match &expr.kind {
            ExprKind::Name(name) => names.push(name.clone()),
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                items.iter().for_each(|item| target(item, names));
            }
            _ => {}
        }
    }
    for stmt in body {
        match &stmt.kind {
            StmtKind::Assign { target: to, .. } => target(to, names),
            StmtKind::If { then, other, .. } => {
                assigned(then, names);
                assigned(other, names);
            }
            StmtKind::For { target: to, body, .. } => {
                target(to, names);
                assigned(body, names);
            }
            StmtKind::While { body, .. } | StmtKind::With { body, .. } => assigned(body, names),
            _ => {}
        }
    }
}
