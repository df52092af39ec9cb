//! Lists of arguments: finds the kind of list for given items.

use crate::graph::{Argument, SymArg};

pub(super) const MIXED: &str = "the elements of a list must be of one kind";

/// A list of these items, of the first kind that can hold all of them. `None` if there is no such
/// kind.
pub(super) fn list(items: Vec<Argument>) -> Option<Argument> {
    fn all<T>(items: &[Argument], of: impl Fn(&Argument) -> Option<T>) -> Option<Vec<T>> {
        items.iter().map(of).collect()
    }
    let tensor = |a: &Argument| match a {
        Argument::Tensor(n) => Some(n.clone()),
        _ => None,
    };
    let optional = |a: &Argument| match a {
        Argument::Tensor(n) => Some(Some(n.clone())),
        Argument::None => Some(None),
        _ => None,
    };
    let int = |a: &Argument| match a {
        Argument::Int(v) => Some(*v),
        _ => None,
    };
    let float = |a: &Argument| match a {
        Argument::Float(v) => Some(*v),
        Argument::Int(v) => Some(*v as f64),
        _ => None,
    };
    let bool = |a: &Argument| match a {
        Argument::Bool(v) => Some(*v),
        _ => None,
    };
    let string = |a: &Argument| match a {
        Argument::String(v) => Some(v.clone()),
        _ => None,
    };
    let sym_int = |a: &Argument| match a {
        Argument::SymInt(v) => Some(v.clone()),
        other => int(other).map(SymArg::Value),
    };
    let sym_float = |a: &Argument| match a {
        Argument::SymFloat(v) => Some(v.clone()),
        other => float(other).map(SymArg::Value),
    };
    let sym_bool = |a: &Argument| match a {
        Argument::SymBool(v) => Some(v.clone()),
        other => bool(other).map(SymArg::Value),
    };
    let empty = |a: &Argument| matches!(a, Argument::Tensors(names) if names.is_empty());
    let ints = |a: &Argument| match a {
        Argument::Ints(v) => Some(v.clone()),
        a => empty(a).then(Vec::new),
    };
    let floats = |a: &Argument| match a {
        Argument::Floats(v) => Some(v.clone()),
        a => empty(a).then(Vec::new),
    };
    let tensors = |a: &Argument| match a {
        Argument::Tensors(v) => Some(v.clone()),
        _ => None,
    };
    let items = &*items;
    None.or_else(|| all(items, tensor).map(Argument::Tensors))
        .or_else(|| all(items, optional).map(Argument::OptionalTensors))
        .or_else(|| all(items, int).map(Argument::Ints))
        .or_else(|| all(items, float).map(Argument::Floats))
        .or_else(|| all(items, bool).map(Argument::Bools))
        .or_else(|| all(items, string).map(Argument::Strings))
        .or_else(|| all(items, sym_int).map(Argument::SymInts))
        .or_else(|| all(items, sym_float).map(Argument::SymFloats))
        .or_else(|| all(items, sym_bool).map(Argument::SymBools))
        .or_else(|| all(items, tensors).map(Argument::NestedTensors))
        .or_else(|| all(items, ints).map(Argument::IntLists))
        .or_else(|| all(items, floats).map(Argument::FloatLists))
}
