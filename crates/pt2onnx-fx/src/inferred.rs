//! Results of a node as inferred where PyTorch recorded nothing: types, and elements
//! where they are known.

use crate::graph::ValueMeta;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;

/// A result of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A tensor or a number.
    One(Typed),
    /// A list of tensors: `split`, `unbind`.
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

    /// The same.
    pub fn typed_mut(&mut self) -> &mut [Typed] {
        match self {
            Self::One(one) => std::slice::from_mut(one),
            Self::List(all) => all,
            Self::None => &mut [],
        }
    }
}

/// The type of a value, and its elements where they are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// The type. A tensor has no strides here where they are not known.
    pub meta: ValueMeta,
    /// The elements. `None` says that they are not known.
    pub contents: Option<Contents>,
}

impl From<ValueMeta> for Typed {
    fn from(meta: ValueMeta) -> Self {
        Self { meta, contents: None }
    }
}

/// Known elements of a tensor.
#[derive(Clone, Debug)]
pub enum Contents {
    /// All elements.
    Exact(Tensor),
    /// The elements of a tensor of rank 0 or 1, as expressions over sizes. Truth values are 0 and
    /// 1, or relations.
    Exprs(Vec<Expr>),
}

impl PartialEq for Contents {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exprs(a), Self::Exprs(b)) => a == b,
            (Self::Exact(a), Self::Exact(b)) => {
                (a.dtype(), a.shape()) == (b.dtype(), b.shape()) && a.to_bytes() == b.to_bytes()
            }
            _ => false,
        }
    }
}
