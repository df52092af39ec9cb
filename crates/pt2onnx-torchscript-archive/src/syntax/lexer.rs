//! Text to tokens. Lines and indentation are tokens too, as Python has them.

use crate::syntax::{SyntaxError, line_of};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Name(Arc<str>),
    Int(i64),
    Float(f64),
    Imaginary(f64),
    Str(Arc<str>),
    /// Punctuation; `->` is `>`.
    Sign(char),
    Newline,
    Indent,
    Dedent,
    End,
}

/// All tokens, with the byte at which each starts.
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token, u32)>, SyntaxError> {
    let mut lexer = Lexer { text, at: 0, open: 0, indents: vec![0], tokens: Vec::new() };
    lexer.run()?;
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Brackets that are open.
    open: usize,
    indents: Vec<usize>,
    tokens: Vec<(Token, u32)>,
}

impl<'a> Lexer<'a> {
    fn error<T>(&self, what: &str) -> Result<T, SyntaxError> {
        let at = u32::try_from(self.at).unwrap_or(u32::MAX);
        Err(SyntaxError { line: line_of(self.text, at), what: what.to_owned() })
    }

    fn push(&mut self, token: Token, at: usize) {
        self.tokens.push((token, u32::try_from(at).unwrap_or(u32::MAX)));
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The bytes from here that fulfil a condition; they are passed over.
    fn take(&mut self, fits: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|&b| fits(b)).count();
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn run(&mut self) -> Result<(), SyntaxError> {
        while self.at < self.text.len() {
            self.indentation()?;
            self.line()?;
        }
        let end = self.at;
        while self.indents.pop().is_some_and(|indent| indent > 0) {
            self.push(Token::Dedent, end);
        }
        self.push(Token::End, end);
        Ok(())
    }

    /// The start of a line. Empty lines and comments are passed over.
    fn indentation(&mut self) -> Result<(), SyntaxError> {
        let width = self.take(|b| b == b' ').len();
        if matches!(self.rest().bytes().next(), None | Some(b'\n' | b'\r' | b'#')) {
            return Ok(());
        }
        let now = self.indents.last().copied().unwrap_or_default();
        if width > now {
            self.indents.push(width);
            self.push(Token::Indent, self.at);
        }
        while self.indents.last().is_some_and(|&indent| indent > width) {
            self.indents.pop();
            self.push(Token::Dedent, self.at);
        }
        if self.indents.last() == Some(&width) {
            Ok(())
        } else {
            self.error("the indentation fits no line before")
        }
    }

    /// The tokens of a line; within brackets, of the following lines too.
    fn line(&mut self) -> Result<(), SyntaxError> {
        let first = self.tokens.len();
        while let Some(byte) = self.rest().bytes().next() {
            let at = self.at;
            match byte {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'#' => {
                    self.take(|b| b != b'\n');
                }
                b'\n' => {
                    self.at += 1;
                    if self.open == 0 {
                        if self.tokens.len() > first {
                            self.push(Token::Newline, at);
                        }
                        return Ok(());
                    }
                }
                b'"' | b'\'' => {
                    let text = self.string(byte)?;
                    self.push(Token::Str(text.into()), at);
                }
                b'0'..=b'9' => self.number()?,
                b'.' if self.rest().as_bytes().get(1).is_some_and(u8::is_ascii_digit) => {
                    self.number()?;
                }
                b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => {
                    let name = self.take(|b| b == b'_' || b.is_ascii_alphanumeric() || b >= 0x80);
                    self.push(Token::Name(name.into()), at);
                }
                _ => self.sign(byte)?,
            }
        }
        self.push(Token::Newline, self.at);
        Ok(())
    }

    fn sign(&mut self, byte: u8) -> Result<(), SyntaxError> {
        let (at, mut sign) = (self.at, byte);
        self.at += 1;
        match byte {
            b'(' | b'[' | b'{' => self.open += 1,
            b')' | b']' | b'}' => self.open = self.open.saturating_sub(1),
            b'-' if self.rest().starts_with('>') => {
                self.at += 1;
                sign = b'>';
            }
            b',' | b':' | b'=' | b'.' | b'+' | b'-' | b'*' | b';' | b'@' => {}
            _ => {
                self.at = at;
                return self.error("a character that is not known here");
            }
        }
        self.push(Token::Sign(char::from(sign)), at);
        Ok(())
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        let at = self.at;
        self.take(|b| b.is_ascii_digit());
        let mut float = false;
        if self.rest().starts_with('.') {
            float = true;
            self.at += 1;
            self.take(|b| b.is_ascii_digit());
        }
        if self.rest().starts_with(['e', 'E']) {
            float = true;
            self.at += 1;
            self.take(|b| b == b'-' || b == b'+');
            self.take(|b| b.is_ascii_digit());
        }
        let digits = self.text.get(at..self.at).unwrap_or_default();
        let value: Result<f64, _> = digits.parse();
        let token = match (digits.parse(), value) {
            (_, Ok(value)) if self.rest().starts_with(['j', 'J']) => {
                self.at += 1;
                Token::Imaginary(value)
            }
            (Ok(int), _) if !float => Token::Int(int),
            // The negative number is the only one of 64 bits whose positive is not.
            (Err(_), Ok(_)) if !float && digits == "9223372036854775808" => Token::Int(i64::MIN),
            (_, Ok(value)) if float => Token::Float(value),
            _ => return self.error("a number that cannot be read"),
        };
        self.push(token, at);
        Ok(())
    }

    /// A string with Python's escapes.
    fn string(&mut self, quote: u8) -> Result<String, SyntaxError> {
        let quotes = [quote; 3];
        let triple = self.rest().as_bytes().starts_with(&quotes);
        let end = if triple { &quotes[..] } else { &quotes[..1] };
        self.at += end.len();
        let mut bytes = Vec::new();
        loop {
            if self.rest().as_bytes().starts_with(end) {
                self.at += end.len();
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            let Some(character) = self.rest().chars().next() else {
                return self.error("a string without end");
            };
            self.at += character.len_utf8();
            match character {
                '\\' => self.escape(&mut bytes)?,
                _ => bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let Some(escaped) = self.rest().chars().next() else {
            return self.error("a string without end");
        };
        let (value, length) = match escaped {
            'n' => (Some(b'\n'), 1),
            't' => (Some(b'\t'), 1),
            'r' => (Some(b'\r'), 1),
            'a' => (Some(7), 1),
            'b' => (Some(8), 1),
            'f' => (Some(12), 1),
            'v' => (Some(11), 1),
            '\\' | '\'' | '"' => (Some(escaped as u8), 1),
            '0'..='7' => {
                let digits = self.rest().bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b));
                let digits = digits.count();
                let value = self.rest().get(..digits).unwrap_or_default();
                (Some(u16::from_str_radix(value, 8).unwrap_or_default() as u8), digits)
            }
            'x' => (self.rest().get(1..3).and_then(|v| u8::from_str_radix(v, 16).ok()), 3),
            _ => (None, 0),
        };
        let Some(value) = value else { return self.error("an escape that is not known") };
        bytes.push(value);
        self.at += length;
        Ok(())
    }
}
