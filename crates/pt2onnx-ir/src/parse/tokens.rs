//! The tokens of the textual syntax.

use pt2onnx_symbolic::text::{Parsed, Reader};
use winnow::{
    combinator::{alt, delimited, preceded, repeat},
    prelude::*,
    token::{any, none_of, one_of, take_while},
};

fn identifier<'a>(input: &mut &'a str) -> winnow::Result<&'a str> {
    let first = one_of(|c: char| c.is_alphabetic() || c == '_');
    let others = take_while(0.., |c: char| c.is_alphanumeric() || c == '_' || c == '.');
    (first, others).take().parse_next(input)
}

/// A text in quotes. Escapes are those of ONNX's parser, and `\u{1b}`, which `pt2onnx show` prints
/// for characters that a terminal would obey.
fn string(input: &mut &str) -> winnow::Result<String> {
    let digits = take_while(1..=6, |c: char| c.is_ascii_hexdigit());
    let code = delimited("\\u{", digits, '}')
        .verify_map(|digits| char::from_u32(u32::from_str_radix(digits, 16).ok()?));
    let character = alt((none_of(['"', '\\']), code, preceded('\\', any)));
    delimited('"', repeat(0.., character), '"').parse_next(input)
}

/// Reads tokens. In errors, `what` says what is expected.
pub(super) trait Tokens<'a> {
    fn identifier(&mut self, what: &str) -> Parsed<&'a str>;

    fn sees_string(&mut self) -> bool;

    fn string(&mut self) -> Parsed<String>;

    /// A name: an identifier, or any text in quotes.
    fn name(&mut self, what: &str) -> Parsed<String>;

    /// A token that `parse` takes.
    fn number<T>(&mut self, what: &str, parse: impl FnOnce(&str) -> Option<T>) -> Parsed<T>;
}

impl<'a> Tokens<'a> for Reader<'a> {
    fn identifier(&mut self, what: &str) -> Parsed<&'a str> {
        self.lex(|rest| identifier(rest).ok()).ok_or_else(|| self.expected(what))
    }

    fn sees_string(&mut self) -> bool {
        self.sees("\"")
    }

    fn string(&mut self) -> Parsed<String> {
        self.lex(|rest| string(rest).ok()).ok_or_else(|| self.expected("a text in quotes"))
    }

    fn name(&mut self, what: &str) -> Parsed<String> {
        if self.sees_string() { self.string() } else { self.identifier(what).map(str::to_owned) }
    }

    fn number<T>(&mut self, what: &str, parse: impl FnOnce(&str) -> Option<T>) -> Parsed<T> {
        let place = self.place();
        let token = self.take_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        if token.is_empty() {
            return Err(self.expected(what));
        }
        parse(token)
            .ok_or_else(|| self.error_at(place, format!("expected {what}, found `{token}`")))
    }
}
