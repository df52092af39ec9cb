//! What inference goes by besides types, and its error.

use crate::{ids::Value, model::Model};
use pt2onnx_symbolic::{Constraints, Expr};
use rustc_hash::FxHashMap;

/// What inference goes by, besides the types of a node's inputs.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Elements of integer vectors: shapes are made of them.
    pub contents: &'a Contents,
    /// What is known of the symbols in sizes.
    pub constraints: &'a Constraints,
}

/// Two sizes of a node's inputs that do not broadcast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sizes {a} and {b} do not broadcast")]
#[non_exhaustive]
pub struct InferError {
    /// One of them.
    pub a: Expr,
    /// The other.
    pub b: Expr,
}

/// The known elements of integer vectors and scalars, as numbers or expressions.
#[derive(Clone, Debug, Default)]
pub struct Contents(FxHashMap<Value, Vec<Expr>>);

impl Contents {
    /// Sets the elements of an integer vector or scalar.
    pub fn insert(&mut self, value: Value, elements: Vec<Expr>) {
        self.0.insert(value, elements);
    }

    /// The elements of an integer vector or scalar, if they are known: those of a constant always are.
    pub fn of(&self, model: &Model, value: Value) -> Option<Vec<Expr>> {
        if let Some(known) = self.0.get(&value) {
            return Some(known.clone());
        }
        let tensor = model[value].constant()?;
        let elements = (tensor.rank() <= 1).then(|| tensor.to_vec::<i64>())??;
        Some(elements.into_iter().map(Expr::int).collect())
    }
}
