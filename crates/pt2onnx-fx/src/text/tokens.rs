//! The tokens of the text.

use pt2onnx_symbolic::{
    Expr,
    text::{Parsed, Reader},
};
use winnow::{
    ascii::{digit0, digit1},
    combinator::{alt, delimited, opt, preceded, repeat},
    prelude::*,
    token::{any, none_of, one_of, take_till, take_while},
};

/// A word: plain, or any text in backquotes.
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

/// Reads tokens. In errors, `what` says what is expected.
pub(super) trait Tokens<'a> {
    /// A word; `None` if the text does not go on with one.
    fn accept_word(&mut self) -> Option<Word<'a>>;

    /// Reads this plain word if it is next; returns whether it did.
    fn accept_keyword(&mut self, keyword: &str) -> bool;

    fn word(&mut self, what: &str) -> Parsed<&'a str>;

    /// `aten.add.Tensor`: identifiers with dots between them.
    fn path(&mut self, what: &str) -> Parsed<&'a str>;

    fn sees_string(&mut self) -> bool;

    fn string(&mut self) -> Parsed<String>;

    fn number(&mut self, what: &str) -> Parsed<Number>;

    /// An expression over symbols, up to a comma, colon or bracket that is not its own.
    fn expression(&mut self, what: &str) -> Parsed<Expr>;
}

impl<'a> Tokens<'a> for Reader<'a> {
    fn accept_word(&mut self) -> Option<Word<'a>> {
        self.lex(|rest| word(rest).ok())
    }

    fn accept_keyword(&mut self, keyword: &str) -> bool {
        self.attempt(|r| r.accept_word().filter(|w| *w == Word::Plain(keyword))).is_some()
    }

    fn word(&mut self, what: &str) -> Parsed<&'a str> {
        self.accept_word().map(Word::text).ok_or_else(|| self.expected(what))
    }

    fn path(&mut self, what: &str) -> Parsed<&'a str> {
        self.lex(|rest| path(rest).ok()).ok_or_else(|| self.expected(what))
    }

    fn sees_string(&mut self) -> bool {
        self.sees("'") || self.sees("\"")
    }

    fn string(&mut self) -> Parsed<String> {
        self.lex(|rest| string(rest).ok()).ok_or_else(|| self.expected("a string in quotes"))
    }

    fn number(&mut self, what: &str) -> Parsed<Number> {
        let place = self.place();
        let token = self.lex(|rest| number(rest).ok()).ok_or_else(|| self.expected(what))?;
        let digits = token.strip_suffix('j');
        let is_int = token.trim_start_matches(['+', '-']).chars().all(|c| c.is_ascii_digit());
        let number = match digits {
            Some(digits) => digits.parse().map(Number::Imaginary).ok(),
            None if is_int => token.parse().map(Number::Int).ok(),
            None => token.parse().map(Number::Float).ok(),
        };
        number.ok_or_else(|| self.error_at(place, format!("`{token}` does not fit into 64 bits")))
    }

    fn expression(&mut self, what: &str) -> Parsed<Expr> {
        let place = self.place();
        let text = self.peek(expression_text);
        if text.is_empty() {
            return Err(self.expected(what));
        }
        let expr = Expr::parse(text).map_err(|e| self.error_at(place, format!("`{text}`: {e}")))?;
        self.accept(text);
        Ok(expr)
    }
}

/// The text of the next expression, which ends before a comma, colon or bracket that is not its
/// own.
fn expression_text<'a>(reader: &mut Reader<'a>) -> &'a str {
    let rest = reader.rest();
    let mut depth = 0u32;
    let end = rest.find(|c| match c {
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
    rest.get(..end.unwrap_or(rest.len())).unwrap_or_default().trim()
}
