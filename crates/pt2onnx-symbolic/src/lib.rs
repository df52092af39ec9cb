//! Dimension algebra: symbolic integer expressions, their ranges and proofs.
//!
//! Layer 0: knows neither PyTorch's graphs nor ONNX. [`Expr`] is what a dimension of a tensor is, everywhere in the workspace.

mod expr;

pub use expr::{Expr, Func, Node, Symbol};
