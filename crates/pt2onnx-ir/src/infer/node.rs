//! The node that a rule infers, with its inputs and attributes.

use super::facts::{Facts, InferError};
use crate::{
    attribute::Attribute,
    ids::Value,
    model::Model,
    node,
    types::{Shape, unknown_symbol},
};
use pt2onnx_symbolic::{Expr, MAX_RANK, axis};
use pt2onnx_tensor::DType;
use std::cell::{Cell, RefCell};

/// A node, and everything that rules may use.
pub(super) struct Node<'a> {
    pub model: &'a Model,
    pub facts: Facts<'a>,
    pub node: &'a node::Node,
    /// How many unknown dimensions the model has; each has a number.
    pub unknown_dims: Cell<usize>,
    /// The first error that a rule found.
    pub error: RefCell<Option<InferError>>,
}

impl Node<'_> {
    /// A new unknown dimension, equal to no other.
    pub(super) fn unknown_dim(&self) -> Expr {
        self.unknown_dims.set(self.unknown_dims.get() + 1);
        unknown_symbol(self.unknown_dims.get())
    }

    pub(super) fn known_dtype(&self, value: Value) -> Option<DType> {
        Some(self.model[value].ty.as_ref()?.as_tensor()?.dtype)
    }

    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.node.int(name)
    }

    pub(super) fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.node.attribute(name)? {
            Attribute::Ints(v) => Some(v),
            _ => None,
        }
    }

    pub(super) fn string(&self, name: &str) -> Option<&str> {
        match self.node.attribute(name)? {
            Attribute::String(v) => Some(v),
            _ => None,
        }
    }

    pub(super) fn input(&self, i: usize) -> Option<Value> {
        self.node.input(i)
    }

    pub(super) fn shape(&self, i: usize) -> Option<Shape> {
        self.model[self.input(i)?].ty.as_ref()?.as_tensor()?.shape.clone()
    }

    /// Elements of input `i`, an integer vector or scalar, if known.
    pub(super) fn contents(&self, i: usize) -> Option<Vec<Expr>> {
        self.facts.contents.of(self.model, self.input(i)?)
    }

    /// Elements of input `i`, a vector; `None` for unknown elements, which a `Concat` takes from
    /// elsewhere.
    pub(super) fn some_contents(&self, i: usize) -> Option<Vec<Option<Expr>>> {
        let value = self.input(i)?;
        let joined = &self.model[self.model.producer(value)?];
        if !joined.is("Concat") {
            return None;
        }
        let mut elements = Vec::new();
        for &part in joined.inputs() {
            match self.facts.contents.of(self.model, part?) {
                Some(known) => elements.extend(known.into_iter().map(Some)),
                None => {
                    let sizes = self.model[part?].ty.as_ref()?.as_tensor()?.shape.as_ref()?;
                    let [length] = sizes.as_slice() else { return None };
                    elements.extend(std::iter::repeat_n(None, rank(length)?));
                }
            }
        }
        Some(elements)
    }

    /// Elements of input `i`, if all are known numbers.
    pub(super) fn numbers(&self, i: usize) -> Option<Vec<i64>> {
        self.contents(i)?.iter().map(Expr::as_int).collect()
    }

    /// New unknown dimensions, one for each element of input `i`, a vector.
    pub(super) fn dims_of(&self, i: usize) -> Option<Shape> {
        let length = match self.shape(i)?.as_slice() {
            [length] => rank(length)?,
            _ => return None,
        };
        Some((0..length).map(|_| self.unknown_dim()).collect())
    }

    /// The first element of input `i`, if it is known.
    pub(super) fn first(&self, i: usize) -> Option<Expr> {
        self.contents(i)?.into_iter().next()
    }

    /// Whether an attribute is a number other than 0; `default` without it.
    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        self.int(name).map_or(default, |number| number != 0)
    }

    /// Axes of input `i`, counted from the front; all without that input.
    pub(super) fn axes(&self, i: usize, rank: usize) -> Option<Vec<usize>> {
        match self.input(i) {
            None => Some((0..rank).collect()),
            Some(_) => axes(&self.numbers(i)?, rank),
        }
    }

    /// The attribute `axis`, counted from the front; `None` if it is out of range.
    pub(super) fn axis(&self, default: i64, rank: usize) -> Option<usize> {
        axis(self.int("axis").unwrap_or(default), rank)
    }
}

/// The rank that the length of a vector of sizes gives.
fn rank(length: &Expr) -> Option<usize> {
    usize::try_from(length.as_int()?).ok().filter(|rank| *rank <= MAX_RANK)
}

/// Axes counted from the front; `None` if one is out of range.
pub(super) fn axes(given: &[i64], rank: usize) -> Option<Vec<usize>> {
    given.iter().map(|&a| axis(a, rank)).collect()
}
