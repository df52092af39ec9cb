//! Reads texts token by token: what the parsers of models and of programs have in common.
//!
//! ```
//! use pt2onnx_symbolic::text::{Reader, SyntaxError};
//!
//! fn numbers(text: &str) -> Result<Vec<u8>, SyntaxError> {
//!     let mut reader = Reader::new(text);
//!     reader.require("[")?;
//!     reader.list("]", |r| {
//!         let digits = r.take_while(|c| c.is_ascii_digit());
//!         digits.parse().map_err(|_| r.expected("a number below 256"))
//!     })
//! }
//! assert_eq!(numbers("[1, 2] # a comment"), Ok(vec![1, 2]));
//! let error = numbers("[1, x]").unwrap_err().to_string();
//! let place = "(line 1, column 5)\n    [1, x]\n        ^";
//! assert_eq!(error, format!("expected a number below 256, found `x]` {place}"));
//! ```

use std::fmt;
use winnow::{
    ascii::{multispace1, till_line_ending},
    combinator::{alt, repeat},
    prelude::*,
};

/// Defines an enum whose members have names in texts.
///
/// ```
/// pt2onnx_symbolic::named_enum! {
///     /// A colour.
///     pub enum Colour {
///         Red = "red",
///         Green = "green",
///     }
/// }
/// assert_eq!(Colour::of_name("green"), Some(Colour::Green));
/// assert_eq!(Colour::ALL.map(Colour::name), ["red", "green"]);
/// ```
#[macro_export]
macro_rules! named_enum {
    ($(#[$attr:meta])* pub enum $ty:ident { $($member:ident = $name:literal,)* }) => {
        $(#[$attr])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the names are the documentation")]
        pub enum $ty { $($member,)* }

        impl $ty {
            /// All members.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$member),*];

            /// Its name in texts.
            pub fn name(self) -> &'static str {
                match self { $(Self::$member => $name,)* }
            }

            /// The member of this name.
            pub fn of_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|member| member.name() == name)
            }
        }

        /// Its name in texts.
        impl std::fmt::Display for $ty {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// The deepest nesting that [`Reader::enter`] allows.
pub const MAX_NESTING: u32 = 64;

/// Why a text cannot be parsed, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyntaxError {
    /// The problem.
    pub what: String,
    /// Number of the line, from 1.
    pub line: usize,
    /// Number of the character in that line, from 1.
    pub column: usize,
    /// The text of that line; of a long one, what is around the place.
    pub source: String,
}

/// Characters of a long line that are shown on each side of the place.
const AROUND: usize = 100;

impl SyntaxError {
    /// An error after this number of bytes of a text.
    pub fn at(text: &str, offset: usize, what: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = text.get(start..).and_then(|t| t.lines().next()).unwrap_or_default();
        let column = before.get(start..).map_or(0, |t| t.chars().count());
        let cut = column.saturating_sub(AROUND);
        let (left, right) = (
            if cut > 0 { "…" } else { "" },
            if line.chars().nth(column + AROUND).is_some() { "…" } else { "" },
        );
        let shown: String = line.chars().skip(cut).take(column - cut + AROUND).collect();
        SyntaxError {
            what: what.into(),
            line: before.matches('\n').count() + 1,
            column: column + 1,
            source: format!("{left}{shown}{right}"),
        }
    }
}

impl std::error::Error for SyntaxError {}

/// The error and its place, then the line of the text, then a caret below the place.
impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (line {}, column {})", self.what, self.line, self.column)?;
        writeln!(f, "    {}", self.source)?;
        let before = self.source.chars().take(match self.column.saturating_sub(1) {
            before if before > AROUND => AROUND + 1,
            before => before,
        });
        let blank: String = before.map(|c| if c == '\t' { c } else { ' ' }).collect();
        write!(f, "    {blank}^")
    }
}

/// The parsed value, or the error.
pub type Parsed<T> = Result<T, SyntaxError>;

/// A place in the text: the number of bytes before it.
#[derive(Clone, Copy, Debug)]
pub struct Place(usize);

/// A text and how much of it has been read. White space and comments (`# ...`) before a token are
/// skipped.
#[derive(Debug)]
pub struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    depth: u32,
}

impl<'a> Reader<'a> {
    /// A reader at the start of a text.
    pub fn new(text: &'a str) -> Self {
        Self { text, rest: text, depth: 0 }
    }

    /// The place of the next token.
    pub fn place(&mut self) -> Place {
        self.space();
        Place(self.text.len() - self.rest.len())
    }

    /// An error at a place.
    pub fn error_at(&self, Place(offset): Place, what: impl Into<String>) -> SyntaxError {
        SyntaxError::at(self.text, offset, what)
    }

    /// An error that says what is expected at the next token.
    pub fn expected(&mut self, what: &str) -> SyntaxError {
        let place = self.place();
        let found: String = self.rest.chars().take_while(|c| !c.is_whitespace()).take(20).collect();
        let found =
            if found.is_empty() { "the end of the text".to_owned() } else { format!("`{found}`") };
        self.error_at(place, format!("expected {what}, found {found}"))
    }

    fn space(&mut self) {
        let comment = ('#', till_line_ending).void();
        let blank = alt((multispace1.void(), comment));
        let skipped: winnow::Result<()> = repeat(0.., blank).parse_next(&mut self.rest);
        debug_assert!(skipped.is_ok());
    }

    /// The text from the next token on.
    pub fn rest(&mut self) -> &'a str {
        self.space();
        self.rest
    }

    /// Runs `lexer`, which reads a token from the start of its argument. Reads nothing if it
    /// returns `None`.
    pub fn lex<T>(&mut self, lexer: impl FnOnce(&mut &'a str) -> Option<T>) -> Option<T> {
        self.space();
        self.attempt(|r| lexer(&mut r.rest))
    }

    /// The characters for which `inside` is true, up to the first other one.
    pub fn take_while(&mut self, inside: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let (token, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
        self.rest = rest;
        token
    }

    /// Whether the text continues with `token`.
    pub fn sees(&mut self, token: &str) -> bool {
        self.rest().starts_with(token)
    }

    /// Reads `token` if the text continues with it; returns whether it did.
    pub fn accept(&mut self, token: &str) -> bool {
        let rest = self.rest().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads `token`, which must come next.
    ///
    /// # Errors Returns an error if the text continues with something else.
    pub fn require(&mut self, token: &str) -> Parsed<()> {
        if self.accept(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    /// Whether all tokens have been read.
    pub fn at_end(&mut self) -> bool {
        self.rest().is_empty()
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

    /// Items with commas between them, up to `close`. A comma may follow the last item.
    ///
    /// # Errors
    /// Returns the error of an item, or an error if a comma is missing.
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
    ///
    /// # Errors
    /// Returns an error if there is neither a comma nor `close`.
    pub fn goes_on(&mut self, close: &str, first: bool) -> Parsed<bool> {
        if self.accept(close) {
            return Ok(false);
        }
        if !first && !self.accept(",") {
            return Err(self.expected(&format!("`,` or `{close}`")));
        }
        Ok(first || !self.accept(close))
    }

    /// Goes one level deeper into something nested.
    ///
    /// # Errors
    /// Returns an error if that is deeper than [`MAX_NESTING`].
    pub fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let place = self.place();
            Err(self.error_at(place, format!("nested more than {MAX_NESTING} levels deep")))
        } else {
            Ok(())
        }
    }

    /// Goes one level back.
    pub fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_the_place() {
        let short = SyntaxError::at("a\n\tb ?", 5, "no").to_string();
        assert_eq!(short, "no (line 2, column 4)\n    \tb ?\n    \t  ^");
        let long = format!("{}?{}", "x".repeat(1000), "y".repeat(1000));
        let (x, y, blank) = ("x".repeat(AROUND), "y".repeat(AROUND - 1), " ".repeat(AROUND + 1));
        let expected = format!("no (line 1, column 1001)\n    …{x}?{y}…\n    {blank}^");
        assert_eq!(SyntaxError::at(&long, 1000, "no").to_string(), expected);
    }
}
