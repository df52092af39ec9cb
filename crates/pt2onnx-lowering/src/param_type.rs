//! Types of the parameters of ops.

use pt2onnx_schemas::Type;
use std::fmt;

/// The type of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamType {
    /// The name of the type, or of the list's elements: `Tensor`, `int`, `SymInt`, `Scalar`,
    /// `bool`, `str`, `ScalarType`, ...
    pub base: String,
    /// Whether it is a list.
    pub list: bool,
    /// Whether the elements of the list may be None.
    pub optional_elements: bool,
    /// Whether it may be None.
    pub optional: bool,
}

impl ParamType {
    /// The type `base`: not a list, never None.
    pub fn of(base: &str) -> Self {
        let base = base.to_owned();
        Self { base, list: false, optional_elements: false, optional: false }
    }

    /// Whether it is one of these types, not a list, and never None.
    pub fn is_one_of(&self, bases: &[&str]) -> bool {
        !self.list && !self.optional && bases.contains(&&*self.base)
    }

    /// Whether it is a list of one of these types, and never None itself.
    pub fn is_list_of(&self, bases: &[&str]) -> bool {
        self.list && !self.optional && bases.contains(&&*self.base)
    }
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |on: bool, mark| if on { mark } else { "" };
        let (list, elements) = (mark(self.list, "[]"), mark(self.optional_elements, "?"));
        write!(f, "{}{elements}{list}{}", self.base, mark(self.optional, "?"))
    }
}

impl From<Type<'_>> for ParamType {
    fn from(ty: Type<'_>) -> Self {
        let (ty, optional) = match ty {
            Type::Optional(inner) => (*inner, true),
            other => (other, false),
        };
        let (ty, list) = match ty {
            Type::List(element) => (*element, true),
            other => (other, false),
        };
        let (ty, optional_elements) = match ty {
            Type::Optional(element) => (*element, true),
            other => (other, false),
        };
        Self { base: ty.to_string(), list, optional_elements, optional }
    }
}
