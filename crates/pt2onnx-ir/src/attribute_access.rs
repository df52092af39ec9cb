//! Reads attributes of nodes as Rust types, and sets them.

use crate::{attribute::Attribute, ids::RegionId, node::Node, schema::AttributeKind, types::Type};
use pt2onnx_tensor::Tensor;
use std::borrow::Cow;

/// Why an attribute could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum AttributeError {
    #[error("{op} needs the attribute {name}")]
    Missing { op: String, name: &'static str },
    #[error("attribute {name} of {op} must be {expected:?}, but is {given:?}")]
    Mistyped { op: String, name: &'static str, expected: AttributeKind, given: AttributeKind },
    #[error(
        "attribute {name} of {op} refers to attribute {of} of the function, so each call has another value"
    )]
    Reference { op: String, name: &'static str, of: String },
    #[error("attribute {name} of {op} is not UTF-8")]
    NotUtf8 { op: String, name: &'static str },
}

/// A Rust type that [`Node::read`] can read attributes as.
pub trait FromAttribute<'a>: Sized {
    /// The type of attribute that is read.
    const KIND: AttributeKind;

    /// The value of an attribute; `None` if it has another type.
    fn from_attribute(attribute: &'a Attribute) -> Option<Self>;
}

macro_rules! read_as {
    ($($t:ty, $kind:ident, $variant:ident($v:ident) => $value:expr;)*) => {$(
        impl<'a> FromAttribute<'a> for $t {
            const KIND: AttributeKind = AttributeKind::$kind;

            fn from_attribute(attribute: &'a Attribute) -> Option<Self> {
                match attribute {
                    Attribute::$variant($v) => Some($value),
                    _ => None,
                }
            }
        }
    )*};
}
read_as! {
    i64, Int, Int(v) => *v;
    bool, Int, Int(v) => *v != 0;
    f32, Float, Float(v) => *v;
    &'a str, String, String(v) => v;
    String, String, String(v) => v.clone();
    &'a Tensor, Tensor, Tensor(v) => v;
    Tensor, Tensor, Tensor(v) => v.clone();
    &'a [i64], Ints, Ints(v) => v;
    Vec<i64>, Ints, Ints(v) => v.clone();
    &'a [f32], Floats, Floats(v) => v;
    Vec<f32>, Floats, Floats(v) => v.clone();
    &'a [String], Strings, Strings(v) => v;
    Vec<String>, Strings, Strings(v) => v.clone();
    RegionId, Graph, Region(v) => *v;
    Type, TypeProto, Type(v) => v.clone();
}

impl Node {
    /// Reads the attribute of that name; `None` if the node does not have it. An integer can be
    /// read as `i64`, or as `bool` (true if not 0). [`attrs`](crate::attrs) reads all attributes of
    /// an ONNX operator.
    ///
    /// # Errors
    /// Returns an error if the attribute has another type, refers to an attribute of a function, or
    /// is a string that is not UTF-8.
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

    /// Reads a required attribute.
    ///
    /// # Errors
    /// As [`Node::read`]. Also returns an error if the node does not have the attribute.
    pub fn read_required<'a, T: FromAttribute<'a>>(
        &'a self,
        name: &'static str,
    ) -> Result<T, AttributeError> {
        self.read(name)?.ok_or_else(|| AttributeError::Missing { op: self.op().to_owned(), name })
    }

    /// Sets an attribute. A new one is added after the others.
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

    /// Removes an attribute and returns its value; `None` if the node does not have it.
    pub fn remove_attribute(&mut self, name: &str) -> Option<Attribute> {
        let at = self.attributes.iter().position(|(n, _)| n == name)?;
        Some(self.attributes.remove(at).1)
    }
}
