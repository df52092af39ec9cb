//! Copies: where PyTorch has one tensor by several names, the model may have copies of it: elements
//! of lists of unknown length, and what conditions and loops on data choose. A write reaches one of
//! them only, so reading the others afterwards is an error.

use crate::{
    control::{
        higher_order::{Body, made_by},
        loop_carried::{Carried, Place},
    },
    eval::{Evaluator, Step, in_loop, unsupported},
    value::{Ref, Value},
};
use pt2onnx_fx::{InputSpec, Name, Node};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

impl Evaluator<'_> {
    fn memory_of(&self, name: &Name) -> Name {
        self.memory.class_of(&self.current(name)).clone()
    }

    fn origins(&self, name: &Name) -> FxHashSet<Name> {
        self.state.copies.origins(&self.memory_of(name))
    }

    fn first_origins(&self, name: &Name) -> FxHashSet<Name> {
        self.state.copies.first_origins(&self.memory_of(name))
    }

    /// A copy of a tensor, which is that tensor in PyTorch.
    pub(crate) fn copy_of(&mut self, name: &Name) -> Step<Name> {
        let copy = self.aten_tensor("clone", vec![Value::Tensor(name.clone())])?;
        self.copied(&copy, std::slice::from_ref(name));
        Ok(copy)
    }

    /// Notes that a tensor may be one of these in PyTorch, or hold elements of them.
    pub(crate) fn copied(&mut self, copy: &Name, sources: &[Name]) {
        let copy = self.memory_of(copy);
        for source in sources {
            let source = self.memory_of(source);
            self.state.copies.link(&copy, &source);
            if self.memory.repeated.contains(&source) {
                self.memory.repeated.insert(copy.clone());
            }
        }
    }

    /// Notes that the elements of a list in one tensor are copies of these tensors.
    pub(crate) fn listed(&mut self, list: &Name, elements: &[Name]) -> Step<()> {
        let mut seen = FxHashSet::default();
        let mut repeated = false;
        for origin in elements.iter().flat_map(|element| self.first_origins(element)) {
            repeated |= !seen.insert(origin);
        }
        self.steps(elements.len() + seen.len())?;
        self.copied(list, elements);
        let list = self.memory_of(list);
        self.memory.repeated.extend(repeated.then(|| list.clone()));
        self.memory.lists.insert(list);
        Ok(())
    }

    /// Notes a write into memory, which reaches no copies of it.
    pub(crate) fn mark_stale(&mut self, memory: &Name) -> Step<()> {
        let mut missed = self.state.copies.missed_by_write(memory);
        if self.memory.repeated.contains(memory) {
            missed.insert(memory.clone());
        }
        let count = missed.len();
        if count > 0 {
            let site = self.site();
            let site = site.source_line().map_or_else(|| site.to_string(), |line| line.to_string());
            let site = Arc::<str>::from(site);
            self.state.copies.stale.extend(missed.into_iter().map(|of| (of, site.clone())));
        }
        self.steps(count)
    }

    /// An error if a write into a copy did not reach the tensor.
    pub(crate) fn check_fresh(&self, name: &Name) -> Step<()> {
        let copies = &self.state.copies;
        if copies.stale.is_empty() {
            return Ok(());
        }
        let memory = self.memory_of(name);
        let Some(site) = copies.stale.get(&memory) else {
            return Ok(());
        };
        let is_list = |memory: &Name| self.memory.lists.contains(memory);
        let (what, written) = if is_list(&memory) {
            ("a list whose length depends on data", "a tensor that it holds")
        } else if copies.related(&memory).iter().any(is_list) {
            ("a tensor that a list of unknown length holds", "an element of the list")
        } else {
            ("a tensor", "one that data decide to be the same or another")
        };
        unsupported(format!("{what}, after a write into {written} ({site}),"))
    }

    /// The same for the parameters and buffers that the module keeps.
    pub(crate) fn check_fresh_state(&self) -> Step<()> {
        let names = self.interface.specs.iter().filter_map(|spec| match spec {
            InputSpec::Parameter { .. } | InputSpec::Buffer { .. } => spec.name(),
            _ => None,
        });
        let names: FxHashSet<&Name> = names.collect();
        self.attributes().iter().try_for_each(|found| match &found.value {
            Value::Tensor(name) if names.contains(name) => self.check_fresh(name),
            _ => Ok(()),
        })
    }

    /// An error if an iteration keeps a tensor by another name, and it or the next one writes into
    /// it.
    pub(crate) fn check_kept(&mut self, carried: &[Carried], body: &Body) -> Step<()> {
        let written = self.state.mod_set.iter().filter(|root| !self.state.is_of_region(root));
        let written: FxHashSet<Name> = written.cloned().collect();
        let mut read: FxHashSet<Name> = body.nodes.iter().flat_map(Node::input_names).collect();
        let others = body.inputs.iter().zip(&body.outputs).filter(|(to, from)| to != from);
        read.extend(others.map(|(_, from)| from.clone()));
        let origins: Vec<_> = body.outputs.iter().map(|output| self.origins(output)).collect();
        let own: Vec<usize> = (0..carried.len()).filter(|at| carried[*at].own).collect();
        self.steps(
            read.len() + (1 + own.len()) * origins.iter().map(FxHashSet::len).sum::<usize>(),
        )?;
        for (at, (variable, input)) in carried.iter().zip(&body.inputs).enumerate() {
            let is_of = |memory: &FxHashSet<Name>| !origins[at].is_disjoint(memory);
            let in_this = read.contains(input) && is_of(&written);
            if !in_this && !own.iter().any(|own| *own != at && is_of(&origins[*own])) {
                continue;
            }
            return in_loop(match &variable.place {
                Place::Elements(_) if in_this => {
                    "it writes into a tensor that it adds to a list".to_owned()
                }
                place => format!("it writes into a tensor that it keeps in `{}`", place.name()),
            });
        }
        Ok(())
    }

    /// An error if an iteration writes into a tensor and the next one reads a copy of it.
    pub(crate) fn stale_copies(&mut self, bodies: [&Body; 2]) -> Step<()> {
        if self.state.copies.stale.is_empty() {
            return Ok(());
        }
        for Body { inputs, nodes, .. } in bodies {
            let made = made_by(nodes);
            // A carried tensor is another one in the next iteration.
            let next: FxHashMap<_, _> = inputs.iter().zip(&bodies[1].outputs).collect();
            let read: FxHashSet<Name> = nodes.iter().flat_map(Node::input_names).collect();
            self.steps(read.len())?;
            for name in read.iter().filter(|name| !made.contains(*name)) {
                self.check_fresh(next.get(name).copied().unwrap_or(name))?;
            }
        }
        Ok(())
    }

    fn is_stale(&self, name: &Name) -> bool {
        self.state.copies.stale.contains_key(&self.memory_of(name))
    }

    /// Notes what the results of a loop may be: what was there before it, and what its body makes.
    pub(crate) fn copied_by_loop(
        &mut self,
        carried: &[Carried],
        body: &Body,
        results: &[Name],
    ) -> Step<()> {
        let repeated = self.repeated_by(carried, body)?;
        for (input, output) in body.inputs.iter().zip(&body.outputs) {
            self.copied(input, std::slice::from_ref(output));
        }
        for ((variable, output), result) in carried.iter().zip(&body.outputs).zip(results) {
            self.copied(result, &[variable.initial.clone(), output.clone()]);
            // The writes of the iterations are in it.
            if variable.own && !self.is_stale(output) {
                let result = self.memory_of(result);
                self.state.copies.stale.remove(&result);
            }
            if let Place::Elements(list) = variable.place {
                self.memory.lists.insert(result.clone());
                self.memory.repeated.extend(repeated.contains(&list).then(|| result.clone()));
            }
        }
        Ok(())
    }

    /// The lists to which a body may add the same tensor in several iterations.
    fn repeated_by(&mut self, carried: &[Carried], body: &Body) -> Step<Vec<Ref>> {
        let made = made_by(&body.nodes);
        let outputs: Vec<_> = body.outputs.iter().map(|name| self.first_origins(name)).collect();
        let mut count = made.len();
        let mut found = Vec::new();
        for (variable, added) in carried.iter().zip(&outputs) {
            let Place::Elements(list) = variable.place else { continue };
            // Iterations read what the one before has made, the first what was there before.
            let mut once = self.first_origins(&variable.initial);
            for (other, next) in carried.iter().zip(&outputs) {
                count += next.len();
                if next.iter().all(|memory| made.contains(memory) && !added.contains(memory)) {
                    once.extend(self.first_origins(&other.initial));
                }
            }
            if added.iter().any(|memory| !made.contains(memory) && !once.contains(memory)) {
                found.push(list);
            }
        }
        self.steps(count)?;
        Ok(found)
    }
}
