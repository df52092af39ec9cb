//! Lists and dicts that a loop replaces in each iteration (`states = new`), also within others:
//! what is new moves into those that were there before, which the loop then carries.

use crate::{
    control::{loop_carried::Loop, loop_effects::Change},
    eval::{Env, Evaluator, Step},
    state::{liveness::reachable, may_alias},
    value::{Item, Ref, Tuple, Value},
};
use pt2onnx_fx::Name;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// How deeply lists, dicts and tuples may nest.
const MAX_NESTING: usize = 20;

/// A list or dict, and the one in whose place it stands after an iteration, or itself.
type Pair = (Ref, Ref);

impl Evaluator<'_> {
    /// Gives a variable copies of these lists and dicts, which no other name refers to.
    pub(crate) fn make_unique_owner(
        &mut self,
        name: Name,
        of: &FxHashSet<Ref>,
        env: &mut Env,
        unique_owners: &mut FxHashSet<(Name, Ref)>,
    ) -> Step<()> {
        let Some(value) = env.get(&name).cloned() else { return Ok(()) };
        let (mut pairs, mut open) = (Vec::new(), Vec::new());
        contained(&value, &mut open);
        let mut seen = FxHashSet::default();
        while let Some(at) = open.pop() {
            let Some(item) = self.state.heap.get(at.0).filter(|_| seen.insert(at)) else {
                continue;
            };
            item.members().for_each(|value| contained(value, &mut open));
            let item = item.clone();
            let own = if of.contains(&at) { self.alloc(item)? } else { at };
            if own != at {
                self.state.copies.link(&may_alias::memory_of(own), &may_alias::memory_of(at));
                unique_owners.insert((name.clone(), own));
            }
            pairs.push((at, own));
        }
        let value = self.settled(&pairs, &value);
        env.insert(name, value);
        Ok(())
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
            let moved: Vec<Pair> = pairs.iter().filter(|(from, to)| from != to).copied().collect();
            if moved.is_empty() || self.is_shared(&moved, (name, new), names, after, count)? {
                continue;
            }
            let owns = |to: &Ref| unique_owners.contains(&(name.clone(), *to));
            let foreign = moved.iter().map(|pair| pair.1).filter(|to| !owns(to));
            let foreign: FxHashSet<Ref> = foreign.collect();
            if foreign.is_empty() {
                moves.push((name, pairs, new.clone()))
            } else {
                others.push(Change::Owner(name.clone(), foreign))
            }
        }
        if others.is_empty() {
            for (name, pairs, new) in moves {
                let value = self.settled(&pairs, &new);
                after.insert(name.clone(), value);
            }
        }
        Ok(others)
    }

    /// Whether lists, dicts or objects have the same places.
    pub(super) fn aligned(&self, old: &Item, new: &Item) -> bool {
        match (old, new) {
            (Item::List { items: a, .. }, Item::List { items: b, .. }) => a.len() == b.len(),
            (Item::Dict(a), Item::Dict(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(&a.0, &b.0))
            }
            (Item::Object { attributes: a, .. }, Item::Object { attributes: b, .. }) => {
                a.keys().eq(b.keys())
            }
            _ => false,
        }
    }

    /// The lists and dicts that stand in the places of others after the iteration, or stay.
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
        found.push((from, to));
        if let (Some(a), Some(b)) = (self.state.heap.before(to.0), self.state.heap.get(from.0))
            && self.aligned(a, b)
        {
            let both = a.members().zip(b.members());
            both.for_each(|(a, b)| self.pairs(a, b, count, found, depth));
        }
    }

    /// Moves the contents of lists and dicts. Returns a value that refers to them where they are.
    fn settled(&mut self, pairs: &[Pair], value: &Value) -> Value {
        let places: FxHashMap<Ref, Ref> = pairs.iter().copied().collect();
        for (from, to) in pairs {
            let Some(mut item) = self.state.heap.get(from.0).cloned() else { continue };
            let mut at = 0;
            while let Some(member) = item.member_mut(at) {
                *member = moved(member, &places);
                at += 1;
            }
            if let Some(slot) = self.state.heap.get_mut(to.0) {
                *slot = item;
            }
        }
        moved(value, &places)
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
        let moved: FxHashSet<usize> = pairs.iter().flat_map(|(from, to)| [from.0, to.0]).collect();
        if moved.len() != 2 * pairs.len() {
            return Ok(true);
        }
        // The variable's own lists and dicts, down to those that move.
        let (mut own, mut open) = (FxHashSet::default(), Vec::new());
        contained(value, &mut open);
        while let Some(at) = open.pop() {
            if own.insert(at.0)
                && let Some(item) = self.state.heap.get(at.0)
            {
                item.members().for_each(|value| contained(value, &mut open));
            } else if moved.contains(&at.0) {
                return Ok(true);
            }
        }
        // A list that takes in another one is nowhere else.
        if pairs.iter().any(|(_, to)| own.contains(&to.0)) {
            return Ok(true);
        }
        let variables = names.iter().filter(|name| *name != of).filter_map(|name| env.get(name));
        variables.for_each(|value| value.references(&mut open));
        // An item that stays in place is followed as a part of the variable.
        let is_foreign = |at: &usize| !own.contains(at) && !moved.contains(at);
        open.extend((0..count).filter(is_foreign).map(Ref));
        let mut found = FxHashSet::default();
        reachable(|at| self.state.heap.get(at).filter(|_| is_foreign(&at)), open, &mut found);
        self.steps(own.len() + found.len())?;
        Ok(moved.iter().any(|at| found.contains(at)))
    }
}

/// A value with the lists and dicts in whose places others stand.
fn moved(value: &Value, places: &FxHashMap<Ref, Ref>) -> Value {
    let to = |item: &Ref| places.get(item).copied().unwrap_or(*item);
    match value {
        Value::List(item) => Value::List(to(item)),
        Value::Dict(item) => Value::Dict(to(item)),
        Value::Tuple(tuple) => {
            let items = tuple.items.iter().map(|item| moved(item, places)).collect();
            Value::Tuple(Arc::new(Tuple::new(items, tuple.class.clone())))
        }
        other => other.clone(),
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

/// Adds the lists and dicts that a value is or has in tuples.
fn contained(value: &Value, found: &mut Vec<Ref>) {
    match value {
        Value::List(item) | Value::Dict(item) => found.push(*item),
        Value::Tuple(tuple) => tuple.items.iter().for_each(|item| contained(item, found)),
        _ => {}
    }
}
