//! Names of values and nodes: gives missing ones, and changes those that clash.

use crate::{Model, Name, Value, value::Def};
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use smol_str::format_smolstr;

/// Names in use. The set keeps their order, because lookups mostly follow it.
pub(crate) type Taken = IndexSet<Name, FxBuildHasher>;

impl Model {
    /// Finishes all outputs ([`Model::finish_outputs`]), then gives every value and node a unique name. If names clash,
    /// inputs and outputs of the main graph keep theirs first, then constants, then other values in the order of their
    /// numbers. Each function has its own scope of names.
    pub fn assign_names(&mut self) {
        self.finish_all_outputs();
        self.name_values();
        self.name_nodes();
    }

    fn name_values(&mut self) {
        let scopes = self.scopes();
        let mut taken = vec![Taken::default(); self.functions.len() + 1];
        taken[0].reserve(scopes.len());
        let mut nameless = Vec::new();
        for value in self.naming_order() {
            let data = &self[value];
            if self.is_gone(value) || data.is_left_out() {
                continue;
            }
            let Some(name) = data.name.as_ref().filter(|n| !n.is_empty()) else {
                nameless.push(value);
                continue;
            };
            let new = another(name, &mut taken[scopes[value.index()]]);
            // Functions can use constants, too.
            if let Def::Constant(_) = data.def() {
                let name = new.as_ref().unwrap_or(name);
                let functions = taken.iter_mut().skip(1);
                functions.for_each(|taken| _ = taken.insert(name.clone()));
            }
            if let Some(new) = new {
                self[value].name = Some(new);
            }
        }
        let mut counter = 0;
        for value in nameless {
            let taken = match self[value].def() {
                Def::Constant(_) => &taken[..],
                _ => std::slice::from_ref(&taken[scopes[value.index()]]),
            };
            self[value].name = Some(fresh("val", &mut counter, taken));
        }
    }

    /// All values, each once: inputs and outputs of the main graph, then constants, then the others.
    fn naming_order(&self) -> Vec<Value> {
        let all = || self.values().map(|(value, _)| value);
        let constants = all().filter(|value| self[*value].constant().is_some());
        let interface = self.inputs().iter().copied().chain(self.output_values());
        let mut seen = vec![false; self.values.len()];
        let mut order: Vec<Value> = interface.chain(constants).chain(all()).collect();
        order.retain(|value| !std::mem::replace(&mut seen[value.index()], true));
        order
    }

    /// Whether a value is not in the model any more: its node is erased, it is a constant that nothing uses, or its region was
    /// discarded.
    fn is_gone(&self, value: Value) -> bool {
        match self[value].def() {
            Def::Node(node, _) => !self.contains(*node),
            Def::Constant(_) => self[value].uses().len() == 0,
            Def::Input(region, i) => self[*region].inputs().get(*i as usize) != Some(&value),
        }
    }

    fn name_nodes(&mut self) {
        let (mut taken, mut nameless) = (Taken::default(), Vec::new());
        for node in self.all_nodes() {
            let Some(name) = self[node].name.as_ref().filter(|n| !n.is_empty()) else {
                nameless.push(node);
                continue;
            };
            if let Some(new) = another(name, &mut taken) {
                self[node].name = Some(new);
            }
        }
        let mut counter = 0;
        for node in nameless {
            let prefix = format_smolstr!("node_{}", self[node].op);
            let taken = std::slice::from_ref(&taken);
            self[node].name = Some(fresh(&prefix, &mut counter, taken));
        }
    }

    /// The scope of each value's name: 0 for the main graph, its bodies and constants, n + 1 for function n.
    pub(crate) fn scopes(&self) -> Vec<usize> {
        let mut scopes = vec![0; self.values().count()];
        for (i, function) in self.functions.iter().enumerate() {
            let nodes = self.nodes_in(&[function.body]);
            let bodies = nodes.iter().flat_map(|n| self[*n].regions());
            let regions = bodies.chain([function.body]);
            let inputs = regions.flat_map(|r| self[r].inputs().to_vec());
            let outputs = nodes.iter().flat_map(|n| self[*n].outputs().to_vec());
            inputs.chain(outputs).for_each(|v| scopes[v.index()] = i + 1);
        }
        scopes
    }
}

/// Takes a name; if it is taken already, takes and returns another one.
fn another(name: &Name, taken: &mut Taken) -> Option<Name> {
    if taken.insert(name.clone()) {
        return None;
    }
    let mut n = 1;
    loop {
        let candidate = format_smolstr!("{name}_{n}");
        if taken.insert(candidate.clone()) {
            return Some(candidate);
        }
        n += 1;
    }
}

/// A name that is not taken. It is not added to `taken`: the next one has another number.
fn fresh(prefix: &str, counter: &mut usize, taken: &[Taken]) -> Name {
    loop {
        let candidate = format_smolstr!("{prefix}_{counter}");
        *counter += 1;
        if taken.iter().all(|taken| !taken.contains(&candidate)) {
            return candidate;
        }
    }
}
