//! Dimension algebra: symbolic integer expressions, their ranges and proofs.
//!
//! Layer 0: this crate knows neither PyTorch's graphs nor ONNX. The whole workspace uses [`Expr`]
//! for the dimensions of tensors.
//!
//! Guarantees:
//! - No input causes a panic or an overflow, and no input makes an operation slow (see
//!   [`MAX_SIZE`]).
//! - Proofs are sound but incomplete: what is proved is true, but not everything that is true can
//!   be proved.
//! - Equal input gives equal text. Hash seeds and threads have no influence.
//!
//! ```
//! use pt2onnx_symbolic::{Constraints, Expr, Range};
//!
//! let s0 = Expr::symbol("s0");
//! let out = (&s0 - 1).floor_div(&Expr::int(2)) + 1;
//! assert_eq!(out.to_string(), "(((s0 - 1)//2)) + 1");
//! assert_eq!(out, Expr::parse("((s0 - 1)//2) + 1")?);
//! assert_eq!(out.eval(&|name| (name == "s0").then_some(7)), Some(4));
//!
//! let mut known = Constraints::new();
//! known.constrain(&s0, Range::at_least(2));
//! assert_eq!(known.range_of(&out).to_string(), "VR[1, int_oo]");
//! assert_eq!(known.prove_eq(&out, &(&s0 + 1).floor_div(&Expr::int(2))), Some(true));
//! # Ok::<(), pt2onnx_symbolic::ParseError>(())
//! ```

#![deny(missing_debug_implementations)]

// The layers, from the bottom up. A file uses only those above it in this list.
// - func: names and arity of the functions
// - number: numbers
// - range: ranges and interval arithmetic
// - expr: the data type: nodes, raw constructors, comparison
// - poly: expressions as polynomials
// - arithmetic: `+`, `-`, `*`, `Expr::sum`, `Expr::product`, `Expr::pow`
// - eval: values of expressions
// - apply: `Expr::call` and what builds on it: simplified function applications, substitution
// - display: text
// - parse: reading text
// - normal: the normal form for proofs
// - constraints: known facts, ranges of expressions
// - proof: proofs from known facts
// - simplify: simplification by proofs
// - sizes: axes and sizes of tensors
// - tensor: sizes and elements of tensors
// - text: reading texts; uses no other file
mod apply;
mod arithmetic;
mod constraints;
mod display;
mod eval;
mod expr;
mod func;
mod memo;
mod normal;
mod number;
mod parse;
mod poly;
mod proof;
mod range;
mod simplify;
mod sizes;
mod tensor;
pub mod text;

pub use constraints::Constraints;
pub use expr::{Expr, MAX_DEPTH, MAX_SIZE, Symbol, View};
pub use func::Func;
pub use parse::{MAX_NESTING, MAX_TEXT, ParseError};
pub use poly::MAX_TERMS;
pub use range::Range;
pub use sizes::{MAX_RANK, axis, is_possible};
pub use tensor::{SymTensor, equal, less, lowest, quotient, remainder};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
