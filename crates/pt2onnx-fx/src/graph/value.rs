//! What is known of values: types, sizes, strides.

use super::{
    device::{Device, Layout},
    name::Name,
};
use indexmap::IndexMap;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar, Tensor};
use rustc_hash::FxBuildHasher;

/// What is known of each value of a graph.
pub type Values = IndexMap<Name, ValueMeta, FxBuildHasher>;

/// What is known of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueMeta {
    /// A tensor.
    Tensor(Box<TensorMeta>),
    /// An integer that may be symbolic.
    SymInt {
        /// Its value.
        expr: Expr,
        /// Its value for the example inputs.
        hint: Option<Hint>,
    },
    /// A float that may be symbolic.
    SymFloat {
        /// Its value: a number, or a sympy expression.
        expr: Expr,
        /// Its value for the example inputs.
        hint: Option<Hint>,
    },
    /// A truth value that may be symbolic.
    SymBool {
        /// The relation, 0 or 1.
        expr: Expr,
        /// Its value for the example inputs.
        hint: Option<Hint>,
    },
    /// A script object or opaque Python object.
    CustomObj {
        /// Qualified name of its class.
        class: Name,
    },
}

impl From<TensorMeta> for ValueMeta {
    fn from(meta: TensorMeta) -> Self {
        Self::Tensor(Box::new(meta))
    }
}

/// The value an expression had for the example inputs.
pub type Hint = Scalar;

/// What is known of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMeta {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub sizes: Vec<Expr>,
    /// Strides, in elements.
    pub strides: Vec<Expr>,
    /// First element in the storage.
    pub storage_offset: Expr,
    /// Whether autograd follows it.
    pub requires_grad: bool,
    /// Where it lived.
    pub device: Device,
    /// Dense or one of the sparse layouts.
    pub layout: Layout,
}

impl TensorMeta {
    /// Of a tensor with values.
    pub(crate) fn of(tensor: &Tensor) -> Self {
        let int = |&size: &usize| Expr::int(i64::try_from(size).unwrap_or(i64::MAX));
        Self {
            dtype: tensor.dtype(),
            sizes: tensor.shape().iter().map(int).collect(),
            strides: tensor.strides().iter().map(int).collect(),
            storage_offset: int(&tensor.offset()),
            requires_grad: false,
            device: Device { kind: "cpu".into(), index: None },
            layout: Layout::Strided,
        }
    }
}
