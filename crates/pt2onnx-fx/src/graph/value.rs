//! Types, sizes and strides of values.

use super::{
    device::{Device, Layout},
    name::Name,
};
use indexmap::IndexMap;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar, Tensor};
use rustc_hash::FxBuildHasher;
use std::{fmt, sync::Arc};

/// The types of the values of a graph, by name.
pub type Values = IndexMap<Name, ValueMeta, FxBuildHasher>;

/// The type of a value, and its size or expression.
///
/// The enum is exhaustive on purpose: if a kind is added, the compiler finds each place that must
/// handle it.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueMeta {
    /// A tensor. Many tensors are alike: the type is shared.
    Tensor(Arc<TensorMeta>),
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

impl ValueMeta {
    /// The type of a tensor; `None` if it is another kind of value.
    pub fn tensor(&self) -> Option<&TensorMeta> {
        match self {
            Self::Tensor(meta) => Some(meta),
            _ => None,
        }
    }

    /// The value of a number; `None` if it is another kind of value.
    pub fn expr(&self) -> Option<&Expr> {
        match self {
            Self::SymInt { expr, .. }
            | Self::SymFloat { expr, .. }
            | Self::SymBool { expr, .. } => Some(expr),
            Self::Tensor(_) | Self::CustomObj { .. } => None,
        }
    }
}

/// `float32[s0, 3]`, `int s0 + 1`, `object of CLASS`.
impl fmt::Display for ValueMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor(meta) => {
                let sizes: Vec<String> = meta.sizes.iter().map(ToString::to_string).collect();
                write!(f, "{}[{}]", meta.dtype, sizes.join(", "))
            }
            Self::SymInt { expr, .. } => write!(f, "int {expr}"),
            Self::SymFloat { expr, .. } => write!(f, "float {expr}"),
            Self::SymBool { expr, .. } => write!(f, "bool {expr}"),
            Self::CustomObj { class } => write!(f, "object of {class}"),
        }
    }
}

impl From<TensorMeta> for ValueMeta {
    fn from(meta: TensorMeta) -> Self {
        Self::Tensor(Arc::new(meta))
    }
}

/// The value that an expression had for the example inputs.
pub type Hint = Scalar;

/// The type, sizes and layout of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMeta {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub sizes: Vec<Expr>,
    /// Strides, in elements.
    pub strides: Vec<Expr>,
    /// Index of the first element in the storage.
    pub storage_offset: Expr,
    /// Whether autograd computes its gradient.
    pub requires_grad: bool,
    /// The device that it was on at export.
    pub device: Device,
    /// Dense or one of the sparse layouts.
    pub layout: Layout,
}

impl TensorMeta {
    /// Describes a tensor with data.
    pub fn of(tensor: &Tensor) -> Self {
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
