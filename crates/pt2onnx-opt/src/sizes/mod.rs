//! Sizes as values: which integers nodes compute from sizes, and models that say them in fewer
//! nodes.

mod contents;
mod materialize_sizes;
mod size_origins;

use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use rustc_hash::FxHashMap;

pub(crate) use contents::contents;
pub(crate) use materialize_sizes::materialize;

/// The elements of vectors and scalars of integers and bools that nodes compute.
pub(crate) type Computed = FxHashMap<Value, Vec<Expr>>;
