//! Splits a text into tokens, and makes errors with their places.

use super::error::ParseError;
use winnow::{
    ascii::{multispace1, till_line_ending},
    combinator::{alt, delimited, preceded, repeat},
    prelude::*,
    token::{any, none_of, one_of, take_while},
};

/// Deepest nesting of graphs and types.
const MAX_NESTING: u32 = 64;

/// A place in the text: the number of bytes before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(usize);

/// A text and how much of it has been read. White space and comments before a token are skipped.
pub(super) struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    depth: u32,
}

pub(super) type Parsed<T> = Result<T, ParseError>;

fn identifier<'a>(input: &mut &'a str) -> winnow::Result<&'a str> {
    let first = one_of(|c: char| c.is_alphabetic() || c == '_');
    let others = take_while(0.., |c: char| c.is_alphanumeric() || c == '_' || c == '.');
    (first, others).take().parse_next(input)
}

/// A token that may be a number; the caller parses it.
fn number<'a>(input: &mut &'a str) -> winnow::Result<&'a str> {
    take_while(1.., |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c)).parse_next(input)
}

/// Escapes are those of ONNX's parser, and `\u{1b}`, which `pt2onnx show` prints for characters that a terminal would obey.
fn string(input: &mut &str) -> winnow::Result<String> {
    let digits = take_while(1..=6, |c: char| c.is_ascii_hexdigit());
    let code = delimited("\\u{", digits, '}')
        .verify_map(|digits| char::from_u32(u32::from_str_radix(digits, 16).ok()?));
    let character = alt((none_of(['"', '\\']), code, preceded('\\', any)));
    delimited('"', repeat(0.., character), '"').parse_next(input)
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, rest: text, depth: 0 }
    }

    /// The place of the next token.
    pub fn place(&mut self) -> Place {
        self.space();
        Place(self.text.len() - self.rest.len())
    }

    pub fn error_at(&self, Place(offset): Place, what: impl Into<String>) -> ParseError {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = self.text.get(start..).and_then(|t| t.lines().next());
        ParseError {
            what: what.into(),
            line: before.matches('\n').count() + 1,
            column: before.get(start..).map_or(0, |t| t.chars().count()) + 1,
            source: line.unwrap_or_default().to_owned(),
        }
    }

    /// An error that says what is expected at the next token.
    pub fn expected(&mut self, what: &str) -> ParseError {
        let place = self.place();
        let found: String = self.rest.chars().take_while(|c| !c.is_whitespace()).take(20).collect();
        let found = match found.is_empty() {
            true => "the end of the text".to_owned(),
            false => format!("`{found}`"),
        };
        self.error_at(place, format!("expected {what}, found {found}"))
    }

    fn space(&mut self) {
        let comment = ('#', till_line_ending).void();
        let blank = alt((multispace1.void(), comment));
        let skipped: winnow::Result<()> = repeat(0.., blank).parse_next(&mut self.rest);
        debug_assert!(skipped.is_ok());
    }

    /// Skips white space and runs `lexer`. Reads nothing if it fails.
    fn lex<T>(&mut self, mut lexer: impl FnMut(&mut &'a str) -> winnow::Result<T>) -> Option<T> {
        self.space();
        let start = self.rest;
        let token = lexer(&mut self.rest).ok();
        if token.is_none() {
            self.rest = start;
        }
        token
    }

    /// Whether the text goes on with `token`.
    pub fn sees(&mut self, token: &str) -> bool {
        self.space();
        self.rest.starts_with(token)
    }

    /// Reads `token` if the text goes on with it; returns whether it did.
    pub fn accept(&mut self, token: &str) -> bool {
        let seen = self.sees(token);
        if seen {
            self.rest = self.rest.get(token.len()..).unwrap_or_default();
        }
        seen
    }

    /// Reads `token`, which must come next.
    pub fn require(&mut self, token: &str) -> Parsed<()> {
        match self.accept(token) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{token}`"))),
        }
    }

    pub fn at_end(&mut self) -> bool {
        self.space();
        self.rest.is_empty()
    }

    pub fn identifier(&mut self, what: &str) -> Parsed<&'a str> {
        self.lex(identifier).ok_or_else(|| self.expected(what))
    }

    /// Runs `read`. Reads nothing if it returns `None`.
    pub fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let start = self.rest;
        let found = read(self);
        if found.is_none() {
            self.rest = start;
        }
        found
    }

    /// Runs `read` and goes back to where it started.
    pub fn peek<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let start = self.rest;
        let seen = read(self);
        self.rest = start;
        seen
    }

    pub fn sees_string(&mut self) -> bool {
        self.sees("\"")
    }

    pub fn string(&mut self) -> Parsed<String> {
        self.lex(string).ok_or_else(|| self.expected("a text in quotes"))
    }

    /// A name: an identifier, or any text in quotes.
    pub fn name(&mut self, what: &str) -> Parsed<String> {
        match self.sees_string() {
            true => self.string(),
            false => self.identifier(what).map(str::to_owned),
        }
    }

    /// A token that `parse` takes; `what` is for the error.
    pub fn number<T>(&mut self, what: &str, parse: impl FnOnce(&str) -> Option<T>) -> Parsed<T> {
        let place = self.place();
        let token = self.lex(number).ok_or_else(|| self.expected(what))?;
        parse(token)
            .ok_or_else(|| self.error_at(place, format!("expected {what}, found `{token}`")))
    }

    /// Items with commas between them, up to `close`.
    pub fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while self.goes_on(close, items.is_empty())? {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Whether another item of a list follows. Reads the comma before it, or `close`.
    pub fn goes_on(&mut self, close: &str, first: bool) -> Parsed<bool> {
        if self.accept(close) {
            return Ok(false);
        }
        if !first && !self.accept(",") {
            return Err(self.expected(&format!("`,` or `{close}`")));
        }
        Ok(true)
    }

    /// Goes one level deeper into nested graphs or types; an error if that is too deep.
    pub fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        match self.depth > MAX_NESTING {
            true => {
                let place = self.place();
                Err(self.error_at(place, format!("nested more than {MAX_NESTING} levels deep")))
            }
            false => Ok(()),
        }
    }

    /// Goes one level back.
    pub fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}
