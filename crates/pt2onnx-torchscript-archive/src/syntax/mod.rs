//! The language of `code/**/*.py`: a small part of Python, without infix operators.

mod ast;
mod lexer;
mod parser;

pub use crate::syntax::ast::{
    Call, Class, Expr, ExprKind, File, Function, Operator, Param, Stmt, StmtKind,
};
pub use crate::syntax::parser::{parse, parse_without_places};

/// A syntax error and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Counted from 1.
    pub line: u32,
    /// The error.
    pub what: String,
}

/// The line of a byte of a text, counted from 1.
pub(crate) fn line_of(text: &str, at: u32) -> u32 {
    let before = text.as_bytes().get(..at as usize).unwrap_or(text.as_bytes());
    let lines = before.iter().filter(|&&b| b == b'\n').count();
    u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1)
}
