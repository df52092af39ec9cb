//! Loop effects: all that the body of a loop changes becomes loop-carried.

use crate::{
    control::loop_carried::{Carried, Place, Slot, at_path, leaves},
    error::Problem,
    eval::{Env, Evaluator, Step, expected},
    value::{Item, Ref, Value, dyn_list::element_spec::ElementSpec},
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::Expr as Sym;

/// Something that the body changes and that is not carried yet.
pub(crate) enum Change {
    /// An attribute of an object or an element of a list or dict, and what it is after an
    /// iteration.
    Member(Ref, Place, Value),
    /// A list whose length changes, and what its elements are like.
    List(Ref, Option<ElementSpec>),
    Memory(Name),
    /// A variable is only written into.
    InPlace(Name),
    /// Variables that are this memory before an iteration, and something else after it.
    Own(Name),
    /// A variable gets others in place of these lists or dicts.
    Owner(Name, Vec<Ref>),
    /// A variable has a value of another form before the loop than after an iteration: it is to
    /// begin with this one.
    Widen(Name, Value),
}

impl Evaluator<'_> {
    /// Carries the tensors and numbers in the value of a variable. The rest of it must stay as it
    /// is.
    pub(crate) fn carry_variable(
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
    pub(crate) fn carry_change(
        &mut self,
        change: Change,
        env: &mut Env,
        carried: &mut Vec<Carried>,
    ) -> Step<()> {
        let more = match change {
            Change::Owner(..) => return Ok(()),
            Change::Widen(name, value) => {
                let initial_value = self.initial_value(env.get(&name), &value)?;
                carried.retain(|c| !matches!(&c.slot, Slot::Variable(of, _) if *of == name));
                self.carry_variable(&name, &initial_value, carried)?;
                env.insert(name, initial_value);
                return Ok(());
            }
            Change::Member(of, place, after) => {
                let initial_value = self.initial_member(of, &place, &after)?;
                carried.retain(|c| !c.slot.is_member(of, Some(&place)));
                for path in leaves(&initial_value) {
                    let like = at_path(&initial_value, &path).unwrap_or(Value::None);
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
                let root = self.write_base_of(&initial);
                if self.memory.is_view(&root) {
                    return Err(written_view());
                }
                self.carry_memory(root, Some(name), carried)?
            }
        };
        carried.push(more);
        Ok(())
    }

    /// The tensor of a list whose length changes in the loop; `sample` is the type of its elements.
    fn list_as_tensor(&mut self, list: Ref, sample: Option<ElementSpec>) -> Step<Name> {
        let Some(parts) = self.dyn_list(list) else {
            return self.generalize(list, sample);
        };
        if parts.sequence.is_some() {
            return Err(Problem::Loop("it changes a list of tensors of several sizes".to_owned()));
        }
        if parts.lengths.is_none() && (parts.size.is_some() || parts.dim != 0) {
            return Err(Problem::Loop("it changes a list that a split gives".to_owned()));
        }
        Ok(parts.tensor)
    }

    /// Variables that are this memory begin each iteration with a copy of their tensor: writes
    /// reach nothing else. The memory must be of the scope in which the loop is, so that all that
    /// reads it by another name is known to be outdated.
    fn carry_copies(&mut self, root: &Name, env: &Env, carried: &mut Vec<Carried>) -> Step<()> {
        let slot = Slot::Memory(root.clone());
        let at = carried.iter().position(|other| other.slot == slot);
        let Some(at) = at.filter(|_| self.is_made_here(root)) else {
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

    /// Whether a node of the branch or body that runs has made a tensor.
    fn is_made_here(&self, name: &Name) -> bool {
        let is_input = || self.interface.inputs.iter().any(|input| input.name() == Some(name));
        self.state.is_of_region(name) && !is_input()
    }

    /// The memory whose variables are something else after an iteration.
    pub(crate) fn replaced_memory(&self, carried: &[Carried], within: &Env) -> Vec<Change> {
        let mut found = Vec::new();
        for memory in carried {
            let Slot::Memory(root) = &memory.slot else { continue };
            let copy = self.write_base_of(&self.current(root));
            let is_copy = |name: &Name| match within.get(name) {
                Some(Value::Tensor(tensor)) => self.write_base_of(&self.current(tensor)) == copy,
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

    /// The changes of the body that are not carried. `first` is the first symbol that it may have
    /// made.
    pub(crate) fn changes(
        &self,
        carried: &[Carried],
        inputs: &[Name],
        first: &Sym,
    ) -> Step<Vec<Change>> {
        let mut found = Vec::new();
        for (at, before) in self.state.heap.changed() {
            let item = Ref(at);
            let is_carried = carried.iter().any(|c| c.slot == Slot::List(item));
            if !is_carried && !self.unchanged(at, before) {
                self.item_changes(item, before, carried, first, &mut found)?;
            }
        }
        self.memory_changes(carried, inputs, &mut found)?;
        Ok(found)
    }

    /// Notes how an item of the heap differs from what it was before an iteration.
    fn item_changes(
        &self,
        of: Ref,
        before: &Item,
        carried: &[Carried],
        first: &Sym,
        found: &mut Vec<Change>,
    ) -> Step<()> {
        match (before, self.state.heap.get(of.0)) {
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
            (Item::List { items, .. }, Some(Item::List { .. } | Item::DynList(_))) => {
                let sample = match self.element_spec(of).map(|sample| sample.jagged_from(first)) {
                    Some(None) => {
                        let text = "it adds tensors to a list that differ in several sizes";
                        return Err(Problem::Loop(text.to_owned()));
                    }
                    sample => sample.flatten(),
                };
                // The elements of the list decide before those that join it.
                let sample = sample.filter(|s| items.is_empty() || s.jagged.is_some());
                found.push(Change::List(of, sample));
                Ok(())
            }
            (Item::DynList(_), Some(Item::DynList(_))) => {
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
        if self.state.shape_mutated.iter().any(|object| !self.state.is_of_region(object)) {
            let text = "it changes the sizes of a tensor in place";
            return Err(Problem::Loop(text.to_owned()));
        }
        let outside = self.state.mod_set.iter().filter(|root| !self.state.is_of_region(root));
        let mut outside: Vec<Name> =
            outside.filter(|root| !inputs.contains(root)).cloned().collect();
        outside.sort();
        found.extend(outside.into_iter().map(Change::Memory));
        for (variable, input) in carried.iter().zip(inputs) {
            if !self.state.mod_set.contains(input) {
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

    /// Notes which attributes or elements of an item differ before and after an iteration.
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
    fn unchanged(&self, at: usize, before: &Item) -> bool {
        let all = |a: &[Value], b: &[Value]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a, b))
        };
        match (before, self.state.heap.get(at)) {
            (Item::List { items: a, .. }, Some(Item::List { items: b, .. })) => all(a, b),
            (Item::DynList(a), Some(Item::DynList(b))) => a == b,
            (Item::Dict(a), Some(Item::Dict(b))) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| self.same(&a.0, &b.0) && self.same(&a.1, &b.1))
            }
            (Item::Object { attributes: a, .. }, Some(Item::Object { attributes: b, .. })) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| {
                        a.0 == b.0
                            && (self.same(a.1, b.1)
                                || matches!(a.1, Value::Undef(_) | Value::Callee(_)))
                    })
            }
            _ => false,
        }
    }
}

fn written_view() -> Problem {
    Problem::Loop("it writes into a part of a tensor that it also replaces".to_owned())
}
