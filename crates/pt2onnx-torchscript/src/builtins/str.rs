//! Runs methods of strings. PyTorch's interpreter counts bytes, not characters.

use crate::{
    builtins::{
        format::{Text, raises},
        str_ascii::{self, is_space},
    },
    eval::{Evaluator, Step, expected, unsupported},
    schema::Type,
    value::Value,
};
use memchr::memmem;

/// A string or an unknown text, to be joined.
fn part(value: &Value) -> Option<Text> {
    let (text, exact) = match value {
        Value::Str(text) => (text, true),
        Value::UnknownStr(text) => (text, false),
        _ => return None,
    };
    Some(Text { text: text.to_string(), exact })
}

/// The arguments of a method, after the string.
struct Rest<'v>(&'v [Value]);

impl<'v> Rest<'v> {
    fn int(&self, at: usize, default: i64) -> Step<i64> {
        match self.0.get(at) {
            None => Ok(default),
            Some(value) => value.as_int().map_or_else(|| expected("a known integer", value), Ok),
        }
    }

    fn bytes(&self, at: usize, default: &'static str) -> Step<&'v [u8]> {
        match self.0.get(at) {
            None => Ok(default.as_bytes()),
            Some(value) => value
                .as_str()
                .map_or_else(|| expected("a string", value), |text| Ok(text.as_bytes())),
        }
    }

    fn bool(&self, at: usize) -> Step<bool> {
        match self.0.get(at) {
            None => Ok(false),
            Some(value) => {
                value.as_bool().map_or_else(|| expected("a known truth value", value), Ok)
            }
        }
    }
}

impl Evaluator<'_> {
    /// The result of an operator on a string; `None` if it is another operator.
    pub(crate) fn on_text(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        let Some((text, rest)) = args.split_first().and_then(|(v, rest)| Some((part(v)?, rest)))
        else {
            return Ok(None);
        };
        // Bytes are looked at faster than values.
        self.steps(text.text.len() / 16)?;
        match (name, rest) {
            ("format", _) => return self.formatted(text, rest).map(Some),
            ("percentFormat", _) => return self.percent(text, rest).map(Some),
            ("add" | "add_", [other]) => {
                let Some(other) = part(other) else { return Ok(None) };
                self.steps(text.text.len() + other.text.len())?;
                let exact = text.exact && other.exact;
                return Ok(Some(Text { text: text.text + &other.text, exact }.value()));
            }
            ("join", [list]) => return self.join_texts(&text, list),
            _ => {}
        }
        let [Value::Str(text), ..] = args else { return Ok(None) };
        let text = text.clone();
        let bytes = text.as_bytes();
        if let ([], Some(truth)) = (rest, str_ascii::test(name, bytes)) {
            return Ok(Some(Value::bool(truth)));
        }
        if let ([], Some(made)) = (rest, str_ascii::changed(name, bytes)) {
            return of_bytes(&made).map(Some);
        }
        let rest = Rest(rest);
        if let Some(value) = searched(name, bytes, &rest)? {
            return Ok(Some(value));
        }
        if let Some(value) = self.filled(name, bytes, &rest)? {
            return Ok(Some(value));
        }
        self.divided(name, bytes, &rest)
    }

    fn join_texts(&mut self, text: &Text, list: &Value) -> Step<Option<Value>> {
        let Some(items) = self.sequence(list) else { return Ok(None) };
        let mut made = Text { text: String::new(), exact: text.exact };
        for (at, item) in items.iter().enumerate() {
            let Some(item) = part(item) else { return expected("strings", item) };
            self.steps(item.text.len().saturating_add(text.text.len()))?;
            made.text.push_str(if at > 0 { &text.text } else { "" });
            made.text.push_str(&item.text);
            made.exact &= item.exact;
        }
        Ok(Some(made.value()))
    }

    /// Methods that take out or put in characters.
    fn filled(&mut self, name: &str, text: &[u8], rest: &Rest<'_>) -> Step<Option<Value>> {
        let made = match name {
            "strip" | "lstrip" | "rstrip" => {
                let chars = rest.bytes(0, " \n\t\x0c\x0b")?;
                let other = |c: &u8| !chars.contains(c);
                let first = if name == "rstrip" { Some(0) } else { text.iter().position(other) };
                let last = match name {
                    "lstrip" => Some(text.len()),
                    _ => text.iter().rposition(other).map(|at| at + 1),
                };
                let kept = first.zip(last).and_then(|(first, last)| text.get(first..last));
                kept.unwrap_or_default().to_vec()
            }
            "center" | "ljust" | "rjust" | "zfill" => self.justified(name, text, rest)?,
            "expandtabs" => self.without_tabs(text, rest)?,
            "replace" => self.replaced(text, rest)?,
            "slice" => {
                let known = |at: usize| match rest.0.get(at) {
                    None | Some(Value::None) => Ok(None),
                    Some(_) => rest.int(at, 0).map(Some),
                };
                let step = known(2)?.unwrap_or(1);
                let at = crate::eval::expr::positions(text.len(), known(0)?, known(1)?, step)?;
                at.into_iter().filter_map(|at| text.get(at).copied()).collect()
            }
            "__getitem__" => {
                let [index] = rest.0 else { return Ok(None) };
                let at = crate::eval::expr::position(index, text.len())?;
                text.get(at).map_or_else(Vec::new, |c| vec![*c])
            }
            _ => return Ok(None),
        };
        of_bytes(&made).map(Some)
    }

    /// `center`, `ljust`, `rjust` and `zfill`: a string of at least some width.
    fn justified(&mut self, name: &str, text: &[u8], rest: &Rest<'_>) -> Step<Vec<u8>> {
        let width = usize::try_from(rest.int(0, 0)?).unwrap_or(0);
        self.room(width)?;
        let fill = rest.bytes(1, if name == "zfill" { "0" } else { " " })?;
        let [fill] = fill else {
            return raises("TypeError: the fill character must be exactly one character long");
        };
        let missing = width.saturating_sub(text.len());
        let before = match name {
            "ljust" => 0,
            "center" => missing / 2 + (missing & width & 1),
            _ => missing,
        };
        let fill = |count| vec![*fill; count];
        Ok([&fill(before), text, &fill(missing - before)].concat())
    }

    /// `expandtabs`: spaces up to the next multiple of a width. A new line is one more column.
    fn without_tabs(&mut self, text: &[u8], rest: &Rest<'_>) -> Step<Vec<u8>> {
        let size = usize::try_from(rest.int(0, 8)?).unwrap_or(0);
        let tabs = text.iter().filter(|c| **c == b'\t').count();
        self.room(tabs.saturating_mul(size))?;
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
        Ok(made)
    }

    /// `replace`. An empty string is found before the text, again and again.
    fn replaced(&mut self, text: &[u8], rest: &Rest<'_>) -> Step<Vec<u8>> {
        let (old, new) = (rest.bytes(0, "")?, rest.bytes(1, "")?);
        let most = usize::try_from(rest.int(2, -1)?).ok();
        let found = match (old, most) {
            ([], None) => return raises("std::bad_alloc"),
            ([], Some(most)) => most,
            _ => text.len() / old.len(),
        };
        self.room(found.saturating_mul(new.len()).saturating_add(text.len()))?;
        if old.is_empty() {
            return Ok([&new.repeat(found), text].concat());
        }
        let parts = split(text, old, most.unwrap_or(usize::MAX), false);
        Ok(parts.join(new))
    }

    /// Methods that divide the string.
    fn divided(&mut self, name: &str, text: &[u8], rest: &Rest<'_>) -> Step<Option<Value>> {
        self.room(text.len())?;
        let most = || Ok(usize::try_from(rest.int(1, -1)?).unwrap_or(usize::MAX));
        let blank = match name {
            "split" => matches!(rest.0.first(), None | Some(Value::None)),
            other => other == "splitlines",
        };
        if blank && !text.is_ascii() {
            let text = format!("`{name}` of a string with characters that are not ASCII");
            return unsupported(text);
        }
        let parts: Vec<&[u8]> = match name {
            "split" if blank => words(text),
            "split" | "rsplit" => match rest.bytes(0, " ")? {
                [] => return raises("ValueError: empty separator"),
                separator => split(text, separator, most()?, name == "rsplit"),
            },
            "splitlines" => lines(text, rest.bool(0)?),
            "list" => text.chunks(1).collect(),
            "partition" | "rpartition" => {
                let separator = rest.bytes(0, "")?;
                let last = name == "rpartition";
                let [before, separator, after] = match find(text, separator, last) {
                    Some(at) => {
                        let (before, after) = text.split_at(at);
                        let (separator, after) = after.split_at(separator.len());
                        [before, separator, after]
                    }
                    None if last => [b"", b"", text],
                    None => [text, b"", b""],
                };
                let parts = [before, separator, after].map(of_bytes);
                let parts = parts.into_iter().collect::<Step<Vec<Value>>>()?;
                return self.tuple(parts, None).map(Some);
            }
            _ => return Ok(None),
        };
        let parts = parts.into_iter().map(of_bytes).collect::<Step<Vec<Value>>>()?;
        self.list(parts, Some(Type::Str)).map(Some)
    }
}

/// A string of these bytes.
fn of_bytes(bytes: &[u8]) -> Step<Value> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Value::str(text)),
        Err(_) => unsupported("a part of a character that is not ASCII (strings count bytes)"),
    }
}

/// Methods that look for a string, or compare.
fn searched(name: &str, text: &[u8], rest: &Rest<'_>) -> Step<Option<Value>> {
    match (name, text) {
        ("len", _) => return Ok(Some(number(text.len()))),
        ("ord", [only]) => return Ok(Some(Value::int(i64::from(*only)))),
        ("ord", _) => return raises("String for ord() must be 1 character"),
        _ => {}
    }
    let Some(Value::Str(_)) = rest.0.first() else { return Ok(None) };
    let other = rest.bytes(0, "")?;
    Ok(Some(match name {
        "lt" => Value::bool(text < other),
        "gt" => Value::bool(text > other),
        "le" => Value::bool(text <= other),
        "ge" => Value::bool(text >= other),
        "__contains__" | "contains" => Value::bool(find(text, other, false).is_some()),
        "startswith" | "endswith" | "find" | "rfind" | "index" | "rindex" | "count" => {
            searched_from(name, text, other, rest)?
        }
        _ => return Ok(None),
    }))
}

/// Methods that look for a string from a start to an end, which `rest` may have.
fn searched_from(name: &str, text: &[u8], other: &[u8], rest: &Rest<'_>) -> Step<Value> {
    let size = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let (start, end) = (rest.int(1, 0)?, rest.int(2, -1)?);
    // The end -1 is behind the last character.
    let start = if start < 0 { size.saturating_add(start).max(0) } else { start };
    let end = if end < 0 { size.saturating_add(end).saturating_add(1).max(0) } else { end };
    let [from, to] = [start, end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    let within = || between(text, from, if to < from { usize::MAX } else { to });
    Ok(match name {
        "count" => number(counted(text, other, from, to)?),
        "startswith" => Value::bool(within()?.starts_with(other)),
        "endswith" => Value::bool(within()?.ends_with(other)),
        _ => {
            let last = name.starts_with('r');
            let found = if end > start {
                find(between(text, from, to)?, other, last).map(|at| at + from)
            } else {
                other.is_empty().then_some(from)
            };
            match found {
                Some(at) => number(at),
                None if name.ends_with("index") => {
                    return raises("ValueError: substring not found");
                }
                None => Value::int(-1),
            }
        }
    })
}

fn number(n: usize) -> Value {
    Value::int(i64::try_from(n).unwrap_or(i64::MAX))
}

/// The substring of C++ between two places.
fn between(text: &[u8], from: usize, to: usize) -> Step<&[u8]> {
    match text.get(from..to.min(text.len()).max(from)) {
        Some(within) => Ok(within),
        None => raises("basic_string::substr: __pos > this->size()"),
    }
}

fn counted(text: &[u8], other: &[u8], from: usize, to: usize) -> Step<usize> {
    if other.is_empty() {
        return unsupported("`count` of an empty string (PyTorch never ends)");
    }
    let (mut count, mut at) = (0, from);
    while at < to {
        match text.get(at..).and_then(|text| find(text, other, false)) {
            Some(more) if at + more < to => at += more + other.len(),
            _ => break,
        }
        count += 1;
    }
    Ok(count)
}

/// Where a string begins in a text.
fn find(text: &[u8], other: &[u8], last: bool) -> Option<usize> {
    if last { memmem::rfind(text, other) } else { memmem::find(text, other) }
}

/// The parts between the first or last few separators.
fn split<'t>(text: &'t [u8], separator: &[u8], most: usize, last: bool) -> Vec<&'t [u8]> {
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

/// The words between white space. PyTorch ignores how many are asked for.
fn words(text: &[u8]) -> Vec<&[u8]> {
    let blank = |c: &u8| is_space(c) || (0x1c..=0x1e).contains(c);
    text.split(blank).filter(|word| !word.is_empty()).collect()
}

/// The lines; their ends, if they are kept, are separate parts.
fn lines(text: &[u8], keep: bool) -> Vec<&[u8]> {
    let (mut parts, mut rest) = (Vec::new(), text);
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
    parts
}
