//! Loop effects: all that the body of a loop changes becomes loop-carried, in a form that holds its
//! values before and after an iteration: tuples, values that may be None or are new.

use crate::{
    control::{
        loop_carried::{Carried, Loop, Place, at_path, leaves},
        phi::placeholder,
    },
    eval::{Env, Evaluator, Step, in_loop},
    state::JoinPolicy,
    value::{Item, Layout, Optional, Ref, Value, dyn_list::element_spec::ElementSpec},
};
use pt2onnx_fx::{Argument, Name};
use pt2onnx_symbolic::Expr as Sym;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Something that the body changes and that is not carried yet.
pub(crate) enum Change {
    /// A value becomes this one, in whose form it is to begin.
    Value(Place, Value),
    /// A list whose length changes, and what its elements are like.
    Length(Ref, Option<ElementSpec>),
    /// A variable is only written into.
    InPlace(Name),
    /// A variable is written into, and is something else after an iteration.
    Own(Name),
    /// A variable gets others in place of these lists or dicts.
    Owner(Name, FxHashSet<Ref>),
}

impl Evaluator<'_> {
    /// Carries the tensors and numbers in the value at a place; the rest must not change.
    pub(crate) fn carry(
        &mut self,
        place: &Place,
        value: &Value,
        carried: &mut Vec<Carried>,
    ) -> Step<()> {
        for path in leaves(value) {
            let like = at_path(value, &path).unwrap_or(Value::None);
            let initial = match &like {
                Value::Tensor(tensor) => self.readable(tensor)?,
                number => self.as_tensor(number)?,
            };
            let (place, meta) = (place.clone(), self.meta(&initial)?.clone());
            carried.push(Carried { place, path, initial, like, meta, own: false });
        }
        Ok(())
    }

    /// Carries what the body of a loop changes from now on.
    pub(crate) fn carry_change(
        &mut self,
        change: Change,
        env: &mut Env,
        Loop { carried, unique_owners, .. }: &mut Loop<'_>,
    ) -> Step<()> {
        match change {
            Change::Value(place, later) => {
                let initial = self.initial_at(&place, &later, env)?;
                carried.retain(|c| c.place != place);
                self.carry(&place, &initial, carried)
            }
            Change::Length(list, sample) => {
                carried.retain(|c| !matches!(c.place, Place::Member(of, ..) if of == list));
                let initial = Value::Tensor(self.list_as_tensor(list, sample)?);
                self.carry(&Place::Elements(list), &initial, carried)
            }
            Change::InPlace(name) => {
                carried.retain(|c| c.place != Place::Variable(name.clone()));
                Ok(())
            }
            Change::Own(name) => self.carry_copy(name, env, carried),
            Change::Owner(name, of) => self.make_unique_owner(name, &of, env, unique_owners),
        }
    }

    /// The tensor of a list whose length changes in the loop; `sample` is the type of its elements.
    fn list_as_tensor(&mut self, list: Ref, sample: Option<ElementSpec>) -> Step<Name> {
        let Some(parts) = self.dyn_list(list) else {
            return self.generalize(list, sample);
        };
        match (parts.layout, parts.dim) {
            (Layout::Jagged(_), _) | (Layout::Slices, 0) => Ok(parts.tensor),
            (Layout::Sequence(_), _) => in_loop("it changes a list of tensors of several sizes"),
            _ => in_loop("it changes a list that a split gives"),
        }
    }

    /// A variable begins each iteration with a copy of its tensor. The copy must be made where the
    /// loop is, so that all that reads it by another name is known to be stale.
    fn carry_copy(&mut self, name: Name, env: &Env, carried: &mut Vec<Carried>) -> Step<()> {
        let place = Place::Variable(name);
        match carried.iter().position(|variable| variable.place == place) {
            Some(at) => carried[at..].rotate_left(1),
            None => {
                let like = self.value_at(&place, env).unwrap_or(Value::None);
                self.carry(&place, &like, carried)?;
            }
        }
        let Some(variable) = carried.last_mut() else { return Ok(()) };
        let root = self.write_base_of(&variable.initial);
        if self.memory.is_view(&root) {
            return written_view();
        }
        let is_input = |input: &Argument| input.name() == Some(&root);
        if !self.state.is_of_region(&root) || self.interface.inputs.iter().any(is_input) {
            return in_loop("it writes into a tensor that it also replaces");
        }
        variable.own = true;
        Ok(())
    }

    /// The changes of the heap by the body that are not carried. `first` is its first new symbol.
    pub(crate) fn heap_changes(&self, carried: &[Carried], first: &Sym) -> Step<Vec<Change>> {
        let mut found = Vec::new();
        for (&at, before) in self.state.heap.changed() {
            let of = Ref(at);
            if carried.iter().any(|c| c.place == Place::Elements(of)) {
                continue;
            }
            match (before, self.state.heap.get(at)) {
                (_, Some(after)) if self.aligned(before, after) => {
                    for (at, (before, new)) in before.members().zip(after.members()).enumerate() {
                        let name = match after {
                            Item::Object { attributes, .. } => {
                                attributes.get_index(at).map(|(name, _)| name.clone())
                            }
                            _ => None,
                        };
                        let name = name.unwrap_or_else(|| format!("element_{at}").into());
                        let place = Place::Member(of, at, name);
                        if self.is_changed(&place, (before, new), carried)? {
                            found.push(Change::Value(place, new.clone()));
                        }
                    }
                }
                (Item::List { items, .. }, Some(Item::List { .. } | Item::DynList(_))) => {
                    let sample = match self.element_spec(of).map(|s| s.jagged_from(first)) {
                        Some(None) => {
                            return in_loop(
                                "it adds tensors to a list that differ in several sizes",
                            );
                        }
                        sample => sample.flatten(),
                    };
                    // The elements of the list decide before those that join it.
                    let sample = sample.filter(|s| items.is_empty() || s.jagged.is_some());
                    found.push(Change::Length(of, sample));
                }
                (Item::DynList(a), Some(Item::DynList(b))) => {
                    found.extend((a != b).then_some(Change::Length(of, None)));
                }
                _ => return in_loop("it adds keys to a dict or attributes to an object"),
            }
        }
        Ok(found)
    }

    /// The changes of the memory of variables. `inputs` are carried into the iteration.
    pub(crate) fn memory_changes(
        &self,
        Loop { names, carried, .. }: &Loop<'_>,
        inputs: &[Name],
        [env, within]: [&Env; 2],
    ) -> Step<Vec<Change>> {
        let mut found = Vec::new();
        let base = |env: &Env, name: &Name| match env.get(name) {
            Some(Value::Tensor(tensor)) => Some(self.write_base_of(tensor)),
            _ => None,
        };
        for name in names {
            let is_this = |c: &Carried| matches!(&c.place, Place::Variable(of) if of == name);
            let before = base(env, name).filter(|_| !carried.iter().any(is_this));
            if before.is_some() && before != base(within, name) {
                found.push(Change::Own(name.clone()));
            }
        }
        let written = carried.iter().zip(inputs);
        for (variable, input) in written.filter(|(_, input)| self.state.mod_set.contains(*input)) {
            let Place::Variable(name) = &variable.place else { return written_view() };
            if !variable.path.is_empty() {
                return written_view();
            }
            let stays = base(within, name).as_ref() == Some(input);
            let change = if stays { Change::InPlace } else { Change::Own };
            found.push(change(name.clone()));
        }
        Ok(found)
    }

    /// Whether an attribute or element is not carried in the form of its new value.
    fn is_changed(
        &self,
        place: &Place,
        (before, after): (&Value, &Value),
        carried: &[Carried],
    ) -> Step<bool> {
        if carried.iter().any(|c| c.place == *place) {
            return self.needs_form(&place.name(), before, after);
        }
        Ok(match (before, after) {
            (Value::Undef(_) | Value::Callee(_), _) => false,
            // It is only written into.
            (Value::Tensor(a), Value::Tensor(b)) => self.write_base_of(a) != self.write_base_of(b),
            (a, b) => !self.same(a, b),
        })
    }

    /// Whether a variable needs another form to hold what it has after an iteration.
    pub(crate) fn needs_form(&self, name: &Name, before: &Value, after: &Value) -> Step<bool> {
        let leaf = |value: &Value| matches!(value, Value::Tensor(_)) || value.number().is_some();
        Ok(match (before, after) {
            (Value::Callee(_), _) | (_, Value::Undef(_)) => false,
            (Value::Str(_), Value::UnknownStr(_)) => true,
            (Value::UnknownStr(_), Value::Str(_)) => false,
            (Value::Undef(_), Value::Tuple(_)) => true,
            (Value::Undef(_), other) if leaf(other) => true,
            (Value::Tuple(a), Value::Tuple(b)) if a.items.len() == b.items.len() => {
                let pairs = a.items.iter().zip(&b.items);
                let forms = pairs.map(|(a, b)| self.needs_form(name, a, b));
                forms.collect::<Step<Vec<bool>>>()?.contains(&true)
            }
            (Value::Optional(maybe), other) => {
                self.needs_form(name, &maybe.value, &Optional::parts(other).1)?
            }
            (Value::None, Value::None) => false,
            (Value::None, other) | (other, Value::None | Value::Optional(_))
                if self.state.join == JoinPolicy::AllowOptional
                    && (leaf(other)
                        || matches!(
                            other,
                            Value::Undef(_) | Value::Tuple(_) | Value::Optional(_)
                        )) =>
            {
                true
            }
            // Their types are compared later.
            (a, b) if leaf(a) && leaf(b) => false,
            (a, b) if self.same(a, b) => false,
            (a, _) => return cannot_change(name, a),
        })
    }

    /// Gives a place its initial value in the form of a later one.
    fn initial_at(&mut self, place: &Place, later: &Value, env: &mut Env) -> Step<Value> {
        let before = self.value_at(place, env).unwrap_or(Value::None);
        if self.needs_form(&place.name(), &before, later)? {
            let initial = self.initial_value(&before, later)?;
            self.set_value_at(place, initial.clone(), env);
            Ok(initial)
        } else if leaves(&before).is_empty() {
            cannot_change(&place.name(), &before)
        } else {
            Ok(before)
        }
    }

    /// A value in the form of a later one, with placeholders that nobody reads.
    fn initial_value(&mut self, before: &Value, later: &Value) -> Step<Value> {
        Ok(match (before, later) {
            (Value::Tuple(a), Value::Tuple(b)) if a.items.len() == b.items.len() => {
                let pairs = a.items.iter().zip(&b.items);
                let items = pairs.map(|(a, b)| self.initial_value(a, b)).collect::<Step<_>>();
                self.tuple(items?, b.class.clone())?
            }
            (Value::Undef(_), Value::Tuple(b)) => {
                let items = b.items.iter().map(|b| self.initial_value(before, b));
                let items = items.collect::<Step<_>>()?;
                self.tuple(items, b.class.clone())?
            }
            (Value::Undef(_), Value::Tensor(name)) => {
                let meta = placeholder(self.meta(name)?);
                Value::Tensor(self.nothing(meta.dtype, meta.sizes)?)
            }
            (Value::Str(_), Value::UnknownStr(_)) => later.clone(),
            (Value::Undef(_), Value::Int(_)) => Value::int(0),
            (Value::Undef(_), Value::Float(_)) => Value::float(0.0),
            (Value::Undef(_), Value::Bool(_)) => Value::bool(false),
            (Value::None | Value::Optional(_), _) | (_, Value::None | Value::Optional(_)) => {
                let (present, mut value) = Optional::parts(before);
                if let Value::Undef(_) = value {
                    value = self.initial_value(&value, &Optional::parts(later).1)?;
                }
                Value::Optional(Arc::new(Optional { present, value }))
            }
            _ => before.clone(),
        })
    }
}

fn cannot_change<T>(name: &Name, value: &Value) -> Step<T> {
    in_loop(format!("`{name}`, which it changes, is {}", value.kind()))
}

fn written_view<T>() -> Step<T> {
    in_loop("it writes into a part of a tensor that it also replaces")
}
