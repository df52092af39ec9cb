//! What the body of a loop changes: it becomes what the loop carries.

use super::{
    Env, Interp, Step,
    carried::{Carried, Place, Slot, at_path, leaves},
    expected,
    graph::made_by,
    sample::Sample,
};
use crate::{
    error::Problem,
    value::{Item, Ref, Value},
};
use pt2onnx_fx::{Name, Node};
use pt2onnx_symbolic::Expr as Sym;
use rustc_hash::FxHashSet;

/// Something that the body changes and that is not carried yet.
pub(super) enum Change {
    /// An attribute of an object or an element of a list or dict, and what it is after a trip.
    Member(Ref, Place, Value),
    /// A list whose length changes, and what its elements are like.
    List(Ref, Option<Sample>),
    Memory(Name),
    /// A variable is only written into.
    InPlace(Name),
    /// Variables that are this memory before a trip, and something else after it.
    Own(Name),
    /// A variable gets others in place of these lists or dicts.
    Owner(Name, Vec<Ref>),
    /// A variable has a value of another form before the loop than after a trip: it is to begin
    /// with this one.
    Form(Name, Value),
}

impl Interp<'_> {
    /// Carries the tensors and numbers in the value of a variable. The rest of it must stay as it
    /// is.
    pub(super) fn carry_variable(
        &mut self,
        name: &Name,
        value: &Value,
        carried: &mut Vec<Carried>,
    ) -> Step<()> {
        for path in leaves(value) {
            let like = at_path(value, &path).unwrap_or(Value::None);
            carried.push(self.carry(Slot::Variable(name.clone(), path), like, name)?);
        }
        Ok(())
    }

    /// A value that is carried.
    fn carry(&mut self, slot: Slot, like: Value, name: &Name) -> Step<Carried> {
        let initial = match &like {
            Value::Tensor(tensor) => self.readable(tensor)?,
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
                let number = vec![like.clone()];
                match self.operator("prim", "NumToTensor", number, Vec::new())? {
                    Value::Tensor(tensor) => tensor,
                    other => return expected("a tensor", &other),
                }
            }
            other => {
                let text = format!("`{name}`, which it changes, is {}", other.kind());
                return Err(Problem::Loop(text));
            }
        };
        Ok(Carried { slot, initial, like, variables: Vec::new(), own: false })
    }

    /// Carries what the body of a loop changes from now on.
    pub(super) fn carry_change(
        &mut self,
        change: Change,
        env: &mut Env,
        carried: &mut Vec<Carried>,
    ) -> Step<()> {
        let more = match change {
            Change::Owner(..) => return Ok(()),
            Change::Form(name, value) => {
                let begin = self.begin(env.get(&name), &value)?;
                carried.retain(|c| !matches!(&c.slot, Slot::Variable(of, _) if *of == name));
                self.carry_variable(&name, &begin, carried)?;
                env.insert(name, begin);
                return Ok(());
            }
            Change::Member(of, place, after) => {
                let begin = self.begin_member(of, &place, &after)?;
                carried.retain(|c| !c.slot.is_member(of, Some(&place)));
                for path in leaves(&begin) {
                    let like = at_path(&begin, &path).unwrap_or(Value::None);
                    let slot = Slot::Member(of, place.clone(), path);
                    carried.push(self.carry(slot, like, &place.name())?);
                }
                return Ok(());
            }
            Change::List(list, sample) => {
                carried.retain(|c| !c.slot.is_member(list, None));
                let initial = self.list_as_tensor(list, sample)?;
                self.carry(Slot::List(list), Value::Tensor(initial), &"a list".into())?
            }
            Change::Own(root) => return self.carry_copies(&root, env, carried),
            Change::Memory(root) => self.carry_memory(root, None, carried)?,
            Change::InPlace(name) => {
                let slot = Slot::Variable(name.clone(), Vec::new());
                let Some(at) = carried.iter().position(|variable| variable.slot == slot) else {
                    return Ok(());
                };
                let initial = carried.remove(at).initial;
                let root = self.whole_of(&initial);
                if self.roots.get(&root).is_some_and(|of| *of != root) {
                    return Err(written_view());
                }
                self.carry_memory(root, Some(name), carried)?
            }
        };
        carried.push(more);
        Ok(())
    }

    /// The tensor of a list whose length changes in the loop; `sample` tells what its elements are
    /// like.
    fn list_as_tensor(&mut self, list: Ref, sample: Option<Sample>) -> Step<Name> {
        let Some(parts) = self.parts_of(list) else {
            return self.loosen(list, sample);
        };
        if parts.sequence.is_some() {
            return Err(Problem::Loop("it changes a list of tensors of several sizes".to_owned()));
        }
        if parts.lengths.is_none() && (parts.size.is_some() || parts.dim != 0) {
            return Err(Problem::Loop("it changes a list that a split gives".to_owned()));
        }
        Ok(parts.tensor)
    }

    /// Variables that are this memory begin each trip with a copy of their tensor: writes reach
    /// nothing else. The memory must be of the scope in which the loop is, so that all that reads
    /// it by another name is known to be outdated.
    fn carry_copies(&mut self, root: &Name, env: &Env, carried: &mut Vec<Carried>) -> Step<()> {
        let slot = Slot::Memory(root.clone());
        let at = carried.iter().position(|other| other.slot == slot);
        let Some(at) = at.filter(|_| made_by(&self.nodes).contains(root)) else {
            let text = "it writes into a tensor that it also replaces";
            return Err(Problem::Loop(text.to_owned()));
        };
        for name in carried.remove(at).variables {
            let Some(like) = env.get(&name).cloned() else { continue };
            let copy = self.carry(Slot::Variable(name.clone(), Vec::new()), like, &name)?;
            carried.push(Carried { own: true, ..copy });
        }
        Ok(())
    }

    /// The memory whose variables are something else after a trip.
    pub(super) fn replaced_memory(&self, carried: &[Carried], within: &Env) -> Vec<Change> {
        let mut found = Vec::new();
        for memory in carried {
            let Slot::Memory(root) = &memory.slot else { continue };
            let copy = self.whole_of(&self.current(root));
            let is_copy = |name: &Name| match within.get(name) {
                Some(Value::Tensor(tensor)) => self.whole_of(&self.current(tensor)) == copy,
                _ => false,
            };
            found
                .extend((!memory.variables.iter().all(is_copy)).then(|| Change::Own(root.clone())));
        }
        found
    }

    /// Memory that is carried, with one more variable that is it.
    fn carry_memory(
        &mut self,
        root: Name,
        variable: Option<Name>,
        carried: &mut Vec<Carried>,
    ) -> Step<Carried> {
        let slot = Slot::Memory(root.clone());
        let known = carried.iter().position(|other| other.slot == slot);
        let mut memory = match known {
            Some(at) => carried.remove(at),
            None => self.carry(slot, Value::Tensor(root.clone()), &root)?,
        };
        memory.variables.extend(variable);
        Ok(memory)
    }

    /// What the body changed that is not carried. `first` is the first symbol that it may have
    /// made.
    pub(super) fn changes(
        &self,
        heap: &[Item],
        carried: &[Carried],
        inputs: &[Name],
        first: &Sym,
    ) -> Step<Vec<Change>> {
        let mut found = Vec::new();
        for (at, before) in heap.iter().enumerate() {
            let item = Ref(at);
            let is_carried = carried.iter().any(|c| c.slot == Slot::List(item));
            if !is_carried && !self.unchanged(at, heap) {
                self.item_changes(item, before, carried, first, &mut found)?;
            }
        }
        self.memory_changes(carried, inputs, &mut found)?;
        Ok(found)
    }

    /// Notes how an item of the heap differs from what it was before a trip.
    fn item_changes(
        &self,
        of: Ref,
        before: &Item,
        carried: &[Carried],
        first: &Sym,
        found: &mut Vec<Change>,
    ) -> Step<()> {
        match (before, self.heap.get(of.0)) {
            (Item::List { items: a, .. }, Some(Item::List { items: b, .. }))
                if a.len() == b.len() =>
            {
                let places = (0..a.len()).map(Place::Element);
                self.member_changes(of, places.zip(a.iter().zip(b)), carried, found)
            }
            (Item::Dict(a), Some(Item::Dict(b)))
                if a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(&a.0, &b.0)) =>
            {
                let values = a.iter().map(|(_, value)| value).zip(b.iter().map(|(_, v)| v));
                let places = (0..a.len()).map(Place::Element);
                self.member_changes(of, places.zip(values), carried, found)
            }
            (Item::List { items, .. }, Some(Item::List { .. } | Item::Parts(_))) => {
                let sample = match self.sample(of).map(|sample| sample.ragged_from(first)) {
                    Some(None) => {
                        let text = "it adds tensors to a list that differ in several sizes";
                        return Err(Problem::Loop(text.to_owned()));
                    }
                    sample => sample.flatten(),
                };
                // What is in the list tells more than what joins it.
                let sample = sample.filter(|s| items.is_empty() || s.ragged.is_some());
                found.push(Change::List(of, sample));
                Ok(())
            }
            (Item::Parts(_), Some(Item::Parts(_))) => {
                found.push(Change::List(of, None));
                Ok(())
            }
            (Item::Object { attributes: a, .. }, Some(Item::Object { attributes: b, .. }))
                if a.len() == b.len() =>
            {
                let places = a.keys().cloned().map(Place::Attribute);
                let after = |name| b.get(name).unwrap_or(&Value::None);
                let values = a.iter().map(|(name, before)| (before, after(name)));
                self.member_changes(of, places.zip(values), carried, found)
            }
            _ => {
                let text = "it adds keys to a dict or attributes to an object";
                Err(Problem::Loop(text.to_owned()))
            }
        }
    }

    /// Notes the memory that the body writes into: that of tensors from before the loop, and that
    /// of carried variables.
    fn memory_changes(
        &self,
        carried: &[Carried],
        inputs: &[Name],
        found: &mut Vec<Change>,
    ) -> Step<()> {
        let made: FxHashSet<Name> = self.nodes.iter().flat_map(Node::output_names).collect();
        if self.resized.iter().any(|object| !made.contains(object)) {
            let text = "it changes the sizes of a tensor in place";
            return Err(Problem::Loop(text.to_owned()));
        }
        let outside = self.writes.iter().filter(|root| !made.contains(*root));
        let mut outside: Vec<Name> =
            outside.filter(|root| !inputs.contains(root)).cloned().collect();
        outside.sort();
        found.extend(outside.into_iter().map(Change::Memory));
        for (variable, input) in carried.iter().zip(inputs) {
            if !self.writes.contains(input) {
                continue;
            }
            match &variable.slot {
                Slot::Variable(name, path) if path.is_empty() => {
                    found.push(Change::InPlace(name.clone()));
                }
                _ => return Err(written_view()),
            }
        }
        Ok(())
    }

    /// Notes which attributes or elements of an item differ before and after a trip.
    fn member_changes<'v>(
        &self,
        of: Ref,
        values: impl Iterator<Item = (Place, (&'v Value, &'v Value))>,
        carried: &[Carried],
        found: &mut Vec<Change>,
    ) -> Step<()> {
        for (place, (before, after)) in values {
            if self.is_changed((of, &place), (before, after), carried)? {
                found.push(Change::Member(of, place, after.clone()));
            }
        }
        Ok(())
    }

    /// Whether an item of the heap is as it was.
    fn unchanged(&self, at: usize, before: &[Item]) -> bool {
        let all = |a: &[Value], b: &[Value]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a, b))
        };
        match (before.get(at), self.heap.get(at)) {
            (Some(Item::List { items: a, .. }), Some(Item::List { items: b, .. })) => all(a, b),
            (Some(Item::Parts(a)), Some(Item::Parts(b))) => a == b,
            (Some(Item::Dict(a)), Some(Item::Dict(b))) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| self.same(&a.0, &b.0) && self.same(&a.1, &b.1))
            }
            (
                Some(Item::Object { attributes: a, .. }),
                Some(Item::Object { attributes: b, .. }),
            ) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| {
                        a.0 == b.0
                            && (self.same(a.1, b.1)
                                || matches!(a.1, Value::Opaque(_) | Value::Callee(_)))
                    })
            }
            _ => false,
        }
    }
}

fn written_view() -> Problem {
    Problem::Loop("it writes into a part of a tensor that it also replaces".to_owned())
}
