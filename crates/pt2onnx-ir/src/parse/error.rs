//! The parser's error.

use std::fmt;

/// Why a text cannot be parsed, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What is wrong.
    pub what: String,
    /// Number of the line, from 1.
    pub line: usize,
    /// Number of the character in that line, from 1.
    pub column: usize,
    /// The text of that line.
    pub source: String,
}

impl std::error::Error for ParseError {}

/// The error and its place, then the line of the text, then a caret below the place.
impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (line {}, column {})", self.what, self.line, self.column)?;
        writeln!(f, "    {}", self.source)?;
        let before = self.source.chars().take(self.column.saturating_sub(1));
        let blank: String = before.map(|c| if c == '\t' { c } else { ' ' }).collect();
        write!(f, "    {blank}^")
    }
}
