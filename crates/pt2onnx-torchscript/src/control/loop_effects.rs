//! Loop effects: all that the body of a loop changes becomes loop-carried.

use crate::{
    control::loop_carried::{Carried, Loop, Place, Slot, at_path, leaves},
    eval::{Env, Evaluator, Step, in_loop},
    value::{Item, Ref, Value, dyn_list::element_spec::ElementSpec},
};
use pt2onnx_fx::{Argument, Name};
use pt2onnx_symbolic::Expr as Sym;
use rustc_hash::FxHashSet;

/// Something that the body changes and that is not carried yet.
pub(crate) enum Change {
    /// An attribute of an object or an element of a list or dict, and its new value.
    Member(Ref, Place, Value),
    /// A list whose length changes, and what its elements are like.
    List(Ref, Option<ElementSpec>),
    /// A variable is only written into.
    InPlace(Name),
    /// A variable is written into, and is something else after an iteration.
    Own(Name),
    /// A variable gets others in place of these lists or dicts.
    Owner(Name, FxHashSet<Ref>),
    /// A variable has another form after an iteration: it is to begin in that of this value.
    Widen(Name, Value),
}

impl Evaluator<'_> {
    /// Carries the tensors and numbers in the value of a variable; the rest must not change.
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
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => self.as_tensor(&like)?,
            other => {
                return in_loop(format!("`{name}`, which it changes, is {}", other.kind()));
            }
        };
        let meta = self.meta(&initial)?.clone();
        Ok(Carried { slot, initial, like, meta, own: false })
    }

    /// Carries what the body of a loop changes from now on.
    pub(crate) fn carry_change(
        &mut self,
        change: Change,
        env: &mut Env,
        the_loop: &mut Loop<'_>,
    ) -> Step<()> {
        let carried = &mut the_loop.carried;
        match change {
            Change::Owner(name, of) => {
                return self.make_unique_owner(name, &of, env, &mut the_loop.unique_owners);
            }
            Change::Widen(name, value) => {
                let initial_value = self.initial_value(env.get(&name), &value)?;
                carried.retain(|c| !matches!(&c.slot, Slot::Variable(of, _) if *of == name));
                self.carry_variable(&name, &initial_value, carried)?;
                env.insert(name, initial_value);
            }
            Change::Member(of, place, after) => {
                let initial_value = self.initial_member(of, &place, &after)?;
                carried.retain(|c| !c.slot.is_member(of, Some(&place)));
                for path in leaves(&initial_value) {
                    let like = at_path(&initial_value, &path).unwrap_or(Value::None);
                    let slot = Slot::Member(of, place.clone(), path);
                    carried.push(self.carry(slot, like, &place.name())?);
                }
            }
            Change::List(list, sample) => {
                carried.retain(|c| !c.slot.is_member(list, None));
                let initial = self.list_as_tensor(list, sample)?;
                let initial = Value::Tensor(initial);
                carried.push(self.carry(Slot::List(list), initial, &"a list".into())?);
            }
            Change::Own(name) => self.carry_copy(name, env, carried)?,
            Change::InPlace(name) => {
                let slot = Slot::Variable(name, Vec::new());
                carried.retain(|variable| variable.slot != slot);
            }
        }
        Ok(())
    }

    /// The tensor of a list whose length changes in the loop; `sample` is the type of its elements.
    fn list_as_tensor(&mut self, list: Ref, sample: Option<ElementSpec>) -> Step<Name> {
        let Some(parts) = self.dyn_list(list) else {
            return self.generalize(list, sample);
        };
        if parts.sequence.is_some() {
            return in_loop("it changes a list of tensors of several sizes");
        }
        if parts.lengths.is_none() && (parts.size.is_some() || parts.dim != 0) {
            return in_loop("it changes a list that a split gives");
        }
        Ok(parts.tensor)
    }

    /// A variable begins each iteration with a copy of its tensor. The copy must be made where the
    /// loop is, so that all that reads it by another name is known to be stale.
    fn carry_copy(&mut self, name: Name, env: &Env, carried: &mut Vec<Carried>) -> Step<()> {
        let slot = Slot::Variable(name.clone(), Vec::new());
        let known = carried.iter().position(|variable| variable.slot == slot);
        let mut variable = match (known, env.get(&name)) {
            (Some(at), _) => carried.remove(at),
            (None, Some(like)) => self.carry(slot, like.clone(), &name)?,
            (None, None) => return Ok(()),
        };
        let root = self.write_base_of(&variable.initial);
        if self.memory.is_view(&root) {
            return written_view();
        }
        let is_input = |input: &Argument| input.name() == Some(&root);
        if !self.state.is_of_region(&root) || self.interface.inputs.iter().any(is_input) {
            return in_loop("it writes into a tensor that it also replaces");
        }
        variable.own = true;
        carried.push(variable);
        Ok(())
    }

    /// The changes of the body that are not carried. `first` is its first new symbol.
    pub(crate) fn changes(&self, carried: &[Carried], first: &Sym) -> Step<Vec<Change>> {
        let mut found = Vec::new();
        for (at, before) in self.state.heap.changed() {
            let item = Ref(at);
            if !carried.iter().any(|c| c.slot == Slot::List(item)) {
                self.item_changes(item, before, carried, first, &mut found)?;
            }
        }
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
            (_, Some(after)) if self.aligned(before, after) => {
                for ((place, before), (_, after)) in before.members().zip(after.members()) {
                    if self.is_changed((of, &place), (before, after), carried)? {
                        found.push(Change::Member(of, place, after.clone()));
                    }
                }
            }
            (Item::List { items, .. }, Some(Item::List { .. } | Item::DynList(_))) => {
                let sample = match self.element_spec(of).map(|sample| sample.jagged_from(first)) {
                    Some(None) => {
                        return in_loop("it adds tensors to a list that differ in several sizes");
                    }
                    sample => sample.flatten(),
                };
                // The elements of the list decide before those that join it.
                let sample = sample.filter(|s| items.is_empty() || s.jagged.is_some());
                found.push(Change::List(of, sample));
            }
            (Item::DynList(a), Some(Item::DynList(b))) => {
                found.extend((a != b).then_some(Change::List(of, None)));
            }
            _ => return in_loop("it adds keys to a dict or attributes to an object"),
        }
        Ok(())
    }

    /// The changes of the memory of variables. `inputs` are carried into the iteration.
    pub(crate) fn memory_changes(
        &self,
        the_loop: &Loop<'_>,
        inputs: &[Name],
        [env, within]: [&Env; 2],
    ) -> Step<Vec<Change>> {
        let Loop { names, carried, .. } = the_loop;
        let mut found = Vec::new();
        let base = |env: &Env, name: &Name| match env.get(name) {
            Some(Value::Tensor(tensor)) => Some(self.write_base_of(tensor)),
            _ => None,
        };
        for name in names {
            let is_this = |c: &Carried| matches!(&c.slot, Slot::Variable(of, _) if of == name);
            let before = base(env, name).filter(|_| !carried.iter().any(is_this));
            if before.is_some() && before != base(within, name) {
                found.push(Change::Own(name.clone()));
            }
        }
        for (variable, input) in carried.iter().zip(inputs) {
            match &variable.slot {
                _ if !self.state.mod_set.contains(input) => {}
                Slot::Variable(name, path) if path.is_empty() => {
                    let stays = base(within, name).as_ref() == Some(input);
                    let change = if stays { Change::InPlace } else { Change::Own };
                    found.push(change(name.clone()));
                }
                _ => return written_view(),
            }
        }
        Ok(found)
    }
}

fn written_view<T>() -> Step<T> {
    in_loop("it writes into a part of a tensor that it also replaces")
}
