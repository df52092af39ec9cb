//! Types, as schemas and code write them.

use crate::syntax::{Expr, ExprKind};
use pt2onnx_fx::Name;
use pt2onnx_tensor::DType;
use std::fmt;

/// A type.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Type {
    Tensor,
    Int,
    Float,
    Bool,
    Complex,
    /// `Scalar` of schemas, `number` of code.
    Number,
    Str,
    None,
    Device,
    Generator,
    DType,
    Layout,
    MemoryFormat,
    Any,
    List(Box<Type>),
    Optional(Box<Type>),
    Tuple(Vec<Type>),
    Dict(Box<Type>, Box<Type>),
    Union(Vec<Type>),
    /// A class of the archive or of C++, a type variable, or another type that is known by its name
    /// only.
    Named(Name),
}

impl Type {
    /// The type of this name without parts.
    fn simple(name: &str) -> Self {
        match name {
            "Tensor" => Self::Tensor,
            "int" | "SymInt" => Self::Int,
            "float" => Self::Float,
            "bool" | "SymBool" => Self::Bool,
            "complex" => Self::Complex,
            "number" | "Scalar" => Self::Number,
            "str" => Self::Str,
            "None" | "NoneType" => Self::None,
            "Device" => Self::Device,
            "Generator" => Self::Generator,
            "ScalarType" => Self::DType,
            "Layout" => Self::Layout,
            "MemoryFormat" => Self::MemoryFormat,
            "Any" => Self::Any,
            "list" => Self::List(Box::new(Self::Any)),
            "tuple" => Self::Tuple(Vec::new()),
            "dict" => Self::Dict(Box::new(Self::Any), Box::new(Self::Any)),
            _ => Self::Named(name.into()),
        }
    }

    /// The type that an expression of the code writes.
    pub fn of(expr: &Expr) -> Self {
        match &expr.kind {
            ExprKind::None => Self::None,
            ExprKind::Index(base, index) => {
                let parts = match &index.kind {
                    ExprKind::Tuple(items) => items.iter().map(Self::of).collect(),
                    _ => vec![Self::of(index)],
                };
                Self::compound(&base.dotted().unwrap_or_default(), parts)
            }
            _ => Self::simple(&expr.dotted().unwrap_or_default()),
        }
    }

    fn compound(name: &str, mut parts: Vec<Self>) -> Self {
        let mut take = || Box::new(parts.pop().unwrap_or(Self::Any));
        match name {
            "List" | "list" => Self::List(take()),
            "Optional" => Self::Optional(take()),
            "Final" => *take(),
            "Dict" | "dict" => {
                let value = take();
                Self::Dict(take(), value)
            }
            "Tuple" | "tuple" => Self::Tuple(parts),
            "Union" => Self::Union(parts),
            _ => Self::Named(name.into()),
        }
    }

    /// The type of the numbers that a tensor of this element type holds.
    pub fn of_elements(dtype: DType) -> Self {
        match dtype {
            DType::Bool => Self::Bool,
            _ if dtype.is_float() => Self::Float,
            _ => Self::Int,
        }
    }

    /// Without the possibility to be None.
    pub fn given(&self) -> &Self {
        match self {
            Self::Optional(inner) => inner.given(),
            other => other,
        }
    }
}

impl From<pt2onnx_schemas::Type<'_>> for Type {
    fn from(ty: pt2onnx_schemas::Type<'_>) -> Self {
        use pt2onnx_schemas::Type as Text;
        let boxed = |inner: Box<Text>| Box::new(Self::from(*inner));
        match ty {
            Text::Named(name) => Self::simple(name),
            Text::List(inner) => Self::List(boxed(inner)),
            Text::Optional(inner) => Self::Optional(boxed(inner)),
            Text::Generic("", parts) => Self::Tuple(parts.into_iter().map(Self::from).collect()),
            Text::Generic(name, parts) => {
                Self::compound(name, parts.into_iter().map(Self::from).collect())
            }
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, name: &str, parts: &[Type]| {
            let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
            write!(f, "{name}[{}]", parts.join(", "))
        };
        f.write_str(match self {
            Self::Tensor => "Tensor",
            Self::Int => "int",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Complex => "complex",
            Self::Number => "number",
            Self::Str => "str",
            Self::None => "None",
            Self::Device => "Device",
            Self::Generator => "Generator",
            Self::DType => "dtype",
            Self::Layout => "layout",
            Self::MemoryFormat => "memory_format",
            Self::Any => "Any",
            Self::List(inner) => return write!(f, "List[{inner}]"),
            Self::Optional(inner) => return write!(f, "Optional[{inner}]"),
            Self::Dict(key, value) => return write!(f, "Dict[{key}, {value}]"),
            Self::Tuple(parts) => return list(f, "Tuple", parts),
            Self::Union(parts) => return list(f, "Union", parts),
            Self::Named(name) => name,
        })
    }
}
