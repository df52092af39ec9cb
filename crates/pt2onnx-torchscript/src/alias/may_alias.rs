//! Copies: where PyTorch has one tensor by several names, the model may have copies of it: elements
//! of lists of unknown length, and what conditions and loops on data choose. A write reaches one of
//! them only, so reading the others afterwards is an error.

use crate::{
    control::{
        higher_order::{Body, made_by},
        loop_carried::{Carried, Slot},
    },
    error::Problem,
    eval::{Evaluator, Step, unsupported},
    value::{Ref, Value},
};
use pt2onnx_fx::{InputSpec, Name, Node};
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl Evaluator<'_> {
    fn memory_of(&self, name: &Name) -> Name {
        let name = self.current(name);
        self.may_alias.memory_of(self.memory.class_of(&name))
    }

    /// Notes that a tensor stands for memory while a branch or body runs.
    pub(crate) fn bind_alias(&mut self, tensor: &Name, memory: Name) {
        self.may_alias.stand_ins.insert(tensor.clone(), memory);
    }

    /// Writes a stand-in back into its memory. The writes into the stand-in have marked all that
    /// this one does not reach.
    pub(crate) fn write_back(&mut self, memory: &Name, value: Value) -> Step<()> {
        let outer = self.state.stale.fork();
        let value = vec![Value::Tensor(memory.clone()), value];
        let written = self.operator("aten", "copy_", value, Vec::new());
        self.state.stale.rewind(outer);
        written.map(drop)
    }

    /// A copy of a tensor, which is that tensor in PyTorch.
    pub(crate) fn copy_of(&mut self, name: &Name) -> Step<Value> {
        let copy = self.operator("aten", "clone", vec![Value::Tensor(name.clone())], Vec::new())?;
        if let Value::Tensor(copy) = &copy {
            self.copied(copy, std::slice::from_ref(name));
        }
        Ok(copy)
    }

    /// Notes that a tensor may be one of these in PyTorch, or hold elements of them.
    pub(crate) fn copied(&mut self, copy: &Name, sources: &[Name]) {
        let copy = self.memory_of(copy);
        let sources: Vec<Name> = sources.iter().map(|name| self.memory_of(name)).collect();
        let stale = &mut self.state.stale;
        if let Some(site) = sources.iter().find_map(|source| stale.get(source)).cloned() {
            stale.insert(copy.clone(), site);
        }
        let copies = &mut self.may_alias;
        if sources.iter().any(|source| copies.repeated.contains(source)) {
            copies.repeated.insert(copy.clone());
        }
        copies.add(&copy, &sources);
    }

    /// Notes that the elements of a list in one tensor are copies of these tensors.
    pub(crate) fn listed(&mut self, list: &Name, elements: &[Name]) -> Step<()> {
        let mut seen = FxHashSet::default();
        let mut repeated = false;
        for element in elements {
            let origins = self.may_alias.first_origins(&self.memory_of(element));
            self.steps(origins.len())?;
            for origin in origins {
                repeated |= !seen.insert(origin);
            }
        }
        self.copied(list, elements);
        let list = self.memory_of(list);
        if repeated {
            self.may_alias.repeated.insert(list.clone());
        }
        self.may_alias.lists.insert(list);
        Ok(())
    }

    /// Notes a write into memory, which reaches no copies of it.
    pub(crate) fn mark_stale(&mut self, memory: &Name) -> Step<()> {
        let memory = &self.may_alias.memory_of(memory);
        let copies = &self.may_alias;
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
        self.state.stale.extend(touched.into_iter().map(|memory| (memory, site.clone())));
        self.steps(count)
    }

    /// An error if the tensor is not what it is in PyTorch, as a write into a copy did not reach
    /// it.
    pub(crate) fn check_fresh(&self, name: &Name) -> Step<()> {
        let (copies, stale) = (&self.may_alias, &self.state.stale);
        if stale.is_empty() {
            return Ok(());
        }
        let memory = self.memory_of(name);
        let Some(site) = stale.get(&memory) else {
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

    /// An error if an iteration writes into memory that it keeps by another name, which the next
    /// one reads: that has a copy of it.
    pub(crate) fn kept_memory(&mut self, carried: &[Carried], body: &Body) -> Step<()> {
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
                || !self.may_alias.origins(&self.memory_of(output)).iter().any(is_kept)
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

    /// An error if an iteration keeps a tensor by two names, and the next one writes into a copy of
    /// it.
    pub(crate) fn kept_copies(&mut self, carried: &[Carried], body: &Body) -> Step<()> {
        let slots = || carried.iter().zip(&body.outputs).enumerate();
        for (at, (_, own)) in slots().filter(|(_, (variable, _))| variable.own) {
            let own = self.may_alias.origins(&self.memory_of(own));
            self.steps(own.len().saturating_mul(carried.len()))?;
            for (_, (other, output)) in slots().filter(|(other, _)| *other != at) {
                let origins = self.may_alias.origins(&self.memory_of(output));
                if origins.iter().any(|origin| own.contains(origin)) {
                    let name = other.slot.name();
                    let text = format!("it writes into a tensor that it keeps in `{name}`");
                    return Err(Problem::Loop(text));
                }
            }
        }
        Ok(())
    }

    /// An error if an iteration writes into a tensor and the next one reads a copy of it, before
    /// the write as well as after it.
    pub(crate) fn stale_copies(&mut self, bodies: [&Body; 2]) -> Step<()> {
        if self.state.stale.is_empty() {
            return Ok(());
        }
        let body = bodies[1];
        let mut found = None;
        for Body { inputs, nodes, .. } in bodies {
            let made = made_by(nodes);
            let read: FxHashSet<Name> = nodes.iter().flat_map(Node::input_names).collect();
            self.steps(read.len())?;
            // A carried tensor is another one in the next iteration.
            let outputs = inputs.iter().zip(&body.outputs);
            let next = outputs.filter(|(input, _)| read.contains(*input)).map(|(_, output)| output);
            let outside =
                read.iter().filter(|name| !made.contains(*name) && !inputs.contains(name));
            found = found.or_else(|| next.chain(outside).find(|name| self.is_stale(name)).cloned());
        }
        found.map_or(Ok(()), |name| self.check_fresh(&name))
    }

    fn is_stale(&self, name: &Name) -> bool {
        self.state.stale.contains_key(&self.memory_of(name))
    }

    /// Notes what the results of a loop may be: what was there before it, and what its body makes.
    pub(crate) fn copied_by_loop(
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
            // The writes of the iterations are in it.
            if variable.own && !self.is_stale(output) {
                let result = self.memory_of(result);
                self.state.stale.remove(&result);
            }
            if let Slot::List(list) = variable.slot {
                self.may_alias.lists.insert(result.clone());
                self.may_alias.repeated.extend(repeated.contains(&list).then(|| result.clone()));
            }
        }
        Ok(())
    }

    /// The lists to which a body may add the same tensor in several iterations.
    fn repeated_by(&mut self, carried: &[Carried], body: &Body) -> Step<Vec<Ref>> {
        let made = made_by(&body.nodes);
        let first = |name: &Name| self.may_alias.first_origins(&self.memory_of(name));
        let mut count = made.len();
        let mut found = Vec::new();
        for (variable, output) in carried.iter().zip(&body.outputs) {
            let Slot::List(list) = variable.slot else { continue };
            let added = first(output);
            count += added.len();
            // An iteration reads what the one before it has made, and once what was there before
            // the loop.
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
