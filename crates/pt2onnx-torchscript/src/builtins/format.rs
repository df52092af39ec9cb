//! The text of values, as PyTorch's interpreter writes it: with C++ streams, not as Python does.

use crate::{
    builtins::Call,
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
    /// A string or an unknown text; `None` for other values.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Str(text) => Some(Self { text: text.to_string(), exact: true }),
            Value::UnknownStr(text) => Some(Self { text: text.to_string(), exact: false }),
            _ => None,
        }
    }

    pub(crate) fn push(&mut self, other: &Self) {
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
        let unknown = |text: String| {
            room.exact.set(false);
            text
        };
        if room.depth == 0 || room.parts.get() == 0 {
            return unknown("...".to_owned());
        }
        room.parts.set(room.parts.get() - 1);
        let part = |v: &Value| self.text_within(v, &Room { depth: room.depth - 1, ..*room });
        let joined = |items: Vec<String>, count: usize| {
            let text = items.join(", ");
            if items.len() == count { text } else { unknown(text) }
        };
        let all = |items: &[Value]| joined(items.iter().take(64).map(part).collect(), items.len());
        match value {
            Value::Str(text) if room.depth == MAX_DEPTH || text.len() <= MAX_PART => {
                text.to_string()
            }
            Value::Str(text) => unknown(text.chars().take(MAX_PART).collect()),
            Value::UnknownStr(text) => unknown(text.to_string()),
            Value::Bool(e) => match e.as_int() {
                Some(b) => if b != 0 { "True" } else { "False" }.to_owned(),
                None => unknown(e.to_string()),
            },
            Value::Int(e) => match e.as_int() {
                Some(i) => i.to_string(),
                None => unknown(e.to_string()),
            },
            Value::Float(e) => match known(e) {
                // Its sign, which is shown, depends on the processor.
                Some(f) if f.is_nan() => unknown("nan".to_owned()),
                Some(f) => float(f),
                None => unknown(e.to_string()),
            },
            Value::Complex(re, im) if !re.is_nan() && !im.is_nan() => {
                let sign = if *im >= 0.0 { "+" } else { "" };
                format!("{}{sign}{}j", float(*re), float(*im))
            }
            Value::None => "None".to_owned(),
            Value::List(list) if self.dyn_list(*list).is_some() => unknown("[...]".to_owned()),
            Value::List(list) => format!("[{}]", all(self.items(*list))),
            Value::Dict(dict) => {
                let entries = self.entries(*dict);
                let entry = |(k, v): &(Value, Value)| format!("{}: {}", part(k), part(v));
                let shown = entries.iter().take(64).map(entry).collect();
                format!("{{{}}}", joined(shown, entries.len()))
            }
            Value::Tuple(tuple) => {
                let comma = if tuple.items.len() == 1 { "," } else { "" };
                format!("({}{comma})", all(&tuple.items))
            }
            Value::Device(device) => device.to_string(),
            Value::Enum(member) => {
                let class = member.class.rsplit('.').next().unwrap_or_default();
                format!("Enum<{class}.{}>", member.name)
            }
            Value::Object(object) => match self.state.heap.get(object.0) {
                Some(Item::Object { class, .. }) => unknown(class.name.clone()),
                _ => unknown(value.kind().to_owned()),
            },
            other => unknown(other.kind().to_owned()),
        }
    }

    /// `text.format(...)`.
    pub(crate) fn formatted(&mut self, text: &Text, args: &[Value]) -> Step<Value> {
        let mut made = Text { text: String::new(), exact: text.exact };
        let mut args = args.iter();
        for (at, part) in text.text.split("{}").enumerate() {
            if at > 0 {
                made.push(&self.text_of(args.next().ok_or_else(too_few)?));
            }
            made.text.push_str(part);
            self.steps(part.len())?;
        }
        Ok(made.value())
    }

    /// `text % args`. A tuple is several arguments.
    pub(crate) fn percent(&mut self, text: &Text, args: &[Value]) -> Step<Value> {
        let mut args = match args {
            [Value::Tuple(tuple)] => tuple.items.iter(),
            other => other.iter(),
        };
        let mut parts = text.text.split('%');
        let first = parts.next().unwrap_or_default().to_owned();
        let mut made = Text { text: first, exact: text.exact };
        while let Some(part) = parts.next() {
            let mut rest = part.chars();
            match rest.next() {
                // The text after `%%`.
                None => match parts.next() {
                    Some(part) => made.text.extend(["%", part]),
                    None => return raises("Incomplete format specifier"),
                },
                Some(specifier) => {
                    made.push(&self.specified(specifier, args.next().ok_or_else(too_few)?)?);
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
                Some(i) => char_of(i)?,
                None => return Ok(self.text_of(value)),
            },
            ('d' | 'i' | 'f' | 'F' | 'e' | 'E' | 'c', ..) => {
                return raises(&format!("`%{specifier}` of {}", value.kind()));
            }
            _ => {
                return raises(&format!(
                    "The specifier %{specifier} is not supported in TorchScript format strings"
                ));
            }
        };
        Ok(Text { text, exact: true })
    }
}

fn too_few() -> Problem {
    Problem::Raises("RuntimeError: Too few arguments for format string".to_owned())
}

/// `bin(i)`, `hex(i)` and `oct(i)`.
pub(crate) fn digits(call: Call<'_>) -> Step<Value> {
    let value = call.get(0);
    let e = value.integer()?;
    let Some(i) = e.as_int() else {
        return Ok(Value::UnknownStr(format!("{}({e})", call.name).into()));
    };
    let (sign, size) = (if i < 0 { "-" } else { "" }, i.unsigned_abs());
    Ok(Value::str(&match call.name {
        "bin" => format!("{sign}{size:#b}"),
        "hex" => format!("{sign}{size:#x}"),
        _ => format!("{sign}{size:#o}"),
    }))
}

/// `chr(i)`.
pub(crate) fn chr(value: &Value) -> Step<Value> {
    let e = value.integer()?;
    match e.as_int() {
        Some(i) if (0..0x0011_0000).contains(&i) => Ok(Value::str(&char_of(i)?)),
        Some(_) => raises("chr() arg not in range(0x110000)"),
        None => Ok(Value::UnknownStr(format!("chr({e})").into())),
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
