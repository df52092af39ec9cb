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
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum ValueMeta {
    /// A tensor. Many tensors are alike: the type is shared.
    Tensor(Arc<TensorMeta>),
    /// A number that may be symbolic.
    SymInt {
        expr: Expr,
        hint: Option<Hint>,
    },
    SymFloat {
        expr: Expr,
        hint: Option<Hint>,
    },
    /// The value is a relation, 0 or 1.
    SymBool {
        expr: Expr,
        hint: Option<Hint>,
    },
    /// A script object or opaque Python object, by the qualified name of its class.
    CustomObj {
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
    /// A tensor on the CPU, at the start of its storage.
    pub fn strided(dtype: DType, sizes: Vec<Expr>, strides: Vec<Expr>) -> Self {
        Self {
            dtype,
            sizes,
            strides,
            storage_offset: Expr::ZERO,
            requires_grad: false,
            device: Device { kind: "cpu".into(), index: None },
            layout: Layout::Strided,
        }
    }

    /// Describes a tensor with data.
    pub fn of(tensor: &Tensor) -> Self {
        let int = |&size: &usize| Expr::int(i64::try_from(size).unwrap_or(i64::MAX));
        let ints = |all: &[usize]| all.iter().map(int).collect();
        let (sizes, strides) = (ints(tensor.shape()), ints(&tensor.strides()));
        let storage_offset = int(&tensor.offset());
        Self { storage_offset, ..Self::strided(tensor.dtype(), sizes, strides) }
    }
}
