//! Attribute values of nodes.

use crate::{
    ids::RegionId,
    schema::{AttributeDefault, AttributeKind},
    types::Type,
};
use pt2onnx_tensor::Tensor;
use std::borrow::Cow;

/// The attributes of a node, in order: names and values.
pub type Attributes = Vec<(Cow<'static, str>, Attribute)>;

/// The value of an attribute.
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
    /// In a function: a reference to an attribute of the function, with its name and type.
    Reference {
        name: String,
        kind: AttributeKind,
    },
    /// A string that is not UTF-8.
    Bytes(Vec<u8>),
    /// Strings, some of them not UTF-8.
    BytesList(Vec<Vec<u8>>),
}

impl Attribute {
    /// Its type.
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

    /// Whether two attributes are equal: floats by their bits, tensors as `same_tensor` decides,
    /// bodies never.
    pub fn equals(&self, other: &Self, same_tensor: impl Fn(&Tensor, &Tensor) -> bool) -> bool {
        use Attribute::*;
        let bits = |floats: &[f32]| floats.iter().map(|f| f.to_bits()).collect::<Vec<_>>();
        match (self, other) {
            (Float(a), Float(b)) => a.to_bits() == b.to_bits(),
            (Int(a), Int(b)) => a == b,
            (String(a), String(b)) => a == b,
            (Ints(a), Ints(b)) => a == b,
            (Strings(a), Strings(b)) => a == b,
            (Floats(a), Floats(b)) => bits(a) == bits(b),
            (Tensor(a), Tensor(b)) => same_tensor(a, b),
            (Type(a), Type(b)) => a == b,
            (Reference { name: a, .. }, Reference { name: b, .. }) => a == b,
            _ => false,
        }
    }

    /// The integer or integers that it holds.
    pub fn ints(&self) -> &[i64] {
        match self {
            Attribute::Int(one) => std::slice::from_ref(one),
            Attribute::Ints(all) => all,
            _ => &[],
        }
    }

    /// The bodies that it holds.
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
                Attribute::$v(v.into())
            }
        }
    )*};
}
from!(f32 => Float, i64 => Int, String => String, Tensor => Tensor, RegionId => Region, Type => Type,
      Vec<f32> => Floats, Vec<i64> => Ints, Vec<String> => Strings, Vec<Tensor> => Tensors, Vec<Type> => Types,
      &str => String, &[i64] => Ints, &[f32] => Floats);

impl From<&AttributeDefault> for Attribute {
    fn from(default: &AttributeDefault) -> Self {
        match default {
            AttributeDefault::Float(x) => Attribute::Float(*x),
            AttributeDefault::Int(x) => Attribute::Int(*x),
            AttributeDefault::String(x) => (*x).into(),
            AttributeDefault::Floats(xs) => (*xs).into(),
            AttributeDefault::Ints(xs) => (*xs).into(),
            AttributeDefault::Strings(xs) => {
                Attribute::Strings(xs.iter().map(|x| (*x).to_owned()).collect())
            }
        }
    }
}

/// Attributes from pairs of name and value.
pub(crate) fn attributes<const N: usize>(given: [(&'static str, Attribute); N]) -> Attributes {
    given.into_iter().map(|(n, a)| (n.into(), a)).collect()
}
