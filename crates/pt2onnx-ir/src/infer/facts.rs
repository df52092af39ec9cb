//! What inference knows besides types, and its error.

use crate::{ids::Value, model::Model};
use pt2onnx_symbolic::{Constraints, Expr};
use rustc_hash::FxHashMap;

/// What inference knows besides the types of a node's inputs.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Elements of integer vectors, such as the target shape of `Reshape`.
    pub contents: &'a Contents,
    /// Facts about the symbols in sizes.
    pub constraints: &'a Constraints,
}

/// Two sizes of a node's inputs do not broadcast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sizes {a} and {b} do not broadcast")]
#[non_exhaustive]
pub struct InferError {
    /// One size.
    pub a: Expr,
    /// The other size.
    pub b: Expr,
}

/// Known elements of integer vectors and scalars. Each is a number or an expression over the symbols of the program.
#[derive(Clone, Debug, Default)]
pub struct Contents(FxHashMap<Value, Vec<Expr>>);

impl Contents {
    /// Sets the elements of an integer vector or scalar.
    pub fn insert(&mut self, value: Value, elements: Vec<Expr>) {
        self.0.insert(value, elements);
    }

    /// The elements of an integer vector or scalar; `None` if they are not known. Those of constants are always known.
    pub fn of(&self, model: &Model, value: Value) -> Option<Vec<Expr>> {
        if let Some(known) = self.0.get(&value) {
            return Some(known.clone());
        }
        let tensor = model[value].constant().filter(|t| t.rank() <= 1)?;
        let narrow = || Some(tensor.to_vec::<i32>()?.into_iter().map(i64::from).collect());
        let elements: Vec<i64> = tensor.to_vec::<i64>().or_else(narrow)?;
        Some(elements.into_iter().map(Expr::int).collect())
    }
}
