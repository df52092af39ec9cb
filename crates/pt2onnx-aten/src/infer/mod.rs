//! Types of the results of single nodes, for programs without PyTorch's records: TorchScript.
//!
//! [`Registry::infer`](crate::Registry::infer) tells what `torch.export` would have recorded. A rule of `pt2onnx-meta` tells it, or else the lowering: it
//! runs in a scratch model, and the types of what it emits are the answer if it never asks for a record. Where neither knows, it is
//! an error.

mod node;
mod scratch;

use pt2onnx_fx::graph::{Name, ValueMeta, Values};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

/// What is known of the values that a node reads.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Their types by name.
    pub values: &'a Values,
    /// Their elements by name, where they are known.
    pub contents: &'a FxHashMap<Name, Contents>,
    /// Ranges and relations of the symbols in sizes.
    pub constraints: &'a Constraints,
    /// The type of floats that have no other: `torch.get_default_dtype()` of the process that ran the program.
    pub default_dtype: DType,
}

/// Known elements of a tensor.
#[derive(Clone, Debug)]
pub enum Contents {
    /// All elements.
    Exact(Tensor),
    /// The elements of an integer tensor of rank 0 or 1, as expressions over sizes.
    Exprs(Vec<Expr>),
}

/// A result of a node.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A tensor or a number.
    One(Typed),
    /// A list of tensors.
    List(Vec<Typed>),
    /// An optional tensor that is None.
    None,
}

impl Outcome {
    /// The tensors or numbers of the result.
    pub fn typed(&self) -> &[Typed] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::List(all) => all,
            Self::None => &[],
        }
    }
}

/// The type of a result, and its elements where they are known.
#[derive(Clone, Debug)]
pub struct Typed {
    /// The type. Strides are not known: a tensor has none here.
    pub meta: ValueMeta,
    /// The elements, of integer vectors and scalars only.
    pub contents: Option<Vec<Expr>>,
}

/// Gives new symbols: for sizes and integers that depend on data, and for floats if it is told `true`.
pub type NewSymbol<'a> = dyn FnMut(bool) -> Expr + 'a;
