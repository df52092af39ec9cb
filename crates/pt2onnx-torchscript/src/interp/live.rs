//! Which items of the heap can be read after a function has returned.

use super::Interp;
use crate::value::{Callee, Item, Value};
use rustc_hash::FxHashSet;

impl Interp<'_> {
    /// The items that the result of the function which runs, or what was there before it, refers
    /// to.
    pub(super) fn live(&self, heap: &[Item], result: &Value, found: &mut FxHashSet<usize>) {
        let older = self.frames.last().map_or(heap.len(), |frame| frame.heap).min(heap.len());
        let mut values = vec![result.clone()];
        for at in 0..older {
            reach(at, heap, found, &mut values);
        }
        while let Some(value) = values.pop() {
            match &value {
                Value::List(at) | Value::Dict(at) | Value::Object(at) => {
                    reach(at.0, heap, found, &mut values);
                }
                Value::Tuple(tuple) => values.extend(tuple.items.iter().cloned()),
                Value::Maybe(maybe) => values.push(maybe.value.clone()),
                Value::Enum(member) => values.push(member.value.clone()),
                Value::Callee(callee) => match &**callee {
                    Callee::Method(owner, _) => values.push(owner.clone()),
                    Callee::Closure(_, seen) => {
                        values.extend(seen.iter().map(|(_, value)| value.clone()));
                    }
                    Callee::Namespace(_)
                    | Callee::Function(_)
                    | Callee::Class(_)
                    | Callee::Unbound(..) => {}
                },
                _ => {}
            }
        }
    }
}

/// Adds an item and what it holds.
fn reach(at: usize, heap: &[Item], found: &mut FxHashSet<usize>, values: &mut Vec<Value>) {
    if !found.insert(at) {
        return;
    }
    match heap.get(at) {
        Some(Item::List { items, .. }) => values.extend(items.iter().cloned()),
        Some(Item::Dict(entries)) => {
            values.extend(entries.iter().flat_map(|(key, value)| [key.clone(), value.clone()]));
        }
        Some(Item::Object { attributes, .. }) => values.extend(attributes.values().cloned()),
        Some(Item::Parts(parts)) => values.extend(parts.lengths.map(Value::List)),
        None => {}
    }
}
