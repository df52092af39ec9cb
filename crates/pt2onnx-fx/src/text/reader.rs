//! Tokens of the text, and places in it for messages.

use super::error::ParseError;
use pt2onnx_symbolic::Expr;
use winnow::{
    ascii::{digit0, digit1, multispace1, till_line_ending},
    combinator::{alt, delimited, opt, preceded, repeat},
    prelude::*,
    token::{any, none_of, one_of, take_till, take_while},
};

/// Deepest nesting of graphs and lists.
const MAX_NESTING: u32 = 64;

/// A place in the text, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(usize);

pub(super) type Parsed<T> = Result<T, ParseError>;

/// A word: plain, or anything in backquotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    Plain(&'a str),
    Quoted(&'a str),
}

impl<'a> Word<'a> {
    pub(super) fn text(self) -> &'a str {
        match self {
            Word::Plain(text) | Word::Quoted(text) => text,
        }
    }
}

/// A number as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
    Imaginary(f64),
}

/// Reads a text from left to right.
pub(super) struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    depth: u32,
}

fn identifier<'a>(input: &mut &'a str) -> winnow::Result<&'a str> {
    let first = one_of(|c: char| c.is_alphabetic() || c == '_');
    let others = take_while(0.., |c: char| c.is_alphanumeric() || c == '_');
    (first, others).take().parse_next(input)
}

fn word<'a>(input: &mut &'a str) -> winnow::Result<Word<'a>> {
    let quoted = delimited('`', take_till(1.., '`'), '`');
    alt((quoted.map(Word::Quoted), identifier.map(Word::Plain))).parse_next(input)
}

fn path<'a>(input: &mut &'a str) -> winnow::Result<&'a str> {
    (identifier, repeat::<_, _, (), _, _>(0.., ('.', identifier))).take().parse_next(input)
}

fn number<'a>(input: &mut &'a str) -> winnow::Result<&'a str> {
    let digits = alt(((digit1, opt(('.', digit0))).void(), ('.', digit1).void()));
    let exponent = (one_of(['e', 'E']), opt(one_of(['+', '-'])), digit1);
    let special = alt(("inf", "nan")).void();
    let value = alt((special, (digits, opt(exponent)).void()));
    (opt(one_of(['+', '-'])), value, opt('j')).take().parse_next(input)
}

fn string(input: &mut &str) -> winnow::Result<String> {
    let hex = preceded('x', take_while(2, |c: char| c.is_ascii_hexdigit()));
    let code = hex.verify_map(|h| u32::from_str_radix(h, 16).ok().and_then(char::from_u32));
    let escaped = any.map(|c| match c {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        other => other,
    });
    let mut quote = one_of(['\'', '"']).parse_next(input)?;
    let character = alt((none_of([quote, '\\']), preceded('\\', alt((code, escaped)))));
    let text = repeat(0.., character).parse_next(input)?;
    quote.parse_next(input)?;
    Ok(text)
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, rest: text, depth: 0 }
    }

    /// Where the next token begins.
    pub(super) fn place(&mut self) -> Place {
        self.space();
        Place(self.text.len() - self.rest.len())
    }

    pub(super) fn error_at(&self, Place(offset): Place, what: impl Into<String>) -> ParseError {
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

    pub(super) fn expected(&mut self, what: &str) -> ParseError {
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

    /// Runs `lexer` after white space; consumes nothing where it fails.
    fn lex<T>(&mut self, mut lexer: impl FnMut(&mut &'a str) -> winnow::Result<T>) -> Option<T> {
        self.space();
        let start = self.rest;
        let token = lexer(&mut self.rest).ok();
        if token.is_none() {
            self.rest = start;
        }
        token
    }

    /// Whether this comes next.
    pub(super) fn sees(&mut self, token: &str) -> bool {
        self.space();
        self.rest.starts_with(token)
    }

    /// Consumes it if it comes next.
    pub(super) fn accept(&mut self, token: &str) -> bool {
        let seen = self.sees(token);
        if seen {
            self.rest = self.rest.get(token.len()..).unwrap_or_default();
        }
        seen
    }

    pub(super) fn require(&mut self, token: &str) -> Parsed<()> {
        match self.accept(token) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{token}`"))),
        }
    }

    pub(super) fn at_end(&mut self) -> bool {
        self.space();
        self.rest.is_empty()
    }

    /// What `read` reads, if it accepts it; otherwise nothing is consumed.
    pub(super) fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let start = self.rest;
        let found = read(self);
        if found.is_none() {
            self.rest = start;
        }
        found
    }

    /// A word if one comes next.
    pub(super) fn accept_word(&mut self) -> Option<Word<'a>> {
        self.lex(word)
    }

    /// Consumes this word if it comes next.
    pub(super) fn accept_keyword(&mut self, keyword: &str) -> bool {
        self.attempt(|r| r.accept_word().filter(|w| *w == Word::Plain(keyword))).is_some()
    }

    pub(super) fn word(&mut self, what: &str) -> Parsed<&'a str> {
        self.lex(word).map(Word::text).ok_or_else(|| self.expected(what))
    }

    /// `aten.add.Tensor`: identifiers with dots between them.
    pub(super) fn path(&mut self, what: &str) -> Parsed<&'a str> {
        self.lex(path).ok_or_else(|| self.expected(what))
    }

    pub(super) fn sees_string(&mut self) -> bool {
        self.sees("'") || self.sees("\"")
    }

    pub(super) fn string(&mut self) -> Parsed<String> {
        self.lex(string).ok_or_else(|| self.expected("a string in quotes"))
    }

    pub(super) fn number(&mut self, what: &str) -> Parsed<Number> {
        let place = self.place();
        let token = self.lex(number).ok_or_else(|| self.expected(what))?;
        let digits = token.strip_suffix('j');
        let is_int = token.trim_start_matches(['+', '-']).chars().all(|c| c.is_ascii_digit());
        let number = match digits {
            Some(digits) => digits.parse().map(Number::Imaginary).ok(),
            None if is_int => token.parse().map(Number::Int).ok(),
            None => token.parse().map(Number::Float).ok(),
        };
        number.ok_or_else(|| self.error_at(place, format!("`{token}` does not fit into 64 bits")))
    }

    /// An expression over symbols, up to a comma, colon or bracket that is not its own.
    pub(super) fn expression(&mut self, what: &str) -> Parsed<Expr> {
        let place = self.place();
        let mut depth = 0u32;
        let end = self.rest.find(|c| match c {
            '(' | '[' => {
                depth += 1;
                false
            }
            ')' | ']' if depth > 0 => {
                depth -= 1;
                false
            }
            ')' | ']' | '{' | '}' | '\n' => true,
            ',' | ':' => depth == 0,
            _ => false,
        });
        let (text, rest) = self.rest.split_at_checked(end.unwrap_or(self.rest.len())).unzip();
        let text = text.unwrap_or_default().trim();
        if text.is_empty() {
            return Err(self.expected(what));
        }
        let expr = Expr::parse(text).map_err(|e| self.error_at(place, format!("`{text}`: {e}")))?;
        self.rest = rest.unwrap_or_default();
        Ok(expr)
    }

    /// Items up to `close`, commas between them; a comma may stand behind the last.
    pub(super) fn list<T>(
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

    /// Whether another item of a list follows; consumes the comma, or what closes the list.
    pub(super) fn goes_on(&mut self, close: &str, first: bool) -> Parsed<bool> {
        if self.accept(close) {
            return Ok(false);
        }
        if !first && !self.accept(",") {
            return Err(self.expected(&format!("`,` or `{close}`")));
        }
        Ok(first || !self.accept(close))
    }

    /// Goes one level deeper.
    pub(super) fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        match self.depth > MAX_NESTING {
            true => Err(self.expected(&format!("nesting of at most {MAX_NESTING} levels"))),
            false => Ok(()),
        }
    }

    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}
