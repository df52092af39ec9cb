//! Dimension algebra: symbolic integer expressions, their ranges and proofs.
//!
//! Layer 0: knows neither PyTorch's graphs nor ONNX. [`Expr`] is what a dimension of a tensor is, everywhere in the workspace.
//!
//! ```
//! use pt2onnx_symbolic::Expr;
//!
//! let s0 = Expr::symbol("s0");
//! let out = (&s0 - 1).floor_div(&Expr::int(2)) + 1;
//! assert_eq!(out.to_string(), "(((s0 - 1)//2)) + 1");
//! assert_eq!(out, Expr::parse("((s0 - 1)//2) + 1")?);
//! assert_eq!(out.eval(&|name| (name == "s0").then_some(7)), Some(4));
//! # Ok::<(), pt2onnx_symbolic::ParseError>(())
//! ```

mod apply;
mod constraints;
mod display;
mod eval;
mod expr;
mod func;
mod normal;
mod parse;
mod poly;
mod proof;
mod range;

pub use constraints::Constraints;
pub use expr::{Expr, MAX_DEPTH, MAX_SIZE, Symbol, View};
pub use func::Func;
pub use parse::{MAX_NESTING, MAX_TEXT, ParseError};
pub use poly::MAX_TERMS;
pub use range::Range;
