//! Methods of dicts.

use crate::{
    builtins::Call,
    error::Problem,
    eval::{Evaluator, Step, expected},
    value::{Ref, Value},
};

type Found = Step<Option<Value>>;

/// The entries of the dict that a method is called of.
fn entries(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<(Ref, Vec<(Value, Value)>)> {
    let Some(Value::Dict(dict)) = call.args.first() else {
        return expected("a dict", &Value::None);
    };
    let entries = ev.entries(*dict).to_vec();
    ev.steps(entries.len())?;
    Ok((*dict, entries))
}

fn place(ev: &Evaluator<'_>, entries: &[(Value, Value)], key: &Value) -> Step<Option<usize>> {
    ev.place_of(entries.iter().map(|(key, _)| key), key)
}

fn no_key<T>() -> Step<T> {
    Err(Problem::Raises("KeyError".to_owned()))
}

pub(crate) fn len(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [_] = call.args else { return Ok(None) };
    let (_, entries) = entries(ev, call)?;
    Ok(Some(Value::int(i64::try_from(entries.len()).unwrap_or(i64::MAX))))
}

pub(crate) fn keys(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [_] = call.args else { return Ok(None) };
    let (_, entries) = entries(ev, call)?;
    ev.list(entries.into_iter().map(|(key, _)| key).collect(), None).map(Some)
}

pub(crate) fn values(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [_] = call.args else { return Ok(None) };
    let (_, entries) = entries(ev, call)?;
    ev.list(entries.into_iter().map(|(_, value)| value).collect(), None).map(Some)
}

pub(crate) fn items(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [_] = call.args else { return Ok(None) };
    let (_, entries) = entries(ev, call)?;
    let pairs = entries.into_iter().map(|(key, value)| Value::tuple(vec![key, value]));
    ev.list(pairs.collect(), None).map(Some)
}

pub(crate) fn copy(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [_] = call.args else { return Ok(None) };
    let (_, entries) = entries(ev, call)?;
    ev.dict(entries).map(Some)
}

pub(crate) fn get_item(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [dict, key] = call.args else { return Ok(None) };
    ev.get_item(dict, key).map(Some)
}

pub(crate) fn set_item(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [dict, key, value] = call.args else { return Ok(None) };
    ev.set_item(dict, key, value.clone())?;
    Ok(Some(Value::None))
}

pub(crate) fn contains(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [_, key] = call.args else { return Ok(None) };
    let (_, entries) = entries(ev, call)?;
    Ok(Some(Value::bool(place(ev, &entries, key)?.is_some())))
}

/// `get` and `setdefault`.
pub(crate) fn get(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [of, key, rest @ ..] = call.args else { return Ok(None) };
    let (_, entries) = entries(ev, call)?;
    if let Some((_, value)) = place(ev, &entries, key)?.and_then(|at| entries.get(at)) {
        return Ok(Some(value.clone()));
    }
    let default = rest.first().cloned().unwrap_or(Value::None);
    if call.name == "setdefault" {
        ev.set_item(of, key, default.clone())?;
    }
    Ok(Some(default))
}

pub(crate) fn pop(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [_, key, rest @ ..] = call.args else { return Ok(None) };
    let (dict, entries) = entries(ev, call)?;
    match (place(ev, &entries, key)?, rest) {
        (Some(at), _) => Ok(Some(ev.entries_mut(dict)?.remove(at).1)),
        (None, [default, ..]) => Ok(Some(default.clone())),
        (None, []) => no_key(),
    }
}

pub(crate) fn pop_item(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [Value::Dict(dict)] = call.args else { return Ok(None) };
    match ev.entries_mut(*dict)?.pop() {
        Some((key, value)) => Ok(Some(Value::tuple(vec![key, value]))),
        None => no_key(),
    }
}

pub(crate) fn clear(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [Value::Dict(dict)] = call.args else { return Ok(None) };
    ev.entries_mut(*dict)?.clear();
    Ok(Some(Value::None))
}

pub(crate) fn update(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [of, Value::Dict(other)] = call.args else { return Ok(None) };
    for (key, value) in ev.entries(*other).to_vec() {
        ev.set_item(of, &key, value)?;
    }
    Ok(Some(Value::None))
}
