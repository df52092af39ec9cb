//! Methods of dicts.

use crate::{
    builtins::{Call, Found},
    error::Problem,
    eval::{Evaluator, Step},
    value::Value,
};

/// The entries of a dict; each counts as a step.
pub(crate) fn entries(ev: &mut Evaluator<'_>, dict: &Value) -> Step<Vec<(Value, Value)>> {
    let entries = ev.entries(dict.dict()?).to_vec();
    ev.steps(entries.len())?;
    Ok(entries)
}

/// The place and value of a key.
fn find(ev: &mut Evaluator<'_>, dict: &Value, key: &Value) -> Step<Option<(usize, Value)>> {
    let entries = entries(ev, dict)?;
    let at = ev.place_of(entries.iter().map(|(key, _)| key), key)?;
    Ok(at.and_then(|at| Some((at, entries.get(at)?.1.clone()))))
}

fn no_key() -> Problem {
    Problem::Raises("KeyError".to_owned())
}

/// `keys`, `values` and `items`: a list of one value of each entry.
pub(crate) fn listed(
    ev: &mut Evaluator<'_>,
    dict: &Value,
    of: fn((Value, Value)) -> Value,
) -> Step<Value> {
    let entries = entries(ev, dict)?;
    ev.list(entries.into_iter().map(of).collect(), None)
}

pub(crate) fn copy(ev: &mut Evaluator<'_>, dict: &Value) -> Step<Value> {
    let entries = entries(ev, dict)?;
    ev.dict(entries)
}

pub(crate) fn empty(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [] = call.args else { return Ok(None) };
    ev.dict(Vec::new()).map(Some)
}

/// A dict of a list of pairs.
pub(crate) fn of_pairs(ev: &mut Evaluator<'_>, pairs: &Value) -> Step<Value> {
    let dict = ev.dict(Vec::new())?;
    for pair in ev.sequence(pairs).unwrap_or_default() {
        match ev.sequence(&pair).as_deref() {
            Some([key, value]) => ev.set_item(&dict, key, value.clone())?,
            _ => return crate::eval::expected("pairs of keys and values", &pair),
        }
    }
    Ok(dict)
}

pub(crate) fn set_item(
    ev: &mut Evaluator<'_>,
    dict: &Value,
    key: &Value,
    value: &Value,
) -> Step<Value> {
    ev.set_item(dict, key, value.clone())?;
    Ok(Value::None)
}

pub(crate) fn contains(ev: &mut Evaluator<'_>, dict: &Value, key: &Value) -> Step<Value> {
    Ok(find(ev, dict, key)?.is_some().into())
}

pub(crate) fn get(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let found = find(ev, &call.get(0), &call.get(1))?;
    Ok(found.map_or_else(|| call.get(2), |(_, value)| value))
}

pub(crate) fn set_default(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let [dict, key, default] = [0, 1, 2].map(|at| call.get(at));
    if let Some((_, value)) = find(ev, &dict, &key)? {
        return Ok(value);
    }
    ev.set_item(&dict, &key, default.clone())?;
    Ok(default)
}

pub(crate) fn pop(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [dict, key, rest @ ..] = call.args else { return Ok(None) };
    match (find(ev, dict, key)?, rest) {
        (Some((at, _)), _) => Ok(Some(ev.entries_mut(dict.dict()?)?.remove(at).1)),
        (None, [default, ..]) => Ok(Some(default.clone())),
        (None, []) => Err(no_key()),
    }
}

pub(crate) fn pop_item(ev: &mut Evaluator<'_>, dict: &Value) -> Step<Value> {
    let (key, value) = ev.entries_mut(dict.dict()?)?.pop().ok_or_else(no_key)?;
    Ok(Value::tuple(vec![key, value]))
}

pub(crate) fn clear(ev: &mut Evaluator<'_>, dict: &Value) -> Step<Value> {
    ev.entries_mut(dict.dict()?)?.clear();
    Ok(Value::None)
}

pub(crate) fn update(ev: &mut Evaluator<'_>, dict: &Value, other: &Value) -> Step<Value> {
    for (key, value) in ev.entries(other.dict()?).to_vec() {
        ev.set_item(dict, &key, value)?;
    }
    Ok(Value::None)
}
