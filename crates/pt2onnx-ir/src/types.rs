//! Types of values: element types and symbolic shapes.

use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};
use std::fmt;

/// Sizes of a tensor, each a number or an expression over symbols.
pub type Shape = Vec<Expr>;

/// Type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A dense tensor.
    Tensor(TensorType),
    /// A sequence of values of one type.
    Sequence(Box<Type>),
    /// A value that may be absent.
    Optional(Box<Type>),
    /// A map from integers or strings to values of one type.
    Map(DType, Box<Type>),
    /// A sparse tensor, with the sizes of the dense one.
    Sparse(TensorType),
    /// An opaque type: its domain, and its name there.
    Opaque(Box<(String, String)>),
}

/// Type of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Sizes; `None` if the rank is not known.
    pub shape: Option<Shape>,
}

impl Type {
    /// A tensor of known rank.
    pub fn tensor(dtype: DType, shape: impl Into<Shape>) -> Self {
        Type::Tensor(TensorType { dtype, shape: Some(shape.into()) })
    }

    /// The type of a tensor.
    pub fn of(tensor: &Tensor) -> Self {
        let sizes: Vec<Expr> = tensor.shape().iter().map(|&size| Expr::int(size as i64)).collect();
        Type::tensor(tensor.dtype(), sizes)
    }

    /// The type of a tensor; `None` for other types.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// The first of two types of a value, or the second one if only that has sizes.
    pub fn fuller(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        let sized = |ty: &Option<Self>| ty.as_ref().is_some_and(Self::has_shape);
        if sized(&second) && !sized(&first) { second } else { first.or(second) }
    }

    /// Whether it is that of a tensor of known rank.
    pub fn has_shape(&self) -> bool {
        self.as_tensor().is_some_and(|tensor| tensor.shape.is_some())
    }
}

/// Whether a dimension is unknown: a symbol that no program can have.
pub fn is_unknown(dim: &Expr) -> bool {
    dim.as_symbol().is_some_and(is_unknown_symbol)
}

/// Whether a symbol stands for an unknown dimension.
pub fn is_unknown_symbol(name: &str) -> bool {
    name.starts_with('?')
}

/// The symbol of an unknown dimension.
pub(crate) fn unknown_symbol(number: usize) -> Expr {
    Expr::symbol(&format!("?{number}"))
}

/// The name of an element type in ONNX text: `float`, `double`, `int64`.
pub(crate) fn onnx_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C32 => "complex32",
        DType::F8E4M3FN => "float8e4m3fn",
        DType::F8E4M3FNUZ => "float8e4m3fnuz",
        DType::F8E5M2 => "float8e5m2",
        DType::F8E5M2FNUZ => "float8e5m2fnuz",
        DType::F8E8M0 => "float8e8m0",
        DType::F4E2M1 => "float4e2m1",
        other => other.name(),
    }
}

/// The name of the element type in a formal type of tensors: `int64` in `tensor(int64)`.
pub(crate) fn element_name(formal: &str) -> Option<&str> {
    formal.strip_prefix("tensor(")?.strip_suffix(')')
}

/// The element type with that name in ONNX text; the inverse of [`onnx_name`].
pub(crate) fn from_onnx_name(name: &str) -> Option<DType> {
    DType::ALL.iter().copied().find(|&d| onnx_name(d) == name)
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Tensor(t) => t.fmt(f),
            Type::Sequence(t) => write!(f, "seq({t})"),
            Type::Optional(t) => write!(f, "optional({t})"),
            Type::Map(key, t) => write!(f, "map({}, {t})", onnx_name(*key)),
            Type::Sparse(t) => write!(f, "sparse_tensor({t})"),
            Type::Opaque(names) => write!(f, "opaque({:?}, {:?})", names.0, names.1),
        }
    }
}

/// Whether a symbol needs no quotes.
fn is_identifier(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.')
}

/// As ONNX text: `float[N,8]`, `float[]` if the rank is unknown, `float` if the tensor is 0-d.
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(onnx_name(self.dtype))?;
        match &self.shape {
            None => f.write_str("[]"),
            Some(dims) if dims.is_empty() => Ok(()),
            Some(dims) => {
                for (i, dim) in dims.iter().enumerate() {
                    f.write_str(if i == 0 { "[" } else { "," })?;
                    match dim.as_symbol() {
                        _ if is_unknown(dim) => f.write_str("?")?,
                        Some(name) if is_identifier(name) => f.write_str(name)?,
                        Some(name) => write!(f, "{name:?}")?,
                        None if dim.as_int().is_some() => write!(f, "{dim}")?,
                        None => write!(f, "\"{dim}\"")?,
                    }
                }
                f.write_str("]")
            }
        }
    }
}
