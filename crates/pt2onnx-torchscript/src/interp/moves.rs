//! Variables that a loop gives another list or dict in each trip (`states = new`): it moves into the one that the variable had, which the loop
//! then carries.

use super::{Env, Interp, Step, changes::Change};
use crate::value::{Item, Ref, Value};
use pt2onnx_fx::Name;
use rustc_hash::FxHashSet;

/// Variables with a list or dict of their own.
pub(super) type Owners = Vec<(Name, Ref)>;

impl Interp<'_> {
    /// Gives a variable a copy of its list or dict, which no other name refers to.
    pub(super) fn make_owner(
        &mut self,
        name: Name,
        env: &mut Env,
        owners: &mut Owners,
    ) -> Step<()> {
        let found = env.get(&name).and_then(item_of);
        let Some((old, item)) = found.and_then(|of| Some((of, self.heap.get(of.0)?.clone())))
        else {
            return Ok(());
        };
        let own = self.alloc(item)?;
        self.heap.may_be(own, old);
        let value = match env.get(&name) {
            Some(Value::Dict(_)) => Value::Dict(own),
            _ => Value::List(own),
        };
        env.insert(name.clone(), value);
        owners.push((name, own));
        Ok(())
    }

    /// Moves what the variables refer to after a trip into what they referred to before it. `count`: how many items there were before the
    /// trip. Returns the variables that need a list or dict of their own first.
    pub(super) fn move_items(
        &mut self,
        (names, owners): (&[Name], &Owners),
        (before, after): (&Env, &mut Env),
        count: usize,
    ) -> Step<Vec<Change>> {
        let (mut others, mut moves) = (Vec::new(), Vec::new());
        for name in names {
            let (Some(old), Some(new)) = (before.get(name), after.get(name)) else { continue };
            let same_kind = std::mem::discriminant(old) == std::mem::discriminant(new);
            let (Some(from), Some(to), true) = (item_of(new), item_of(old), same_kind) else {
                continue;
            };
            if from == to
                || from.0 < count
                || self.is_shared([from, to], name, names, after, count)?
            {
                continue;
            }
            match owners.iter().any(|owner| *owner == (name.clone(), to)) {
                true => moves.push((name, from, to, old.clone())),
                false => others.push(Change::Owner(name.clone())),
            }
        }
        if others.is_empty() {
            for (name, from, to, value) in moves {
                if let Some(item) = self.heap.get(from.0).cloned()
                    && let Some(slot) = self.heap.get_mut(to.0)
                {
                    *slot = item;
                    after.insert(name.clone(), value);
                }
            }
        }
        Ok(others)
    }

    /// Whether another carried variable, or something that was there before the trip, refers to one of these items.
    fn is_shared(
        &mut self,
        items: [Ref; 2],
        of: &Name,
        names: &[Name],
        env: &Env,
        count: usize,
    ) -> Step<bool> {
        let variables = names.iter().filter(|name| *name != of).filter_map(|name| env.get(name));
        let mut open: Vec<Ref> = Vec::new();
        variables.for_each(|value| references(value, &mut open));
        open.extend((0..count).map(Ref).filter(|item| !items.contains(item)));
        let mut seen = FxHashSet::default();
        let mut steps = 0;
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            let known = open.len();
            match self.heap.get(at.0) {
                Some(Item::List { items, .. }) => {
                    items.iter().for_each(|value| references(value, &mut open));
                }
                Some(Item::Dict(entries)) => {
                    entries.iter().for_each(|(_, value)| references(value, &mut open));
                }
                Some(Item::Object { attributes, .. }) => {
                    attributes.values().for_each(|value| references(value, &mut open));
                }
                Some(Item::Parts(parts)) => open.extend(parts.lengths),
                None => {}
            }
            steps += 1 + open.len() - known;
        }
        self.steps(steps)?;
        Ok(items.iter().any(|item| seen.contains(item)))
    }
}

/// The list or dict that a value is.
fn item_of(value: &Value) -> Option<Ref> {
    match value {
        Value::List(item) | Value::Dict(item) => Some(*item),
        _ => None,
    }
}

/// Adds the items that a value refers to directly.
fn references(value: &Value, found: &mut Vec<Ref>) {
    match value {
        Value::List(item) | Value::Dict(item) | Value::Object(item) => found.push(*item),
        Value::Tuple(tuple) => tuple.items.iter().for_each(|item| references(item, found)),
        Value::Maybe(maybe) => references(&maybe.value, found),
        _ => {}
    }
}
