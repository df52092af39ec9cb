//! Names: what has none gets one, and no name stands twice.

use crate::{Model, Value, model::Def};
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl Model {
    /// Names everything that is used and has no name, and renames what would clash. Inputs and outputs of the main
    /// graph keep theirs first, then constants, then the others in the order they were made. Functions have names of their own.
    pub fn assign_names(&mut self) {
        let scopes = self.scopes();
        let mut taken = vec![FxHashSet::default(); self.functions.len() + 1];
        taken[0].reserve(self.values().count());
        let mut counter = 0;
        let mut order: Vec<Value> = self
            .inputs()
            .iter()
            .chain(self.outputs())
            .copied()
            .collect();
        order.extend(
            self.values()
                .filter(|(_, d)| matches!(d.def(), Def::Constant(_)))
                .map(|(v, _)| v),
        );
        order.extend(self.values().map(|(v, _)| v));
        let mut seen = vec![false; self.values().count()];
        for value in order {
            if std::mem::replace(&mut seen[value.index()], true) {
                continue;
            }
            let data = &self[value];
            let gone = match data.def() {
                Def::Node(node, _) => !self.contains(*node),
                Def::Constant(_) => data.uses().len() == 0,
                Def::Input(..) => false,
            };
            if gone {
                continue;
            }
            if data.is_left_out() {
                continue;
            }
            let taken_here = &mut taken[scopes[value.index()]];
            let name = match data.name.as_ref().filter(|n| !n.is_empty()) {
                Some(name) => unique(name, taken_here),
                None => fresh("val", &mut counter, taken_here),
            };
            if let Def::Constant(_) = data.def() {
                taken.iter_mut().for_each(|t| {
                    t.insert(name.clone());
                });
            }
            self[value].name = Some(name);
        }
        let (mut taken, mut counter, nodes) = (FxHashSet::default(), 0, self.all_nodes());
        taken.reserve(nodes.len());
        for node in nodes {
            let name = match self[node].name.as_ref().filter(|n| !n.is_empty()) {
                Some(name) => unique(name, &mut taken),
                None => fresh(&format!("node_{}", self[node].op), &mut counter, &mut taken),
            };
            self[node].name = Some(name);
        }
    }
}

impl Model {
    /// For each value whose names it must not share: 0 for the graph and its bodies, and constants; n + 1 for function n.
    pub(crate) fn scopes(&self) -> Vec<usize> {
        let mut scopes = vec![0; self.values().count()];
        for (i, function) in self.functions.iter().enumerate() {
            let nodes = self.nodes_in(&[function.body]);
            let bodies = nodes.iter().flat_map(|n| self[*n].regions());
            let regions = bodies.chain([function.body]);
            let inputs = regions.flat_map(|r| self[r].inputs().to_vec());
            let outputs = nodes.iter().flat_map(|n| self[*n].outputs().to_vec());
            inputs
                .chain(outputs)
                .for_each(|v| scopes[v.index()] = i + 1);
        }
        scopes
    }
}

fn unique(name: &Arc<str>, taken: &mut FxHashSet<Arc<str>>) -> Arc<str> {
    if taken.insert(name.clone()) {
        return name.clone();
    }
    let mut n = 1;
    loop {
        let candidate: Arc<str> = format!("{name}_{n}").into();
        if taken.insert(candidate.clone()) {
            return candidate;
        }
        n += 1;
    }
}

fn fresh(prefix: &str, counter: &mut usize, taken: &mut FxHashSet<Arc<str>>) -> Arc<str> {
    loop {
        let candidate: Arc<str> = format!("{prefix}_{counter}").into();
        *counter += 1;
        if taken.insert(candidate.clone()) {
            return candidate;
        }
    }
}
