//! Runs methods of strings.

use crate::{
    interp::{Interp, Step},
    schema::Type,
    value::Value,
};

impl Interp<'_> {
    /// The result of an operator on a string; `None` if it is another operator.
    pub(super) fn on_text(
        &mut self,
        name: &str,
        text: &str,
        args: &[Value],
    ) -> Step<Option<Value>> {
        // Bytes are looked at faster than values.
        self.steps(text.len() / 16)?;
        let rest = args.get(1..).unwrap_or_default();
        let second = rest.first().and_then(Value::as_str);
        let count = |n: usize| Value::int(i64::try_from(n).unwrap_or(i64::MAX));
        let known =
            |fits: fn(char) -> bool| Value::bool(!text.is_empty() && text.chars().all(fits));
        Ok(Some(match (name, second) {
            ("format", _) => {
                let mut rest = rest.iter();
                let mut made = String::new();
                let mut parts = text.split("{}");
                made.push_str(parts.next().unwrap_or_default());
                for part in parts {
                    let value = rest.next().map(|v| self.text_of(v)).unwrap_or_default();
                    self.steps(value.len().saturating_add(part.len()))?;
                    made.push_str(&value);
                    made.push_str(part);
                }
                Value::str(&made)
            }
            ("percentFormat", _) => Value::str(text),
            ("len", _) => count(text.chars().count()),
            ("add", Some(other)) => {
                self.steps(text.len() + other.len())?;
                Value::str(&format!("{text}{other}"))
            }
            ("lt", Some(other)) => Value::bool(text < other),
            ("gt", Some(other)) => Value::bool(text > other),
            ("le", Some(other)) => Value::bool(text <= other),
            ("ge", Some(other)) => Value::bool(text >= other),
            ("__contains__" | "contains", Some(other)) => Value::bool(text.contains(other)),
            ("startswith", Some(other)) if rest.len() == 1 => Value::bool(text.starts_with(other)),
            ("endswith", Some(other)) if rest.len() == 1 => Value::bool(text.ends_with(other)),
            ("upper", _) => Value::str(&text.to_uppercase()),
            ("lower", _) => Value::str(&text.to_lowercase()),
            ("isdigit", _) => known(|c| c.is_ascii_digit()),
            ("isalpha", _) => known(char::is_alphabetic),
            ("strip", None) => Value::str(text.trim()),
            ("lstrip", None) => Value::str(text.trim_start()),
            ("rstrip", None) => Value::str(text.trim_end()),
            ("count", Some(other)) if rest.len() == 1 && !other.is_empty() => {
                count(text.matches(other).count())
            }
            ("find", Some(other)) => found(text, other, rest.get(1), rest.get(2)),
            ("replace", Some(from)) if !from.is_empty() => {
                let to = rest.get(1).and_then(Value::as_str).unwrap_or_default();
                self.steps(text.len().saturating_mul(to.len().max(1)))?;
                Value::str(&text.replace(from, to))
            }
            ("split", separator) => {
                self.room(text.len())?;
                let parts: Vec<Value> = match separator {
                    Some(separator) if !separator.is_empty() => {
                        text.split(separator).map(Value::str).collect()
                    }
                    _ => text.split_whitespace().map(Value::str).collect(),
                };
                self.list(parts, Some(Type::Str))?
            }
            ("join", _) => match rest.first().and_then(|list| self.sequence(list)) {
                Some(items) => {
                    let mut made = String::new();
                    for (at, item) in items.iter().enumerate() {
                        let item = self.text_of(item);
                        self.steps(item.len().saturating_add(text.len()))?;
                        made.push_str(if at > 0 { text } else { "" });
                        made.push_str(&item);
                    }
                    Value::str(&made)
                }
                None => return Ok(None),
            },
            ("ord", _) => match text.chars().next() {
                Some(c) => Value::int(i64::from(u32::from(c))),
                None => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }
}

/// Python's `find`: where a string begins between two places, which may count from the end; -1 if it is not there.
fn found(text: &str, other: &str, start: Option<&Value>, end: Option<&Value>) -> Value {
    let length = text.chars().count();
    // A negative place counts from `last`.
    let place = |given: Option<&Value>, last: usize, default: usize| {
        let from_end =
            |at: i64| last.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(last));
        match given.and_then(Value::as_int) {
            None => default,
            Some(at) if at < 0 => from_end(at),
            Some(at) => usize::try_from(at).unwrap_or(length).min(length),
        }
    };
    // The schema's default for the end, -1, is behind the last character.
    let (start, end) = (place(start, length, 0), place(end, length + 1, length));
    let within: String = text.chars().skip(start).take(end.saturating_sub(start)).collect();
    match within.find(other) {
        Some(at) => {
            let before = within.get(..at).unwrap_or_default().chars().count();
            Value::int(i64::try_from(start + before).unwrap_or(i64::MAX))
        }
        None => Value::int(-1),
    }
}
