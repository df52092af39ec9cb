//! Methods of strings. As in C++, they count bytes, and know the letters of ASCII only.

use crate::{
    builtins::{
        Call, bytes,
        format::{Text, raises},
    },
    eval::{Evaluator, Step, expected, expr, unsupported},
    schema::Type,
    value::Value,
};
use memchr::memmem;

fn list_of(ev: &mut Evaluator<'_>, parts: Vec<&[u8]>) -> Step<Value> {
    let parts = parts.into_iter().map(of_bytes).collect::<Step<Vec<Value>>>()?;
    ev.list(parts, Some(Type::Str))
}

/// A string or an unknown text, to be joined.
fn part(value: &Value) -> Step<Text> {
    Text::of(value).map_or_else(|| expected("strings", value), Ok)
}

pub(crate) fn add(ev: &mut Evaluator<'_>, text: &Value, other: &Value) -> Step<Value> {
    let (mut text, other) = (part(text)?, part(other)?);
    ev.steps(text.text.len() + other.text.len())?;
    text.push(&other);
    Ok(text.value())
}

pub(crate) fn join(ev: &mut Evaluator<'_>, separator: &Value, list: &Value) -> Step<Value> {
    let separator = part(separator)?;
    let mut made = Text { text: String::new(), exact: separator.exact };
    let items = ev.sequence(list).map_or_else(|| expected("a list", list), Ok)?;
    for (at, item) in items.iter().enumerate() {
        let item = part(item)?;
        ev.steps(item.text.len().saturating_add(separator.text.len()))?;
        made.text.push_str(if at > 0 { &separator.text } else { "" });
        made.push(&item);
    }
    Ok(made.value())
}

/// `text.format(...)` and `text % ...`, as `format` fills the text.
pub(crate) fn formatted(
    call: Call<'_>,
    format: impl FnOnce(&Text, &[Value]) -> Step<Value>,
) -> Step<Value> {
    match call.args {
        [text, args @ ..] => format(&part(text)?, args),
        [] => expected("a string", &Value::None),
    }
}

pub(crate) fn ord(text: &Value) -> Step<Value> {
    match bytes(text)? {
        [only] => Ok(i64::from(*only).into()),
        _ => raises("String for ord() must be 1 character"),
    }
}

pub(crate) fn contains(text: &Value, other: &Value) -> Step<Value> {
    Ok(find(bytes(text)?, bytes(other)?, false).is_some().into())
}

/// `strip` and its kin, from the left, the right or both.
pub(crate) fn strip(call: Call<'_>) -> Step<Value> {
    let (left, right) = (call.name != "rstrip", call.name != "lstrip");
    let (mut text, chars) = (call.bytes(0, "")?, call.bytes(1, " \n\t\x0c\x0b")?);
    while let [first, rest @ ..] = text
        && left
        && chars.contains(first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && right
        && chars.contains(last)
    {
        text = rest;
    }
    of_bytes(text)
}

/// `center`, `ljust`, `rjust` and `zfill`: a string of at least some width.
pub(crate) fn justified(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let text = call.bytes(0, "")?;
    let width = usize::try_from(call.int(1, 0)?).unwrap_or(0);
    ev.room(width)?;
    let &[fill] = call.bytes(2, if call.name == "zfill" { "0" } else { " " })? else {
        return raises("TypeError: the fill character must be exactly one character long");
    };
    let missing = width.saturating_sub(text.len());
    let before = match call.name {
        "ljust" => 0,
        "center" => missing / 2 + (missing & width & 1),
        _ => missing,
    };
    of_bytes(&[&vec![fill; before], text, &vec![fill; missing - before]].concat())
}

/// `expandtabs`: spaces up to the next multiple of a width. A new line is one more column.
pub(crate) fn expand_tabs(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let text = call.bytes(0, "")?;
    let size = usize::try_from(call.int(1, 8)?).unwrap_or(0);
    let tabs = text.iter().filter(|c| **c == b'\t').count();
    ev.room(tabs.saturating_mul(size))?;
    let (mut made, mut column) = (Vec::with_capacity(text.len()), 0);
    for c in text {
        match (c, size) {
            (b'\t', 0) => {}
            (b'\t', _) => {
                made.resize(made.len() + size - column % size, b' ');
                column = 0;
            }
            _ => {
                made.push(*c);
                column += 1;
            }
        }
    }
    of_bytes(&made)
}

/// `replace`. An empty string is found before the text, again and again.
pub(crate) fn replace(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let (text, old, new) = (call.bytes(0, "")?, call.bytes(1, "")?, call.bytes(2, "")?);
    let most = usize::try_from(call.int(3, -1)?).ok();
    let found = match (old, most) {
        ([], None) => return raises("std::bad_alloc"),
        ([], Some(most)) => most,
        _ => text.len() / old.len(),
    };
    ev.room(found.saturating_mul(new.len()).saturating_add(text.len()))?;
    of_bytes(&match old {
        [] => [&new.repeat(found), text].concat(),
        _ => parts(text, old, most.unwrap_or(usize::MAX), false).join(new),
    })
}

pub(crate) fn slice(call: Call<'_>) -> Step<Value> {
    let text = call.bytes(0, "")?;
    let known = |at: usize| match call.get(at) {
        Value::None => Ok(None),
        other => other.known_int().map(Some),
    };
    let at = expr::positions(text.len(), known(1)?, known(2)?, known(3)?.unwrap_or(1))?;
    of_bytes(&at.into_iter().filter_map(|at| text.get(at).copied()).collect::<Vec<u8>>())
}

pub(crate) fn get_item(text: &Value, index: &Value) -> Step<Value> {
    let text = bytes(text)?;
    let at = expr::position(index, text.len())?;
    of_bytes(text.get(at..=at).unwrap_or_default())
}

/// Characters that are not ASCII are not known as white space.
fn ascii(call: Call<'_>) -> Step<&[u8]> {
    let text = call.bytes(0, "")?;
    if text.is_ascii() {
        return Ok(text);
    }
    unsupported(format!("`{}` of a string with characters that are not ASCII", call.name))
}

/// `split` and `rsplit`, between words or at a separator.
pub(crate) fn split(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let (text, last) = (call.bytes(0, "")?, call.name == "rsplit");
    ev.room(text.len())?;
    if !last && matches!(call.get(1), Value::None) {
        // PyTorch ignores how many are asked for.
        let blank = |c: &u8| is_space(c) || (0x1c..=0x1e).contains(c);
        let words = ascii(call)?.split(blank).filter(|word| !word.is_empty());
        return list_of(ev, words.collect());
    }
    let most = usize::try_from(call.int(2, -1)?).unwrap_or(usize::MAX);
    match call.bytes(1, " ")? {
        [] => raises("ValueError: empty separator"),
        separator => list_of(ev, parts(text, separator, most, last)),
    }
}

/// The lines; their ends, if they are kept, are separate parts.
pub(crate) fn lines(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let (mut rest, keep) = (ascii(call)?, call.bool(1)?);
    ev.room(rest.len())?;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|c| b"\n\r\x0b\x0c\x1c\x1d\x1e".contains(c));
        let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(line);
        let (end, after) = after.split_at(after.len().min(1));
        if keep && !end.is_empty() {
            parts.push(end);
        }
        rest = after;
    }
    list_of(ev, parts)
}

pub(crate) fn chars(ev: &mut Evaluator<'_>, text: &Value) -> Step<Value> {
    let text = bytes(text)?;
    ev.room(text.len())?;
    list_of(ev, text.chunks(1).collect())
}

/// The text before the first or last separator, the separator, and the text after it.
pub(crate) fn partition(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let (text, separator) = (call.bytes(0, "")?, call.bytes(1, "")?);
    let last = call.name == "rpartition";
    ev.room(text.len())?;
    let parts = match find(text, separator, last) {
        Some(at) => [&text[..at], separator, &text[at + separator.len()..]],
        None if last => [b"", b"", text],
        None => [text, b"", b""],
    };
    let parts = parts.into_iter().map(of_bytes).collect::<Step<Vec<Value>>>()?;
    ev.tuple(parts, None)
}

/// A string that is looked for in a text, from a start to an end.
pub(crate) struct Search<'c> {
    name: &'c str,
    text: &'c [u8],
    other: &'c [u8],
    start: i64,
    end: i64,
}

impl<'c> Search<'c> {
    pub(crate) fn of(call: Call<'c>) -> Step<Self> {
        let (text, other) = (call.bytes(0, "")?, call.bytes(1, "")?);
        let size = i64::try_from(text.len()).unwrap_or(i64::MAX);
        // The end -1 is behind the last character.
        let from_end = |at: i64, end: i64| if at < 0 { at.saturating_add(end).max(0) } else { at };
        let start = from_end(call.int(2, 0)?, size);
        let end = from_end(call.int(3, -1)?, size.saturating_add(1));
        Ok(Self { name: call.name, text, other, start, end })
    }

    /// The substring of C++ between two places.
    fn between(&self, from: usize, to: usize) -> Step<&'c [u8]> {
        match self.text.get(from..to.min(self.text.len()).max(from)) {
            Some(within) => Ok(within),
            None => raises("basic_string::substr: __pos > this->size()"),
        }
    }

    fn bounds(&self) -> (usize, usize) {
        let [start, end] =
            [self.start, self.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        (start, end)
    }

    pub(crate) fn starts_or_ends(&self) -> Step<Value> {
        let (from, to) = self.bounds();
        let within = self.between(from, if to < from { usize::MAX } else { to })?;
        let starts = self.name == "startswith";
        let test = if starts { <[u8]>::starts_with } else { <[u8]>::ends_with };
        Ok(test(within, self.other).into())
    }

    /// The first or last place, or -1.
    pub(crate) fn find(&self) -> Step<i64> {
        let ((from, to), last) = (self.bounds(), self.name.starts_with('r'));
        let found = if self.end > self.start {
            find(self.between(from, to)?, self.other, last).map(|at| at + from)
        } else {
            self.other.is_empty().then_some(from)
        };
        Ok(found.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX)))
    }

    pub(crate) fn index(&self) -> Step<i64> {
        match self.find()? {
            -1 => raises("ValueError: substring not found"),
            at => Ok(at),
        }
    }

    pub(crate) fn count(&self) -> Step<usize> {
        if self.other.is_empty() {
            return unsupported("`count` of an empty string (PyTorch never ends)");
        }
        let (mut at, to) = self.bounds();
        let mut count = 0;
        while at < to {
            match self.text.get(at..).and_then(|text| find(text, self.other, false)) {
                Some(more) if at + more < to => at += more + self.other.len(),
                _ => break,
            }
            count += 1;
        }
        Ok(count)
    }
}

/// Where a string begins in a text.
fn find(text: &[u8], other: &[u8], last: bool) -> Option<usize> {
    if last { memmem::rfind(text, other) } else { memmem::find(text, other) }
}

/// The parts between the first or last few separators.
fn parts<'t>(text: &'t [u8], separator: &[u8], most: usize, last: bool) -> Vec<&'t [u8]> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while parts.len() < most
        && let Some(at) = find(rest, separator, last)
    {
        let (before, after) = rest.split_at(at);
        let after = after.get(separator.len()..).unwrap_or_default();
        parts.push(if last { after } else { before });
        rest = if last { before } else { after };
    }
    parts.push(rest);
    if last {
        parts.reverse();
    }
    parts
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
