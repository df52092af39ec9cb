//! Lists and dicts that a loop replaces in each iteration (`states = new`), also within others:
//! what is new moves into those that were there before, which the loop then carries.

use crate::{
    control::{loop_carried::Loop, loop_effects::Change},
    eval::{Env, Evaluator, Step},
    value::{Item, Ref, Tuple, Value},
};
use pt2onnx_fx::Name;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// How deeply lists, dicts and tuples may nest.
const MAX_NESTING: usize = 20;

/// A list or dict, and the one in whose place it stands after an iteration.
struct Pair {
    from: Ref,
    to: Ref,
}

impl Evaluator<'_> {
    /// Gives a variable copies of these lists and dicts, which no other name refers to.
    pub(crate) fn make_unique_owner(
        &mut self,
        name: Name,
        of: &[Ref],
        env: &mut Env,
        unique_owners: &mut Vec<(Name, Ref)>,
    ) -> Step<()> {
        let Some(value) = env.get(&name).cloned() else { return Ok(()) };
        let mut made = Vec::new();
        let value = self.owned(&value, of, &mut made, MAX_NESTING)?;
        unique_owners.extend(made.into_iter().map(|own| (name.clone(), own)));
        env.insert(name, value);
        Ok(())
    }

    fn owned(
        &mut self,
        value: &Value,
        of: &[Ref],
        made: &mut Vec<Ref>,
        depth: usize,
    ) -> Step<Value> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(value.clone()) };
        if let Value::Tuple(tuple) = value {
            let items = tuple.items.iter().map(|item| self.owned(item, of, made, depth));
            let items = items.collect::<Step<_>>()?;
            return Ok(Value::Tuple(Arc::new(Tuple::new(items, tuple.class.clone()))));
        }
        let Some((old, mut item)) =
            item_of(value).and_then(|at| Some((at, self.state.heap.get(at.0)?.clone())))
        else {
            return Ok(value.clone());
        };
        for part in parts_of(&mut item) {
            *part = self.owned(part, of, made, depth)?;
        }
        if !of.contains(&old) {
            if let Some(slot) = self.state.heap.get_mut(old.0) {
                *slot = item;
            }
            return Ok(value.clone());
        }
        let own = self.alloc(item)?;
        self.state.heap.may_be(own, old);
        made.push(own);
        Ok(match value {
            Value::Dict(_) => Value::Dict(own),
            _ => Value::List(own),
        })
    }

    /// Moves new lists and dicts into those of the `count` older items that they replace. Returns
    /// what needs to be the variable's own first.
    pub(crate) fn move_items(
        &mut self,
        Loop { names, unique_owners, .. }: &Loop<'_>,
        (before, after): (&Env, &mut Env),
        count: usize,
    ) -> Step<Vec<Change>> {
        let (mut others, mut moves) = (Vec::new(), Vec::new());
        let mut variables: Vec<&Name> = before.keys().collect();
        variables.sort();
        for name in variables {
            let (Some(old), Some(new)) = (before.get(name), after.get(name)) else { continue };
            let mut pairs = Vec::new();
            self.pairs(old, new, count, &mut pairs, MAX_NESTING);
            self.steps(pairs.len())?;
            if pairs.is_empty() || self.is_shared(&pairs, (name, new), names, after, count)? {
                continue;
            }
            let owns = |to| unique_owners.iter().any(|(of, own)| of == name && *own == to);
            let foreign: Vec<Ref> =
                pairs.iter().map(|pair| pair.to).filter(|to| !owns(*to)).collect();
            if foreign.is_empty() {
                moves.push((name, old, new.clone()))
            } else {
                others.push(Change::Owner(name.clone(), foreign))
            }
        }
        if others.is_empty() {
            for (name, old, new) in moves {
                let value = self.settled(old, &new, count, MAX_NESTING);
                after.insert(name.clone(), value);
            }
        }
        Ok(others)
    }

    /// Whether lists or dicts, before the iteration and now, have the same places.
    fn aligned(&self, old: Option<&Item>, new: Option<&Item>) -> bool {
        match (old, new) {
            (Some(Item::List { items: a, .. }), Some(Item::List { items: b, .. })) => {
                a.len() == b.len()
            }
            (Some(Item::Dict(a)), Some(Item::Dict(b))) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(&a.0, &b.0))
            }
            _ => false,
        }
    }

    /// The lists and dicts made in the iteration that stand in the place of others.
    fn pairs(&self, old: &Value, new: &Value, count: usize, found: &mut Vec<Pair>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        if let (Value::Tuple(a), Value::Tuple(b)) = (old, new) {
            if a.items.len() == b.items.len() {
                let both = a.items.iter().zip(&b.items);
                both.for_each(|(a, b)| self.pairs(a, b, count, found, depth));
            }
            return;
        }
        let Some((to, from)) = place(old, new, count) else { return };
        if to != from {
            found.push(Pair { from, to });
        }
        let (Some(a), Some(b)) = (self.state.heap.before(to.0), self.state.heap.get(from.0)) else {
            return;
        };
        if self.aligned(Some(a), Some(b)) {
            values_of(a).zip(values_of(b)).for_each(|(a, b)| self.pairs(a, b, count, found, depth));
        }
    }

    /// The value before the iteration, with the contents of the new one.
    fn settled(&mut self, old: &Value, new: &Value, count: usize, depth: usize) -> Value {
        let Some(depth) = depth.checked_sub(1) else { return new.clone() };
        if let (Value::Tuple(a), Value::Tuple(b)) = (old, new)
            && a.items.len() == b.items.len()
        {
            let both = a.items.iter().zip(&b.items);
            let items = both.map(|(a, b)| self.settled(a, b, count, depth)).collect();
            return Value::Tuple(Arc::new(Tuple::new(items, b.class.clone())));
        }
        let found = place(old, new, count);
        let Some((to, mut item)) =
            found.and_then(|(to, from)| Some((to, self.state.heap.get(from.0)?.clone())))
        else {
            return new.clone();
        };
        let was = self.state.heap.before(to.0).cloned();
        let was = was.as_ref();
        if self.aligned(was, Some(&item)) {
            for (part, was) in
                parts_of(&mut item).into_iter().zip(was.into_iter().flat_map(values_of))
            {
                *part = self.settled(was, part, count, depth);
            }
        }
        if let Some(slot) = self.state.heap.get_mut(to.0) {
            *slot = item;
        }
        old.clone()
    }

    /// Whether another carried variable, something that was there before the iteration, or the
    /// variable itself in another place refers to one of these lists and dicts.
    fn is_shared(
        &mut self,
        pairs: &[Pair],
        (of, value): (&Name, &Value),
        names: &[Name],
        env: &Env,
        count: usize,
    ) -> Step<bool> {
        let moved: FxHashSet<Ref> = pairs.iter().flat_map(|pair| [pair.from, pair.to]).collect();
        if moved.len() != 2 * pairs.len() {
            return Ok(true);
        }
        // The variable's own lists and dicts, down to those that move.
        let (mut own, mut open) = (FxHashSet::default(), Vec::new());
        contained(value, &mut open);
        let mut steps = 0;
        while let Some(at) = open.pop() {
            if own.insert(at)
                && let Some(item) = self.state.heap.get(at.0)
            {
                values_of(item).for_each(|value| contained(value, &mut open));
            } else if moved.contains(&at) {
                return Ok(true);
            }
            steps += 1;
        }
        // A list that takes in another one is nowhere else.
        if pairs.iter().any(|pair| own.contains(&pair.to)) {
            return Ok(true);
        }
        let variables = names.iter().filter(|name| *name != of).filter_map(|name| env.get(name));
        variables.for_each(|value| value.references(&mut open));
        open.extend(
            (0..count).map(Ref).filter(|item| !own.contains(item) && !moved.contains(item)),
        );
        let mut seen = FxHashSet::default();
        while let Some(at) = open.pop() {
            if moved.contains(&at) {
                self.steps(steps)?;
                return Ok(true);
            }
            // An item that stays in place is followed as a part of the variable.
            if own.contains(&at) || !seen.insert(at) {
                continue;
            }
            let known = open.len();
            if let Some(item) = self.state.heap.get(at.0) {
                item.references(&mut open);
            }
            steps += 1 + open.len() - known;
        }
        self.steps(steps)?;
        Ok(false)
    }
}

/// The list or dict that a value is.
fn item_of(value: &Value) -> Option<Ref> {
    match value {
        Value::List(item) | Value::Dict(item) => Some(*item),
        _ => None,
    }
}

/// A list or dict before an iteration, and after it the same or a new one, behind `count` older.
fn place(old: &Value, new: &Value, count: usize) -> Option<(Ref, Ref)> {
    let same_kind = std::mem::discriminant(old) == std::mem::discriminant(new);
    let (to, from) = item_of(old).zip(item_of(new))?;
    (same_kind && (to == from || from.0 >= count)).then_some((to, from))
}

/// The values in a list or dict.
fn values_of(item: &Item) -> Box<dyn Iterator<Item = &Value> + '_> {
    match item {
        Item::List { items, .. } => Box::new(items.iter()),
        Item::Dict(entries) => Box::new(entries.iter().map(|(_, value)| value)),
        Item::Object { .. } | Item::DynList(_) => Box::new(std::iter::empty()),
    }
}

/// The values in a list or dict, to be changed.
fn parts_of(item: &mut Item) -> Vec<&mut Value> {
    match item {
        Item::List { items, .. } => items.iter_mut().collect(),
        Item::Dict(entries) => entries.iter_mut().map(|(_, value)| value).collect(),
        Item::Object { .. } | Item::DynList(_) => Vec::new(),
    }
}

/// Adds the lists and dicts that a value is or has in tuples.
fn contained(value: &Value, found: &mut Vec<Ref>) {
    match value {
        Value::List(item) | Value::Dict(item) => found.push(*item),
        Value::Tuple(tuple) => tuple.items.iter().for_each(|item| contained(item, found)),
        _ => {}
    }
}
