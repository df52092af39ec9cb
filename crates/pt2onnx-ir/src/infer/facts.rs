//! Facts that inference uses besides types, and its error.

use crate::{ids::Value, model::Model};
use pt2onnx_symbolic::{Constraints, Expr};
use rustc_hash::FxHashMap;

/// Facts that inference uses besides the types of a node's inputs.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Elements of integer vectors, such as the target shape of `Reshape`.
    pub contents: &'a Contents,
    /// Facts about the symbols in sizes.
    pub constraints: &'a Constraints,
}

/// Sizes that a node cannot have, whatever the data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum InferError {
    #[error("sizes {0} and {1} do not broadcast")]
    Broadcast(Expr, Expr),
    #[error("sizes {0} and {1} must be equal")]
    Unequal(Expr, Expr),
    #[error("size {0} exceeds {1}")]
    Larger(Expr, Expr),
    #[error("index {0} is out of bounds for a size of {1}")]
    Outside(i64, Expr),
    #[error("a window of {0} is larger than the padded size of {1}")]
    Window(Expr, Expr),
}

/// Known elements of integer vectors and scalars. Each is a number or an expression over the
/// symbols of the program.
#[derive(Clone, Debug, Default)]
pub struct Contents(FxHashMap<Value, Vec<Expr>>);

impl Contents {
    /// Sets the elements of an integer vector or scalar.
    pub fn insert(&mut self, value: Value, elements: Vec<Expr>) {
        self.0.insert(value, elements);
    }

    /// The elements of an integer vector or scalar; `None` if they are not known. Those of
    /// constants are always known.
    pub fn of(&self, model: &Model, value: Value) -> Option<Vec<Expr>> {
        if let Some(known) = self.0.get(&value) {
            return Some(known.clone());
        }
        let tensor = model[value].constant().filter(|t| t.rank() <= 1)?;
        Some(tensor.to_ints()?.into_iter().map(Expr::int).collect())
    }
}
