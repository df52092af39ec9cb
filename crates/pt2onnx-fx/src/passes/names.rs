//! Renaming of values, and names that are not taken yet.

use crate::graph::{Argument, Graph, Name, SymArg};
use rustc_hash::{FxHashMap, FxHashSet};

/// New names of values, or what replaces them.
pub(super) type Substitution = FxHashMap<Name, Argument>;

/// Replaces the values named in `arg`. Returns `false` if a constant cannot stand for one of them.
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
        Argument::SymInts(args) => args.iter_mut().all(|a| sym(a, with, Argument::as_int)),
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

/// The names that a graph uses. Makes new ones.
pub(super) struct Taken {
    names: FxHashSet<Name>,
    /// The last number tried for a name.
    numbers: FxHashMap<Name, u64>,
}

impl Taken {
    pub(super) fn by(graph: &Graph) -> Self {
        let mut names: FxHashSet<Name> = graph.values.keys().cloned().collect();
        names.extend(graph.nodes.iter().map(|n| n.name.clone()));
        Self { names, numbers: FxHashMap::default() }
    }

    pub(super) fn release(&mut self, name: &Name) {
        self.names.remove(name);
    }

    /// `name` if it is free, else with a free number: `mul_1`.
    pub(super) fn unique(&mut self, name: &Name) -> Name {
        let mut free = name.clone();
        while self.names.contains(&free) {
            let number = self.numbers.entry(name.clone()).or_default();
            *number += 1;
            free = format!("{name}_{number}").into();
        }
        self.names.insert(free.clone());
        free
    }
}
