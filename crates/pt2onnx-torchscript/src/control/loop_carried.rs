//! Loops on data, and the places of the values that they carry.

use crate::{
    eval::{Env, Evaluator, Step},
    value::{Item, Optional, Ref, Tuple, Value},
};
use pt2onnx_fx::{Name, TensorMeta};
use pt2onnx_symbolic::Expr as Sym;
use pt2onnx_torchscript_archive::syntax::{Expr, ExprKind, Stmt, StmtKind};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Where a loop-carried value is.
#[derive(Clone, PartialEq)]
pub(crate) enum Place {
    Variable(Name),
    /// A value in an object, list or dict, by its position and its name.
    Member(Ref, usize, Name),
    /// The elements of a list of unknown length.
    Elements(Ref),
}

impl Place {
    /// Its name in messages and in the model.
    pub(crate) fn name(&self) -> Name {
        match self {
            Self::Variable(name) | Self::Member(.., name) => name.clone(),
            Self::Elements(_) => "list".into(),
        }
    }
}

impl Evaluator<'_> {
    pub(crate) fn value_at(&self, place: &Place, env: &Env) -> Option<Value> {
        match place {
            Place::Variable(name) => env.get(name).cloned(),
            Place::Member(of, at, _) => self.state.heap.get(of.0)?.member(*at).cloned(),
            Place::Elements(list) => Some(Value::Tensor(self.dyn_list(*list)?.tensor)),
        }
    }

    pub(crate) fn set_value_at(&mut self, place: &Place, value: Value, env: &mut Env) {
        let of = match place {
            Place::Variable(name) => return env.insert(name.clone(), value),
            Place::Member(of, ..) | Place::Elements(of) => *of,
        };
        self.state.changes(of);
        match (place, self.state.heap.get_mut(of.0), value) {
            (Place::Elements(_), Some(Item::DynList(parts)), Value::Tensor(tensor)) => {
                parts.tensor = tensor;
            }
            (Place::Member(_, at, _), Some(item), value) => {
                if let Some(member) = item.member_mut(*at) {
                    *member = value;
                }
            }
            _ => {}
        }
    }
}

impl Item {
    /// The value at a position of an object, list or dict.
    pub(crate) fn member(&self, at: usize) -> Option<&Value> {
        match self {
            Self::List { items, .. } => items.get(at),
            Self::Dict(entries) => entries.get(at).map(|(_, value)| value),
            Self::Object { attributes, .. } => attributes.get_index(at).map(|(_, value)| value),
            Self::DynList(_) => None,
        }
    }

    pub(crate) fn member_mut(&mut self, at: usize) -> Option<&mut Value> {
        match self {
            Self::List { items, .. } => items.get_mut(at),
            Self::Dict(entries) => entries.get_mut(at).map(|(_, value)| value),
            Self::Object { attributes, .. } => attributes.get_index_mut(at).map(|(_, value)| value),
            Self::DynList(_) => None,
        }
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Value> {
        (0..).map_while(|at| self.member(at))
    }
}

/// A tensor or number that a loop carries.
#[derive(Clone)]
pub(crate) struct Carried {
    pub(crate) place: Place,
    /// Where in the value at the place it is: a part of the tuples there.
    pub(crate) path: Vec<usize>,
    /// Its tensor before the loop.
    pub(crate) initial: Name,
    /// A value of its kind.
    pub(crate) like: Value,
    pub(crate) meta: TensorMeta,
    /// Whether an iteration begins with a copy of it, into which it writes.
    pub(crate) own: bool,
}

pub(crate) type Condition<'e> = &'e dyn Fn(&mut Evaluator<'_>, &Env) -> Step<Value>;

pub(crate) struct Loop<'e> {
    pub(crate) condition: Condition<'e>,
    /// The variable that counts the iterations.
    pub(crate) counter: Option<&'e Name>,
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
