//! Renaming of values, and names that are not taken yet.

use crate::graph::{Argument, Graph, Name, SymArg};
use rustc_hash::{FxHashMap, FxHashSet};

/// What values are to be called, or replaced by.
pub(super) type Substitution = FxHashMap<Name, Argument>;

/// Puts `with` in place of the values named in `arg`. `false` where a constant cannot stand for a value.
#[must_use]
pub(super) fn substitute(arg: &mut Argument, with: &Substitution) -> bool {
    if with.is_empty() {
        return true;
    }
    // A value that is the whole argument may become a constant of any kind.
    if let Some(constant) = arg.name().and_then(|name| with.get(name))
        && constant.name().is_none()
    {
        *arg = constant.clone();
        return true;
    }
    match arg {
        Argument::SymInts(args) => args.iter_mut().all(|a| sym(a, with, as_int)),
        Argument::SymFloats(args) => args.iter_mut().all(|a| sym(a, with, as_float)),
        Argument::SymBools(args) => args.iter_mut().all(|a| sym(a, with, as_bool)),
        Argument::Dict(args) => args.values_mut().all(|a| substitute(a, with)),
        _ => {
            let mut fits = true;
            arg.for_each_name_mut(&mut |name| match with.get(name).map(Argument::name) {
                Some(Some(new)) => *name = new.clone(),
                Some(None) => fits = false,
                None => {}
            });
            fits
        }
    }
}

fn sym<T>(arg: &mut SymArg<T>, with: &Substitution, constant: fn(&Argument) -> Option<T>) -> bool {
    let SymArg::Name(name) = arg else { return true };
    let Some(new) = with.get(name) else {
        return true;
    };
    let new = match new.name() {
        Some(name) => Some(SymArg::Name(name.clone())),
        None => constant(new).map(SymArg::Value),
    };
    new.map(|new| *arg = new).is_some()
}

fn as_int(arg: &Argument) -> Option<i64> {
    match arg {
        Argument::Int(v) | Argument::SymInt(SymArg::Value(v)) => Some(*v),
        _ => None,
    }
}

fn as_float(arg: &Argument) -> Option<f64> {
    match arg {
        Argument::Float(v) | Argument::SymFloat(SymArg::Value(v)) => Some(*v),
        _ => None,
    }
}

fn as_bool(arg: &Argument) -> Option<bool> {
    match arg {
        Argument::Bool(v) | Argument::SymBool(SymArg::Value(v)) => Some(*v),
        _ => None,
    }
}

/// The names a graph uses, to make others.
pub(super) struct Taken(FxHashSet<Name>);

impl Taken {
    pub(super) fn by(graph: &Graph) -> Self {
        let mut taken: FxHashSet<Name> = graph.values.keys().cloned().collect();
        taken.extend(graph.nodes.iter().map(|n| n.name.clone()));
        Self(taken)
    }

    pub(super) fn release(&mut self, name: &Name) {
        self.0.remove(name);
    }

    /// `name` if it is free, else with the first free number: `mul_1`.
    pub(super) fn unique(&mut self, name: &Name) -> Name {
        let numbered = (1u64..).map(|i| Name::from(format!("{name}_{i}")));
        let mut candidates = std::iter::once(name.clone()).chain(numbered);
        let free = candidates.find(|c| !self.0.contains(c));
        let free = free.unwrap_or_else(|| name.clone());
        self.0.insert(free.clone());
        free
    }
}
