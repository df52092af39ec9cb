//! Conversions to another kind of value.

use crate::{
    builtins::Call,
    error::Problem,
    eval::{Evaluator, Step, expected},
    schema::Type,
    value::Value,
};

type Found = Step<Option<Value>>;

pub(crate) fn int(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [value] = call.args else { return Ok(None) };
    ev.as_whole(value).map(Some)
}

pub(crate) fn float(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [value] = call.args else { return Ok(None) };
    ev.real_of(value).map(Some)
}

pub(crate) fn bool(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [value] = call.args else { return Ok(None) };
    ev.truth_of(value).map(Some)
}

/// A tensor as the number that it holds.
pub(crate) fn scalar(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [value] = call.args else { return Ok(None) };
    ev.scalar_of(value, &Type::Number).map(Some)
}

pub(crate) fn complex(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [re, im] = call.args else { return Ok(None) };
    Ok(re.as_f64().zip(im.as_f64()).map(|(re, im)| Value::Complex(re, im)))
}

pub(crate) fn str(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [value] = call.args else { return Ok(None) };
    Ok(Some(ev.text_of(value).value()))
}

/// `hex`, `oct`, `bin` and `chr`.
pub(crate) fn digits(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [value] = call.args else { return Ok(None) };
    ev.digits(call.name, value)
}

/// Returns the argument.
pub(crate) fn same(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [value] = call.args else { return Ok(None) };
    Ok(Some(value.clone()))
}

/// The value of an optional that is there.
pub(crate) fn present(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    match call.args {
        [Value::Optional(optional)] => Ok(Some(optional.value.clone())),
        _ => Ok(None),
    }
}

/// A value that must not be None.
pub(crate) fn unwrap(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    match call.args {
        [Value::None] => Err(Problem::Raises("an exception: unwrapping None".to_owned())),
        _ => same(ev, call),
    }
}

pub(crate) fn empty_dict(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [] = call.args else { return Ok(None) };
    ev.dict(Vec::new()).map(Some)
}

/// A dict of a list of pairs.
pub(crate) fn dict_of_pairs(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [pairs] = call.args else { return Ok(None) };
    let dict = ev.dict(Vec::new())?;
    for pair in ev.sequence(pairs).unwrap_or_default() {
        match ev.sequence(&pair).as_deref() {
            Some([key, value]) => ev.set_item(&dict, key, value.clone())?,
            _ => return expected("pairs of keys and values", &pair),
        }
    }
    Ok(Some(dict))
}
