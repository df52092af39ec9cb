//! Which items of the heap can be read after a function has returned.

use crate::value::{Callee, Item, Value};
use rustc_hash::FxHashSet;

/// Adds the items that the result of a function, or one of the first `older` items, refers to.
pub(crate) fn reachable<'h>(
    item: impl Fn(usize) -> Option<&'h Item>,
    older: usize,
    result: &Value,
    found: &mut FxHashSet<usize>,
) {
    let mut values = vec![result.clone()];
    let mut reach = |at: usize, values: &mut Vec<Value>| {
        if !found.insert(at) {
            return;
        }
        match item(at) {
            Some(Item::List { items, .. }) => values.extend(items.iter().cloned()),
            Some(Item::Dict(entries)) => {
                values.extend(entries.iter().flat_map(|(key, value)| [key.clone(), value.clone()]));
            }
            Some(Item::Object { attributes, .. }) => values.extend(attributes.values().cloned()),
            Some(Item::DynList(parts)) => values.extend(parts.lengths.map(Value::List)),
            None => {}
        }
    };
    (0..older).for_each(|at| reach(at, &mut values));
    while let Some(value) = values.pop() {
        match &value {
            Value::List(at) | Value::Dict(at) | Value::Object(at) => reach(at.0, &mut values),
            Value::Tuple(tuple) => values.extend(tuple.items.iter().cloned()),
            Value::Optional(optional) => values.push(optional.value.clone()),
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
