//! Forms of variables that loops change: tuples, values that may be None or are new.

use crate::{
    control::loop_carried::{Carried, Place, leaves},
    eval::{Evaluator, Step, in_loop},
    state::JoinPolicy,
    value::{Item, Optional, Ref, Value},
};
use pt2onnx_fx::Name;
use std::sync::Arc;

impl Evaluator<'_> {
    /// The initial value of a variable in the form of a later one, with unread placeholders.
    pub(crate) fn initial_value(&mut self, before: Option<&Value>, later: &Value) -> Step<Value> {
        let before = before.cloned().unwrap_or(Value::None);
        Ok(match (&before, later) {
            (Value::Tuple(a), Value::Tuple(b)) if a.items.len() == b.items.len() => {
                let pairs = a.items.iter().zip(&b.items);
                let items = pairs.map(|(a, b)| self.initial_value(Some(a), b)).collect::<Step<_>>();
                self.tuple(items?, b.class.clone())?
            }
            (Value::Undef(_), Value::Tuple(b)) => {
                let items = b.items.iter().map(|b| self.initial_value(Some(&before), b));
                let items = items.collect::<Step<_>>()?;
                self.tuple(items, b.class.clone())?
            }
            (Value::Undef(_), Value::Tensor(name)) => {
                let meta = self.meta(name)?.clone();
                Value::Tensor(self.placeholder(&meta)?)
            }
            (Value::Str(_), Value::UnknownStr(_)) => later.clone(),
            (Value::Undef(_), Value::Int(_)) => Value::int(0),
            (Value::Undef(_), Value::Float(_)) => Value::float(0.0),
            (Value::Undef(_), Value::Bool(_)) => Value::bool(false),
            (Value::None | Value::Optional(_), _) | (_, Value::None | Value::Optional(_)) => {
                let ((present, value), (_, later)) =
                    (Optional::parts(&before), Optional::parts(later));
                let value = match (&value, &later) {
                    (Value::Undef(_), _) => self.initial_value(Some(&value), &later)?,
                    _ => value,
                };
                Value::Optional(Arc::new(Optional { present, value }))
            }
            _ => before,
        })
    }

    /// Whether a variable needs another form to hold what it has after an iteration.
    pub(crate) fn form(&self, name: &Name, before: &Value, after: &Value) -> Step<bool> {
        let leaf = |value: &Value| matches!(value, Value::Tensor(_)) || value.number().is_some();
        Ok(match (before, after) {
            (Value::Callee(_), _) | (_, Value::Undef(_)) => false,
            (Value::Str(_), Value::UnknownStr(_)) => true,
            (Value::UnknownStr(_), Value::Str(_)) => false,
            (Value::Undef(_), Value::Tuple(_)) => true,
            (Value::Undef(_), other) if leaf(other) => true,
            (Value::Tuple(a), Value::Tuple(b)) if a.items.len() == b.items.len() => {
                let pairs = a.items.iter().zip(&b.items);
                let forms = pairs.map(|(a, b)| self.form(name, a, b)).collect::<Step<Vec<bool>>>();
                forms?.contains(&true)
            }
            (Value::Optional(maybe), other) => {
                let (_, other) = Optional::parts(other);
                self.form(name, &maybe.value, &other)?
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
            (a, _) => {
                return in_loop(format!("`{name}`, which it changes, is {}", a.kind()));
            }
        })
    }

    /// Whether an attribute or element is not carried in the form of its new value.
    pub(crate) fn is_changed(
        &self,
        (of, place): (Ref, &Place),
        (before, after): (&Value, &Value),
        carried: &[Carried],
    ) -> Step<bool> {
        if carried.iter().any(|c| c.slot.is_member(of, Some(place))) {
            return self.form(&place.name(), before, after);
        }
        Ok(match (before, after) {
            (Value::Undef(_) | Value::Callee(_), _) => false,
            // It is only written into.
            (Value::Tensor(a), Value::Tensor(b)) => {
                self.write_base_of(&self.current(a)) != self.write_base_of(&self.current(b))
            }
            (a, b) => !self.same(a, b),
        })
    }

    /// The initial value of an attribute or element, in the form of a value that it gets later.
    pub(crate) fn initial_member(&mut self, of: Ref, place: &Place, later: &Value) -> Step<Value> {
        let before = self.value_at(of, place).unwrap_or(Value::None);
        if !self.form(&place.name(), &before, later)? {
            if leaves(&before).is_empty() {
                return in_loop(format!(
                    "`{}`, which it changes, is {}",
                    place.name(),
                    before.kind()
                ));
            }
            return Ok(before);
        }
        let initial_value = self.initial_value(Some(&before), later)?;
        self.set_value_at(of, place, initial_value.clone());
        Ok(initial_value)
    }

    /// The value of an object, list or dict at a place.
    pub(crate) fn value_at(&self, of: Ref, place: &Place) -> Option<Value> {
        match (self.state.heap.get(of.0)?, place) {
            (Item::Object { attributes, .. }, Place::Attribute(name)) => attributes.get(name),
            (Item::List { items, .. }, Place::Element(at)) => items.get(*at),
            (Item::Dict(entries), Place::Element(at)) => entries.get(*at).map(|(_, value)| value),
            _ => None,
        }
        .cloned()
    }

    pub(crate) fn set_value_at(&mut self, of: Ref, place: &Place, value: Value) {
        if matches!(place, Place::Element(_)) {
            self.state.heap.changes(of);
        }
        let slot = match (self.state.heap.get_mut(of.0), place) {
            (Some(Item::Object { attributes, .. }), Place::Attribute(name)) => {
                Some(attributes.entry(name.clone()).or_insert(Value::None))
            }
            (Some(Item::List { items, .. }), Place::Element(at)) => items.get_mut(*at),
            (Some(Item::Dict(entries)), Place::Element(at)) => {
                entries.get_mut(*at).map(|(_, value)| value)
            }
            _ => None,
        };
        if let Some(slot) = slot {
            *slot = value;
        }
    }
}
