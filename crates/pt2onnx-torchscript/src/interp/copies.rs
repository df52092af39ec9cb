//! Copies: where PyTorch has one tensor by several names, the model may have copies of it: elements
//! of lists of unknown length, and what conditions and loops on data choose. A write reaches one of
//! them only, so reading the others afterwards is an error.

use super::{
    Interp, Step,
    carried::{Carried, Slot},
    graph::{Body, made_by},
    unsupported,
};
use crate::{
    error::Problem,
    value::{Ref, Value},
};
use pt2onnx_fx::{InputSpec, Name, Node};
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl Interp<'_> {
    fn memory_of(&self, name: &Name) -> Name {
        let name = self.current(name);
        self.copies.memory_of(self.roots.get(&name).unwrap_or(&name))
    }

    /// Notes that a tensor stands for memory while a branch or body runs.
    pub(super) fn stands_for(&mut self, tensor: &Name, memory: Name) {
        self.copies.stand_ins.insert(tensor.clone(), memory);
    }

    /// Writes what stood for memory back into it. What the write does not reach is known: the
    /// writes into the stand-in told.
    pub(super) fn write_back(&mut self, memory: &Name, value: Value) -> Step<()> {
        let outdated = self.copies.outdated.clone();
        self.operator("aten", "copy_", vec![Value::Tensor(memory.clone()), value], Vec::new())?;
        self.copies.outdated = outdated;
        Ok(())
    }

    /// A copy of a tensor, which is that tensor in PyTorch.
    pub(super) fn copy_of(&mut self, name: &Name) -> Step<Value> {
        let copy = self.operator("aten", "clone", vec![Value::Tensor(name.clone())], Vec::new())?;
        if let Value::Tensor(copy) = &copy {
            self.copied(copy, std::slice::from_ref(name));
        }
        Ok(copy)
    }

    /// Notes that a tensor may be one of these in PyTorch, or hold elements of them.
    pub(super) fn copied(&mut self, copy: &Name, sources: &[Name]) {
        let copy = self.memory_of(copy);
        let sources: Vec<Name> = sources.iter().map(|name| self.memory_of(name)).collect();
        let copies = &mut self.copies;
        if let Some(site) = sources.iter().find_map(|source| copies.outdated.get(source)).cloned() {
            copies.outdated.insert(copy.clone(), site);
        }
        if sources.iter().any(|source| copies.repeated.contains(source)) {
            copies.repeated.insert(copy.clone());
        }
        copies.add(&copy, &sources);
    }

    /// Notes that the elements of a list in one tensor are copies of these tensors.
    pub(super) fn listed(&mut self, list: &Name, elements: &[Name]) -> Step<()> {
        let mut seen = FxHashSet::default();
        let mut repeated = false;
        for element in elements {
            let origins = self.copies.first_origins(&self.memory_of(element));
            self.steps(origins.len())?;
            for origin in origins {
                repeated |= !seen.insert(origin);
            }
        }
        self.copied(list, elements);
        let list = self.memory_of(list);
        if repeated {
            self.copies.repeated.insert(list.clone());
        }
        self.copies.lists.insert(list);
        Ok(())
    }

    /// Notes a write into memory, which reaches no copies of it.
    pub(super) fn outdate(&mut self, memory: &Name) -> Step<()> {
        let memory = &self.copies.memory_of(memory);
        let copies = &self.copies;
        if !copies.sources.contains_key(memory) && !copies.copies.contains_key(memory) {
            return Ok(());
        }
        let mut touched = copies.touched(memory);
        if !copies.repeated.contains(memory) {
            touched.remove(memory);
        }
        let site = self.site();
        let site = site.source_line().map_or_else(|| site.to_string(), |line| line.to_string());
        let (count, site) = (touched.len(), Arc::<str>::from(site));
        self.copies.outdated.extend(touched.into_iter().map(|memory| (memory, site.clone())));
        self.steps(count)
    }

    /// An error if the tensor is not what it is in PyTorch, as a write into a copy did not reach
    /// it.
    pub(super) fn fresh_tensor(&self, name: &Name) -> Step<()> {
        let copies = &self.copies;
        if copies.outdated.is_empty() {
            return Ok(());
        }
        let memory = self.memory_of(name);
        let Some(site) = copies.outdated.get(&memory) else {
            return Ok(());
        };
        let is_list = |memory: &Name| copies.lists.contains(memory);
        let (what, written) = if is_list(&memory) {
            ("a list whose length depends on data", "a tensor that it holds")
        } else if copies.touched(&memory).iter().any(is_list) {
            ("a tensor that a list of unknown length holds", "an element of the list")
        } else {
            ("a tensor", "one that data decide to be the same or another")
        };
        unsupported(format!("{what}, after a write into {written} ({site}),"))
    }

    /// The same for the parameters and buffers that the module keeps.
    pub(super) fn fresh_state(&self) -> Step<()> {
        let names = self.specs.iter().filter_map(|spec| match spec {
            InputSpec::Parameter { .. } | InputSpec::Buffer { .. } => spec.name(),
            _ => None,
        });
        let names: FxHashSet<&Name> = names.collect();
        self.attributes().iter().try_for_each(|found| match &found.value {
            Value::Tensor(name) if names.contains(name) => self.fresh_tensor(name),
            _ => Ok(()),
        })
    }

    /// An error if a trip writes into memory that it keeps by another name, which the next one
    /// reads: that has a copy of it.
    pub(super) fn kept_memory(&mut self, carried: &[Carried], body: &Body) -> Step<()> {
        let slots = || carried.iter().zip(body.inputs.iter().zip(&body.outputs));
        let written = slots().filter(|(variable, _)| variable.memory().is_some());
        let written: FxHashSet<Name> =
            written.map(|(_, (_, output))| self.memory_of(output)).collect();
        if written.is_empty() {
            return Ok(());
        }
        let mut read: FxHashSet<Name> = body.nodes.iter().flat_map(Node::input_names).collect();
        let others = body.inputs.iter().zip(&body.outputs).filter(|(to, from)| to != from);
        read.extend(others.map(|(_, from)| from.clone()));
        self.steps(read.len())?;
        for (variable, (input, output)) in slots() {
            let is_kept = |origin: &Name| written.contains(origin);
            if variable.memory().is_some()
                || !read.contains(input)
                || !self.copies.origins(&self.memory_of(output)).iter().any(is_kept)
            {
                continue;
            }
            return Err(Problem::Loop(match &variable.slot {
                Slot::List(_) => "it writes into a tensor that it adds to a list".to_owned(),
                slot => format!("it writes into a tensor that it keeps in `{}`", slot.name()),
            }));
        }
        Ok(())
    }

    /// An error if a trip keeps a tensor by two names, and the next one writes into a copy of it.
    pub(super) fn kept_copies(&mut self, carried: &[Carried], body: &Body) -> Step<()> {
        let slots = || carried.iter().zip(&body.outputs).enumerate();
        for (at, (_, own)) in slots().filter(|(_, (variable, _))| variable.own) {
            let own = self.copies.origins(&self.memory_of(own));
            self.steps(own.len().saturating_mul(carried.len()))?;
            for (_, (other, output)) in slots().filter(|(other, _)| *other != at) {
                let origins = self.copies.origins(&self.memory_of(output));
                if origins.iter().any(|origin| own.contains(origin)) {
                    let name = other.slot.name();
                    let text = format!("it writes into a tensor that it keeps in `{name}`");
                    return Err(Problem::Loop(text));
                }
            }
        }
        Ok(())
    }

    /// An error if a trip writes into a tensor of which the next one reads a copy, before the write
    /// as well as after it.
    pub(super) fn outdated_copies(&mut self, bodies: [&Body; 2]) -> Step<()> {
        if self.copies.outdated.is_empty() {
            return Ok(());
        }
        let body = bodies[1];
        let mut found = None;
        for Body { inputs, nodes, .. } in bodies {
            let made = made_by(nodes);
            let read: FxHashSet<Name> = nodes.iter().flat_map(Node::input_names).collect();
            self.steps(read.len())?;
            // What is carried is another tensor in the next trip.
            let outputs = inputs.iter().zip(&body.outputs);
            let next = outputs.filter(|(input, _)| read.contains(*input)).map(|(_, output)| output);
            let outside =
                read.iter().filter(|name| !made.contains(*name) && !inputs.contains(name));
            found =
                found.or_else(|| next.chain(outside).find(|name| self.is_outdated(name)).cloned());
        }
        found.map_or(Ok(()), |name| self.fresh_tensor(&name))
    }

    fn is_outdated(&self, name: &Name) -> bool {
        self.copies.outdated.contains_key(&self.memory_of(name))
    }

    /// Notes what the results of a loop may be: what was there before it, and what its body makes.
    pub(super) fn copied_by_loop(
        &mut self,
        carried: &[Carried],
        body: &Body,
        results: &[Name],
    ) -> Step<()> {
        let repeated = self.repeated_by(carried, body)?;
        let slots = || carried.iter().zip(body.inputs.iter().zip(&body.outputs)).zip(results);
        let others = || slots().filter(|((variable, _), _)| variable.memory().is_none());
        for ((_, (input, output)), _) in others() {
            self.copied(input, std::slice::from_ref(output));
        }
        for ((variable, (_, output)), result) in others() {
            self.copied(result, &[variable.initial.clone(), output.clone()]);
            // The writes of the trips are in it.
            if variable.own && !self.is_outdated(output) {
                let result = self.memory_of(result);
                self.copies.outdated.remove(&result);
            }
            if let Slot::List(list) = variable.slot {
                self.copies.lists.insert(result.clone());
                self.copies.repeated.extend(repeated.contains(&list).then(|| result.clone()));
            }
        }
        Ok(())
    }

    /// The lists to which a body may add the same tensor in several trips.
    fn repeated_by(&mut self, carried: &[Carried], body: &Body) -> Step<Vec<Ref>> {
        let made = made_by(&body.nodes);
        let first = |name: &Name| self.copies.first_origins(&self.memory_of(name));
        let mut count = made.len();
        let mut found = Vec::new();
        for (variable, output) in carried.iter().zip(&body.outputs) {
            let Slot::List(list) = variable.slot else { continue };
            let added = first(output);
            count += added.len();
            // A trip reads what the one before it has made, and once what was there before the
            // loop.
            let mut once = first(&variable.initial);
            for (other, output) in carried.iter().zip(&body.outputs) {
                let next = first(output);
                count += next.len();
                if next.iter().all(|memory| made.contains(memory) && !added.contains(memory)) {
                    once.extend(first(&other.initial));
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
