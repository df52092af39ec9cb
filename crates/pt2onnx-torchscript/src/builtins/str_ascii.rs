//! Methods of strings that take nothing but the string. As in C++, they know the letters of ASCII
//! only, and count bytes.

use crate::{
    eval::{Step, arith, expected, unsupported},
    value::Value,
};

/// The bytes of a string that is known.
pub(crate) fn bytes(value: &Value) -> Step<&[u8]> {
    match value {
        Value::Str(text) => Ok(text.as_bytes()),
        Value::UnknownStr(_) => arith::unknown_str(),
        other => expected("a string", other),
    }
}

/// A string of these bytes.
pub(crate) fn of_bytes(bytes: &[u8]) -> Step<Value> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(_) => unsupported("a part of a character that is not ASCII (strings count bytes)"),
    }
}

/// Whether there are characters, and all of them fit.
pub(crate) fn all(text: &Value, fits: fn(&u8) -> bool) -> Step<Value> {
    let text = bytes(text)?;
    Ok((!text.is_empty() && text.iter().all(fits)).into())
}

/// Whether there are letters, and all of them fit.
pub(crate) fn cased(text: &Value, fits: fn(&u8) -> bool) -> Step<Value> {
    let text = bytes(text)?;
    let mut letters = text.iter().filter(|c| c.is_ascii_alphabetic()).peekable();
    Ok((letters.peek().is_some() && letters.all(fits)).into())
}

pub(crate) fn is_printable(text: &Value) -> Step<Value> {
    Ok(bytes(text)?.iter().all(|c| c.is_ascii_graphic() || *c == b' ').into())
}

/// PyTorch knows no underscore here.
pub(crate) fn is_identifier(text: &Value) -> Step<Value> {
    let first = bytes(text)?.first().is_some_and(u8::is_ascii_digit);
    if first { Ok(false.into()) } else { all(text, u8::is_ascii_alphanumeric) }
}

/// Whether words begin with a capital letter, and have no others.
pub(crate) fn is_title(text: &Value) -> Step<Value> {
    let (mut within, mut found) = (false, false);
    for c in bytes(text)? {
        let letter = c.is_ascii_alphabetic();
        if letter && c.is_ascii_uppercase() == within {
            return Ok(false.into());
        }
        (within, found) = (letter, found || letter);
    }
    Ok(found.into())
}

/// C's `isspace`.
pub(crate) fn is_space(c: &u8) -> bool {
    matches!(c, b' ' | b'\t'..=b'\r')
}

/// Each character changed. `change` also gets the one before.
pub(crate) fn mapped(text: &Value, change: fn(Option<u8>, u8) -> u8) -> Step<Value> {
    let text = bytes(text)?;
    let before = std::iter::once(None).chain(text.iter().copied().map(Some));
    of_bytes(&before.zip(text).map(|(before, c)| change(before, *c)).collect::<Vec<u8>>())
}

pub(crate) fn swap_case(_: Option<u8>, c: u8) -> u8 {
    if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
}

pub(crate) fn capitalize(before: Option<u8>, c: u8) -> u8 {
    if before.is_none() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
}

pub(crate) fn title(before: Option<u8>, c: u8) -> u8 {
    let within = before.is_some_and(|before| before.is_ascii_alphabetic());
    if within { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() }
}
