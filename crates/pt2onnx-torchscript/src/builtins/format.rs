//! The text of values, as PyTorch's interpreter writes it: with C++ streams, not as Python does.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, unsupported},
    value::{Item, Value, known},
};
use std::cell::Cell;

/// How deeply the text of a value shows its parts.
const MAX_DEPTH: usize = 8;
/// The most characters of a string in the text of a list.
const MAX_PART: usize = 1000;

/// A text, and whether PyTorch has the same one. It has another one if a value in it is not known.
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) exact: bool,
}

impl Text {
    fn new() -> Self {
        Self { text: String::new(), exact: true }
    }

    fn push(&mut self, other: &Self) {
        self.text.push_str(&other.text);
        self.exact &= other.exact;
    }

    pub(crate) fn value(&self) -> Value {
        if self.exact {
            Value::str(&self.text)
        } else {
            Value::UnknownStr(self.text.as_str().into())
        }
    }
}

/// Where the text of a value is cut: how deeply it nests, and how many values it has.
struct Room<'r> {
    depth: usize,
    parts: &'r Cell<usize>,
    exact: &'r Cell<bool>,
}

impl Evaluator<'_> {
    /// `str(x)`.
    pub(crate) fn text_of(&self, value: &Value) -> Text {
        let (parts, exact) = (Cell::new(1000), Cell::new(true));
        let text =
            self.text_within(value, &Room { depth: MAX_DEPTH, parts: &parts, exact: &exact });
        self.state.work.set(self.state.work.get().saturating_add(text.len() as u64));
        Text { text, exact: exact.get() }
    }

    fn text_within(&self, value: &Value, room: &Room<'_>) -> String {
        let unknown_str = |text: String| {
            room.exact.set(false);
            text
        };
        if room.depth == 0 || room.parts.get() == 0 {
            return unknown_str("...".to_owned());
        }
        room.parts.set(room.parts.get() - 1);
        let part = |v: &Value| self.text_within(v, &Room { depth: room.depth - 1, ..*room });
        let all = |items: Vec<String>, count: usize| {
            if items.len() == count { items.join(", ") } else { unknown_str(items.join(", ")) }
        };
        match value {
            Value::UnknownStr(text) => unknown_str(text.to_string()),
            Value::Str(text) if room.depth == MAX_DEPTH || text.len() <= MAX_PART => {
                text.to_string()
            }
            Value::Str(text) => unknown_str(text.chars().take(MAX_PART).collect()),
            Value::Bool(e) => match e.as_int() {
                Some(b) => if b != 0 { "True" } else { "False" }.to_owned(),
                None => unknown_str(e.to_string()),
            },
            Value::Int(e) => match e.as_int() {
                Some(i) => i.to_string(),
                None => unknown_str(e.to_string()),
            },
            Value::Float(e) => match known(e) {
                // Its sign, which is shown, depends on the processor.
                Some(f) if f.is_nan() => unknown_str("nan".to_owned()),
                Some(f) => float(f),
                None => unknown_str(e.to_string()),
            },
            Value::Complex(re, im) if !re.is_nan() && !im.is_nan() => {
                let sign = if *im >= 0.0 { "+" } else { "" };
                format!("{}{sign}{}j", float(*re), float(*im))
            }
            Value::None => "None".to_owned(),
            Value::List(list) if self.dyn_list(*list).is_some() => unknown_str("[...]".to_owned()),
            Value::List(list) => {
                let items = self.items(*list);
                format!("[{}]", all(items.iter().take(64).map(part).collect(), items.len()))
            }
            Value::Dict(dict) => {
                let entries = self.entries(*dict);
                let entry = |(k, v): &(Value, Value)| format!("{}: {}", part(k), part(v));
                format!("{{{}}}", all(entries.iter().take(64).map(entry).collect(), entries.len()))
            }
            Value::Tuple(tuple) => {
                let items = all(tuple.items.iter().take(64).map(part).collect(), tuple.items.len());
                format!("({items}{})", if tuple.items.len() == 1 { "," } else { "" })
            }
            Value::Device(device) => device.to_string(),
            Value::Enum(member) => {
                let class = member.class.rsplit('.').next().unwrap_or_default();
                format!("Enum<{class}.{}>", member.name)
            }
            Value::Object(object) => match self.state.heap.get(object.0) {
                Some(Item::Object { class, .. }) => unknown_str(class.name.clone()),
                _ => unknown_str(value.kind().to_owned()),
            },
            other => unknown_str(other.kind().to_owned()),
        }
    }

    /// `text.format(...)`.
    pub(crate) fn formatted(&mut self, text: Text, args: &[Value]) -> Step<Value> {
        let mut made = Text { text: String::new(), exact: text.exact };
        let mut args = args.iter();
        for (at, part) in text.text.split("{}").enumerate() {
            if at > 0 {
                let Some(value) = args.next() else {
                    return raises("Too few arguments for format string");
                };
                made.push(&self.text_of(value));
            }
            made.text.push_str(part);
            self.steps(part.len())?;
        }
        Ok(made.value())
    }

    /// `text % args`. A tuple is several arguments.
    pub(crate) fn percent(&mut self, text: Text, args: &[Value]) -> Step<Value> {
        let args = match args {
            [Value::Tuple(tuple)] => &*tuple.items,
            other => other,
        };
        let mut args = args.iter();
        let mut parts = text.text.split('%');
        let mut made = Text { exact: text.exact, ..Text::new() };
        made.text.push_str(parts.next().unwrap_or_default());
        while let Some(part) = parts.next() {
            let mut rest = part.chars();
            match rest.next() {
                // The text after `%%`.
                None => match parts.next() {
                    Some(part) => made.text.extend(["%", part]),
                    None => return raises("Incomplete format specifier"),
                },
                Some(specifier) => {
                    let Some(value) = args.next() else {
                        return raises("Too few arguments for format string");
                    };
                    made.push(&self.specified(specifier, value)?);
                    made.text.push_str(rest.as_str());
                }
            }
            self.steps(part.len())?;
        }
        match args.next() {
            Some(_) => raises("Too many arguments for format string"),
            None => Ok(made.value()),
        }
    }

    /// One value in `text % args`.
    fn specified(&self, specifier: char, value: &Value) -> Step<Text> {
        let number = match value {
            Value::Int(e) | Value::Float(e) => Some(known(e)),
            _ => None,
        };
        let text = match (specifier, value, number) {
            ('s', ..) | ('d' | 'i', Value::Int(_), _) => return Ok(self.text_of(value)),
            // It is cast to an integer of 32 bits.
            ('d' | 'i', _, Some(Some(f))) if f.abs() < 2147483648.0 => (f as i32).to_string(),
            ('d' | 'i', _, Some(Some(_))) => {
                return unsupported("`%d` of a float that is no integer of 32 bits");
            }
            ('f' | 'F' | 'e' | 'E', _, Some(Some(f))) if !f.is_nan() => {
                // It is cast to a float of 32 bits.
                let f = f64::from(f as f32);
                let text = match specifier {
                    _ if !f.is_finite() => float(f),
                    'f' | 'F' => format!("{f:.6}"),
                    _ => scientific(&format!("{f:.6e}")),
                };
                if specifier == 'E' { text.to_uppercase() } else { text }
            }
            ('d' | 'i' | 'f' | 'F' | 'e' | 'E', _, Some(_)) => return Ok(self.text_of(value)),
            ('c', Value::Str(text), _) if text.len() == 1 => text.to_string(),
            ('c', Value::Int(e), _) => match e.as_int() {
                Some(i) => return Ok(Text { text: char_of(i)?, exact: true }),
                None => return Ok(self.text_of(value)),
            },
            ('d' | 'i' | 'f' | 'F' | 'e' | 'E' | 'c', ..) => {
                return raises(&format!("`%{specifier}` of {}", value.kind()));
            }
            _ => {
                let text = format!(
                    "The specifier %{specifier} is not supported in TorchScript format strings"
                );
                return raises(&text);
            }
        };
        Ok(Text { text, exact: true })
    }

    /// `hex(x)`, `oct(x)`, `bin(x)`, `chr(x)`; `None` if it is another function.
    pub(crate) fn digits(&mut self, name: &str, value: &Value) -> Step<Option<Value>> {
        let Value::Int(e) = value else { return Ok(None) };
        let Some(i) = e.as_int() else {
            let text = Text { text: format!("{name}({e})"), exact: false };
            return Ok(matches!(name, "hex" | "oct" | "bin" | "chr").then(|| text.value()));
        };
        let (sign, size) = (if i < 0 { "-" } else { "" }, i.unsigned_abs());
        Ok(Some(Value::str(&match name {
            "hex" => format!("{sign}{size:#x}"),
            "oct" => format!("{sign}{size:#o}"),
            "bin" => format!("{sign}{size:#b}"),
            "chr" if (0..0x0011_0000).contains(&i) => char_of(i)?,
            "chr" => return raises("chr() arg not in range(0x110000)"),
            _ => return Ok(None),
        })))
    }
}

/// The character whose only byte is the lowest one of a number.
fn char_of(i: i64) -> Step<String> {
    match u8::try_from(i & 0xff) {
        Ok(byte) if byte.is_ascii() => Ok(char::from(byte).to_string()),
        _ => unsupported("a byte that is no character of ASCII, in a string"),
    }
}

/// A float that is a number, as `IValue` writes it: integers with a point behind them, others with
/// 17 digits.
fn float(f: f64) -> String {
    if f.is_infinite() {
        return if f > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if f.trunc() == f && (-LIMIT..LIMIT).contains(&f) {
        return format!("{}.", f as i64);
    }
    let digits = format!("{f:.16e}");
    let (digits, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    match exponent {
        -4..17 => trimmed(&format!("{f:.*}", usize::try_from(16 - exponent).unwrap_or(0))),
        _ => scientific(&format!("{}e{exponent}", trimmed(digits))),
    }
}

/// Rust's `1.5e7` as C has it: `1.5e+07`.
fn scientific(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The problem that PyTorch raises an error.
pub(crate) fn raises<T>(text: &str) -> Step<T> {
    Err(Problem::Raises(format!("RuntimeError: {text}")))
}
