//! Attribute values of nodes, and how they are read as Rust types.

use crate::{Node, RegionId, Type, schema::AttributeKind};
use pt2onnx_tensor::Tensor;
use std::borrow::Cow;

/// A node's attributes, in the order they were given.
pub type Attributes = Vec<(Cow<'static, str>, Attribute)>;

/// An attribute's value.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are ONNX's")]
pub enum Attribute {
    Float(f32),
    Int(i64),
    String(String),
    Tensor(Tensor),
    Region(RegionId),
    Type(Type),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Strings(Vec<String>),
    Tensors(Vec<Tensor>),
    Regions(Vec<RegionId>),
    Types(Vec<Type>),
    /// Inside a function: the function's own attribute of that name.
    Reference {
        name: String,
        kind: AttributeKind,
    },
    /// A string that is not UTF-8.
    Bytes(Vec<u8>),
    /// Strings of which not all are UTF-8.
    BytesList(Vec<Vec<u8>>),
}

impl Attribute {
    /// Its type in the schema's terms.
    pub fn kind(&self) -> AttributeKind {
        match self {
            Attribute::Float(_) => AttributeKind::Float,
            Attribute::Int(_) => AttributeKind::Int,
            Attribute::String(_) | Attribute::Bytes(_) => AttributeKind::String,
            Attribute::Tensor(_) => AttributeKind::Tensor,
            Attribute::Region(_) => AttributeKind::Graph,
            Attribute::Type(_) => AttributeKind::TypeProto,
            Attribute::Floats(_) => AttributeKind::Floats,
            Attribute::Ints(_) => AttributeKind::Ints,
            Attribute::Strings(_) | Attribute::BytesList(_) => AttributeKind::Strings,
            Attribute::Tensors(_) => AttributeKind::Tensors,
            Attribute::Regions(_) => AttributeKind::Graphs,
            Attribute::Types(_) => AttributeKind::TypeProtos,
            Attribute::Reference { kind, .. } => *kind,
        }
    }

    /// The regions it holds.
    pub fn regions(&self) -> &[RegionId] {
        match self {
            Attribute::Region(r) => std::slice::from_ref(r),
            Attribute::Regions(rs) => rs,
            _ => &[],
        }
    }
}

macro_rules! from {
    ($($t:ty => $v:ident),*) => {$(
        impl From<$t> for Attribute {
            fn from(v: $t) -> Self {
                Attribute::$v(v)
            }
        }
    )*};
}
from!(f32 => Float, i64 => Int, String => String, Tensor => Tensor, RegionId => Region, Type => Type,
      Vec<f32> => Floats, Vec<i64> => Ints, Vec<String> => Strings, Vec<Tensor> => Tensors, Vec<Type> => Types);

impl From<&str> for Attribute {
    fn from(v: &str) -> Self {
        Attribute::String(v.to_owned())
    }
}
impl From<&[i64]> for Attribute {
    fn from(v: &[i64]) -> Self {
        Attribute::Ints(v.to_vec())
    }
}
impl From<&[f32]> for Attribute {
    fn from(v: &[f32]) -> Self {
        Attribute::Floats(v.to_vec())
    }
}

/// The attributes of an emission: pairs of name and value.
pub(crate) fn attributes<const N: usize>(given: [(&'static str, Attribute); N]) -> Attributes {
    given.into_iter().map(|(n, a)| (n.into(), a)).collect()
}

/// Why an attribute could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttributeError {
    /// A required attribute is missing.
    #[error("{op} needs the attribute {name}")]
    Missing {
        /// Operator of the node.
        op: String,
        /// Name of the attribute.
        name: &'static str,
    },
    /// An attribute has another type than the operator's schema says.
    #[error("attribute {name} of {op} is {expected:?}, given is {given:?}")]
    Mistyped {
        /// Operator of the node.
        op: String,
        /// Name of the attribute.
        name: &'static str,
        /// The type wanted.
        expected: AttributeKind,
        /// The type that it has.
        given: AttributeKind,
    },
    /// An attribute in a function refers to an attribute of the function: each call gives it another value.
    #[error(
        "attribute {name} of {op} is the function's attribute {of}: its value is not known here"
    )]
    Reference {
        /// Operator of the node.
        op: String,
        /// Name of the attribute.
        name: &'static str,
        /// Name of the function's attribute.
        of: String,
    },
    /// A string is not UTF-8.
    #[error("attribute {name} of {op} is not UTF-8")]
    NotUtf8 {
        /// Operator of the node.
        op: String,
        /// Name of the attribute.
        name: &'static str,
    },
}

/// A Rust type that attributes are read as, by [`Node::read`].
pub trait FromAttribute<'a>: Sized {
    /// The type that the attribute must have.
    const KIND: AttributeKind;

    /// The value, if the attribute holds one of that type.
    fn from_attribute(attribute: &'a Attribute) -> Option<Self>;
}

macro_rules! read_as {
    ($($t:ty, $kind:ident, $v:ident => $value:expr;)*) => {$(
        impl<'a> FromAttribute<'a> for $t {
            const KIND: AttributeKind = AttributeKind::$kind;

            fn from_attribute(attribute: &'a Attribute) -> Option<Self> {
                match attribute {
                    Attribute::$kind($v) => Some($value),
                    _ => None,
                }
            }
        }
    )*};
}
read_as! {
    i64, Int, v => *v;
    bool, Int, v => *v != 0;
    f32, Float, v => *v;
    &'a str, String, v => v;
    String, String, v => v.clone();
    &'a Tensor, Tensor, v => v;
    Tensor, Tensor, v => v.clone();
    &'a [i64], Ints, v => v;
    Vec<i64>, Ints, v => v.clone();
    &'a [f32], Floats, v => v;
    Vec<f32>, Floats, v => v.clone();
    &'a [String], Strings, v => v;
    Vec<String>, Strings, v => v.clone();
}

impl FromAttribute<'_> for RegionId {
    const KIND: AttributeKind = AttributeKind::Graph;

    fn from_attribute(attribute: &Attribute) -> Option<Self> {
        match attribute {
            Attribute::Region(region) => Some(*region),
            _ => None,
        }
    }
}

impl FromAttribute<'_> for Type {
    const KIND: AttributeKind = AttributeKind::TypeProto;

    fn from_attribute(attribute: &Attribute) -> Option<Self> {
        match attribute {
            Attribute::Type(ty) => Some(ty.clone()),
            _ => None,
        }
    }
}

impl Node {
    /// Reads the attribute of that name; `None` if the node does not have it. An integer is read as `i64`, or as
    /// `bool` (not 0), a string as `&str`. [`attrs`](crate::attrs) reads all attributes of an ONNX operator.
    ///
    /// # Errors
    /// It has another type, refers to an attribute of a function, or is a string that is not UTF-8.
    pub fn read<'a, T: FromAttribute<'a>>(
        &'a self,
        name: &'static str,
    ) -> Result<Option<T>, AttributeError> {
        let Some(attribute) = self.attribute(name) else {
            return Ok(None);
        };
        let op = || self.op().to_owned();
        T::from_attribute(attribute).map(Some).ok_or_else(|| match attribute {
            Attribute::Reference { name: of, .. } => {
                AttributeError::Reference { op: op(), name, of: of.clone() }
            }
            other if other.kind() == T::KIND => AttributeError::NotUtf8 { op: op(), name },
            other => {
                let (expected, given) = (T::KIND, other.kind());
                AttributeError::Mistyped { op: op(), name, expected, given }
            }
        })
    }

    /// Reads the attribute of that name, which the node must have.
    ///
    /// # Errors
    /// As [`Node::read`]; also if the node does not have it.
    pub fn read_required<'a, T: FromAttribute<'a>>(
        &'a self,
        name: &'static str,
    ) -> Result<T, AttributeError> {
        self.read(name)?.ok_or_else(|| AttributeError::Missing { op: self.op().to_owned(), name })
    }

    /// Gives an attribute a value: in its place if the node has it, else behind the others.
    pub fn set_attribute(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Attribute>,
    ) {
        let (name, value) = (name.into(), value.into());
        match self.attributes.iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => *old = value,
            None => self.attributes.push((name, value)),
        }
    }

    /// Removes an attribute; returns its value.
    pub fn remove_attribute(&mut self, name: &str) -> Option<Attribute> {
        let at = self.attributes.iter().position(|(n, _)| n == name)?;
        Some(self.attributes.remove(at).1)
    }
}
