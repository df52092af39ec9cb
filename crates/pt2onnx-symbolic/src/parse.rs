//! The parser of expressions. It reads the output of sympy's `str` and `srepr`, and Python's
//! operators.

use winnow::ascii::{digit0, digit1, multispace0};
use winnow::combinator::{alt, delimited, opt};
use winnow::prelude::*;
use winnow::token::{one_of, take_till, take_while};

use crate::expr::Expr;
use crate::func::Func;

/// Longest text that [`Expr::parse`] accepts, in bytes.
pub const MAX_TEXT: usize = 1 << 14;

/// Deepest nesting of parentheses, calls and prefix operators that [`Expr::parse`] accepts.
pub const MAX_NESTING: u32 = 200;

/// Why a text cannot be parsed as an expression. Offsets are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the texts are the documentation")]
pub enum ParseError {
    #[error("the expression has {0} bytes, the limit is {MAX_TEXT}")]
    TooLong(usize),
    #[error("the expression is nested deeper than {MAX_NESTING} levels at offset {0}")]
    TooDeep(usize),
    #[error("expected {expected} at offset {offset}")]
    Expected { expected: &'static str, offset: usize },
    #[error("`{0}` is not a float or a 64-bit integer")]
    Number(String),
    #[error("unknown function `{0}`")]
    UnknownFunction(String),
    #[error("`{function}` does not take {arguments} arguments")]
    Arguments { function: String, arguments: usize },
}

type Parsed = Result<Expr, ParseError>;

/// Python's binding strengths.
mod level {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const COMPARE: u8 = 4;
    pub const BIT_OR: u8 = 5;
    pub const BIT_XOR: u8 = 6;
    pub const BIT_AND: u8 = 7;
    pub const SHIFT: u8 = 8;
    pub const ADD: u8 = 9;
    pub const MUL: u8 = 10;
    pub const UNARY: u8 = 11;
    pub const POW: u8 = 12;
}

#[derive(Clone, Copy, PartialEq)]
enum Infix {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    /// The boolean function for truth values, and the bitwise function for other operands.
    Logic(Func, Func),
    Xor,
    Compare(Func),
    Call(Func),
}

/// The infix operators. If one is a prefix of another, the longer one comes first.
const INFIX: &[(&str, u8, Infix)] = &[
    ("**", level::POW, Infix::Pow),
    ("//", level::MUL, Infix::Call(Func::FloorDiv)),
    ("<<", level::SHIFT, Infix::Call(Func::LShift)),
    (">>", level::SHIFT, Infix::Call(Func::RShift)),
    ("<=", level::COMPARE, Infix::Compare(Func::Le)),
    (">=", level::COMPARE, Infix::Compare(Func::Ge)),
    ("==", level::COMPARE, Infix::Compare(Func::Eq)),
    ("!=", level::COMPARE, Infix::Compare(Func::Ne)),
    ("<", level::COMPARE, Infix::Compare(Func::Lt)),
    (">", level::COMPARE, Infix::Compare(Func::Gt)),
    ("+", level::ADD, Infix::Add),
    ("-", level::ADD, Infix::Sub),
    ("*", level::MUL, Infix::Mul),
    ("/", level::MUL, Infix::Div),
    ("%", level::MUL, Infix::Call(Func::PythonMod)),
    ("&", level::BIT_AND, Infix::Logic(Func::And, Func::BitwiseAnd)),
    ("|", level::BIT_OR, Infix::Logic(Func::Or, Func::BitwiseOr)),
    ("^", level::BIT_XOR, Infix::Xor),
    ("and", level::AND, Infix::Call(Func::And)),
    ("or", level::OR, Infix::Call(Func::Or)),
];

/// The absolute value of `i64::MIN`. It does not fit in `i64` without the sign.
const MIN_DIGITS: &str = "9223372036854775808";

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    depth: u32,
    /// An operand that is already read.
    read: Option<Expr>,
    /// An integer outside the range of `i64`.
    beyond: Option<&'a str>,
}

impl Expr {
    /// Parses an expression. The text may be what sympy's `str` prints (`2*s0 + 1`, `((s0 -
    /// 1)//2)`, `Max(1, s0)`, `Eq(s0, 2)`), what its `srepr` prints (`Add(Symbol('s0',
    /// integer=True), Integer(1))`), or Python (`s0 % 2 == 0 and s1 <= 4`). A path like
    /// `L['x'].size()[0]` becomes a symbol with that name.
    ///
    /// # Errors
    /// Returns the first position at which the text is not an expression, or the limit that it
    /// exceeds.
    pub fn parse(text: &str) -> Result<Expr, ParseError> {
        if text.len() > MAX_TEXT {
            return Err(ParseError::TooLong(text.len()));
        }
        let mut parser = Reader { text, rest: text, depth: 0, read: None, beyond: None };
        let expr = parser.expression(0)?;
        parser.space();
        if !parser.rest.is_empty() {
            return Err(parser.expected("an operator or the end"));
        }
        match parser.beyond {
            Some(digits) if !expr.is_boolean() => Err(ParseError::Number(digits.to_owned())),
            _ => Ok(expr),
        }
    }
}

impl std::str::FromStr for Expr {
    type Err = ParseError;
    fn from_str(text: &str) -> Parsed {
        Expr::parse(text)
    }
}

/// A name.
fn name<'a>(input: &mut &'a str) -> winnow::Result<&'a str> {
    (
        one_of(|c: char| c.is_alphabetic() || c == '_'),
        take_while(0.., |c: char| c.is_alphanumeric() || c == '_'),
    )
        .take()
        .parse_next(input)
}

/// The digits of an integer or a float, without a sign.
fn number<'a>(input: &mut &'a str) -> winnow::Result<&'a str> {
    (
        alt(((digit1, opt(('.', digit0))).void(), ('.', digit1).void())),
        opt((one_of(['e', 'E']), opt(one_of(['+', '-'])), digit1)),
    )
        .take()
        .parse_next(input)
}

/// A text in quotes, without the quotes. sympy's names have no escapes.
fn quoted<'a>(input: &mut &'a str) -> winnow::Result<&'a str> {
    alt((delimited('\'', take_till(0.., '\''), '\''), delimited('"', take_till(0.., '"'), '"')))
        .parse_next(input)
}

/// A step of a path in Python: `['x']`, `.size`, `()`.
fn path_step(input: &mut &str) -> winnow::Result<()> {
    alt((('[', alt((quoted, digit1)), ']').void(), ('.', name).void(), "()".void()))
        .parse_next(input)
}

impl<'a> Reader<'a> {
    fn offset(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    fn expected(&self, expected: &'static str) -> ParseError {
        ParseError::Expected { expected, offset: self.offset() }
    }

    fn space(&mut self) {
        let skipped: winnow::Result<&str> = multispace0.parse_next(&mut self.rest);
        debug_assert!(skipped.is_ok());
    }

    /// Skips white space, then runs `lexer`. If it fails, only the white space is consumed.
    fn lex<T>(&mut self, mut lexer: impl FnMut(&mut &'a str) -> winnow::Result<T>) -> Option<T> {
        self.space();
        let start = self.rest;
        let token = lexer(&mut self.rest).ok();
        if token.is_none() {
            self.rest = start;
        }
        token
    }

    fn accept(&mut self, token: &str) -> bool {
        self.space();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn require(&mut self, token: &'static str) -> Result<(), ParseError> {
        if self.accept(token) { Ok(()) } else { Err(self.expected(token)) }
    }

    /// Consumes the next operator if it binds at least as strongly as `min`.
    fn infix(&mut self, min: u8) -> Option<(u8, Infix)> {
        self.space();
        let (token, level, infix) = *INFIX.iter().find(|(token, ..)| {
            let word = token.starts_with(|c: char| c.is_alphabetic());
            self.rest.strip_prefix(token).is_some_and(|rest| {
                !word || !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        })?;
        if level < min {
            return None;
        }
        self.rest = &self.rest[token.len()..];
        Some((level, infix))
    }

    /// Parses an expression of operators that bind at least as strongly as `min`.
    fn expression(&mut self, min: u8) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(ParseError::TooDeep(self.offset()));
        }
        let mut left = self.operand()?;
        // The terms of a sum, which are added at the end: adding them one by one takes quadratic
        // time.
        let mut terms: Vec<Expr> = Vec::new();
        // The right operand of the last comparison, for chains like `1 < x < 5`.
        let mut compared: Option<Expr> = None;
        while let Some((level, mut infix)) = self.infix(min) {
            if infix == Infix::Sub && self.minimum(&["**", "//", "%"]) {
                infix = Infix::Add;
                self.read = Some(Expr::int(i64::MIN));
            }
            // `**` is right-associative, and its exponent may have a sign.
            let right =
                self.expression(if infix == Infix::Pow { level::UNARY } else { level + 1 })?;
            if !terms.is_empty() && level < level::ADD {
                terms.push(left);
                left = Expr::sum(terms.drain(..));
            }
            if level != level::COMPARE {
                compared = None;
            }
            left = match infix {
                Infix::Add | Infix::Sub => {
                    terms.push(left);
                    if infix == Infix::Add { right } else { -right }
                }
                Infix::Mul => left * right,
                Infix::Div => left * right.pow(&Expr::int(-1)),
                Infix::Pow => left.pow(&right),
                Infix::Logic(logic, bits) => {
                    let both = left.is_boolean() && right.is_boolean();
                    let either = !left.is_static() && left.is_boolean()
                        || !right.is_static() && right.is_boolean();
                    let func = if both || either { logic } else { bits };
                    Expr::call(func, vec![left, right])
                }
                Infix::Xor => {
                    let both = left.is_boolean() && right.is_boolean();
                    let func = if both { Func::Ne } else { Func::BitwiseXor };
                    Expr::call(func, vec![left, right])
                }
                Infix::Call(func) => Expr::call(func, vec![left, right]),
                Infix::Compare(func) => match compared.replace(right.clone()) {
                    Some(middle) => {
                        let link = Expr::call(func, vec![middle, right]);
                        Expr::call(Func::And, vec![left, link])
                    }
                    None => Expr::call(func, vec![left, right]),
                },
            };
        }
        if !terms.is_empty() {
            terms.push(left);
            left = Expr::sum(terms);
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Called after a minus sign. Consumes the digits of `i64::MIN` and returns true, if they come
    /// next and are not followed by one of these operators, which bind stronger than the sign.
    fn minimum(&mut self, but_not_before: &[&str]) -> bool {
        self.space();
        let Some(rest) = self.rest.strip_prefix(MIN_DIGITS) else {
            return false;
        };
        let next = rest.trim_start();
        let found = !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && !but_not_before.iter().any(|token| next.starts_with(token));
        if found {
            self.rest = rest;
        }
        found
    }

    /// Parses a prefix operator with its operand, a number, a name, a call, or an expression in
    /// parentheses.
    fn operand(&mut self) -> Parsed {
        if let Some(operand) = self.read.take() {
            return Ok(operand);
        }
        if self.accept("-") {
            if self.minimum(&["**"]) {
                return Ok(Expr::int(i64::MIN));
            }
            return Ok(-self.expression(level::UNARY)?);
        }
        if self.accept("+") {
            return self.expression(level::UNARY);
        }
        if self.accept("~") {
            let operand = self.expression(level::UNARY)?;
            return Ok(if operand.is_boolean() {
                Expr::call(Func::Not, vec![operand])
            } else {
                -operand - 1
            });
        }
        if self.accept("(") {
            let inner = self.expression(0)?;
            self.require(")")?;
            return Ok(inner);
        }
        if let Some(digits) = self.lex(number) {
            return self.constant(digits);
        }
        self.space();
        let start = self.rest;
        let Some(name) = self.lex(name) else {
            return Err(self.expected("an operand"));
        };
        match name {
            "not" => {
                let operand = self.expression(level::NOT)?;
                return Ok(Expr::call(Func::Not, vec![operand]));
            }
            "true" | "True" => return Ok(Expr::bool(true)),
            "false" | "False" => return Ok(Expr::bool(false)),
            "oo" | "int_oo" | "inf" => return Ok(Expr::float(f64::INFINITY)),
            "nan" => return Ok(Expr::float(f64::NAN)),
            _ => {}
        }
        if self.rest.starts_with(['[', '.']) {
            while self.lex(path_step).is_some() {}
            let path = &start[..start.len() - self.rest.len()];
            return Ok(Expr::symbol(path.trim_end()));
        }
        if self.accept("(") {
            return self.call(name);
        }
        Ok(Expr::symbol(name))
    }

    /// Parses the rest of a call, after the opening parenthesis.
    fn call(&mut self, name: &'a str) -> Parsed {
        match name {
            "Symbol" | "Dummy" => {
                let start = self.rest;
                // A name must parse as a symbol, because it is printed without quotes.
                let named =
                    |text: &&str| Expr::parse(text).is_ok_and(|e| e.as_symbol() == Some(*text));
                let Some(symbol) = self.lex(quoted).filter(named) else {
                    self.rest = start;
                    return Err(self.expected("a name in quotes"));
                };
                self.keywords()?;
                return Ok(Expr::symbol(symbol));
            }
            "Float" => {
                let value = match self.lex(quoted) {
                    Some(digits) => digits
                        .parse()
                        .map(Expr::float)
                        .map_err(|_| ParseError::Number(digits.to_owned()))?,
                    None => self.expression(0)?,
                };
                self.keywords()?;
                return Ok(value);
            }
            "Piecewise" => return self.piecewise(),
            _ => {}
        }
        let mut args = Vec::new();
        while !self.accept(")") {
            if !args.is_empty() {
                self.require(",")?;
                if self.accept(")") {
                    break;
                }
            }
            args.push(self.expression(0)?);
        }
        let minus_one = Expr::int(-1);
        let half = || Expr::int(2).pow(&minus_one);
        Ok(match (name, args.as_slice()) {
            ("Add", _) => Expr::sum(args),
            ("Mul", _) => Expr::product(args),
            ("Pow", [base, exponent]) => base.pow(exponent),
            ("Integer", [value]) => value.clone(),
            ("Rational", [num, den]) => num * den.pow(&minus_one),
            ("Half", []) => half(),
            ("Infinity", []) => Expr::float(f64::INFINITY),
            ("NegativeInfinity", []) => Expr::float(f64::NEG_INFINITY),
            ("BooleanTrue" | "One", []) => Expr::ONE,
            ("BooleanFalse" | "Zero", []) => Expr::ZERO,
            ("NegativeOne", []) => minus_one,
            ("sqrt", [x]) => x.pow(&half()),
            _ => {
                let function = name.to_owned();
                match Func::from_name(name) {
                    None => return Err(ParseError::UnknownFunction(function)),
                    Some(func) if func.takes(args.len()) => Expr::call(func, args),
                    Some(_) => {
                        return Err(ParseError::Arguments { function, arguments: args.len() });
                    }
                }
            }
        })
    }

    /// Skips `, integer=True, ...)`: assumptions and precision, which are not used.
    fn keywords(&mut self) -> Result<(), ParseError> {
        while self.accept(",") {
            if self.lex(name).is_none() {
                return Err(self.expected("a keyword"));
            }
            self.require("=")?;
            if self.lex(name).is_none() && self.lex(number).is_none() {
                return Err(self.expected("a value"));
            }
        }
        self.require(")")
    }

    /// Parses `Piecewise((a, condition), (b, True))` into nested `Where`.
    fn piecewise(&mut self) -> Parsed {
        let mut cases = Vec::new();
        loop {
            self.accept("ExprCondPair");
            self.require("(")?;
            let value = self.expression(0)?;
            self.require(",")?;
            let condition = self.expression(0)?;
            self.require(")")?;
            cases.push((condition, value));
            if !self.accept(",") {
                break;
            }
        }
        self.require(")")?;
        let otherwise = Expr::float(f64::NAN);
        Ok(cases.into_iter().rev().fold(otherwise, |otherwise, (condition, value)| {
            Expr::call(Func::Where, vec![condition, value, otherwise])
        }))
    }

    /// A number. The largest `i64` stands for a larger integer: no size is above either, so that a
    /// condition on sizes is the same.
    fn constant(&mut self, digits: &'a str) -> Parsed {
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let float = digits.parse().map(Expr::float);
            return float.map_err(|_| ParseError::Number(digits.to_owned()));
        }
        Ok(Expr::int(digits.parse().unwrap_or_else(|_| {
            self.beyond = Some(digits);
            i64::MAX
        })))
    }
}
