//! The schema of an overload, with the types of code.

use crate::schema::types::Type;
use pt2onnx_fx::Name;

/// The schema of an overload.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// `aten`.
    pub namespace: Name,
    /// `add`.
    pub name: Name,
    /// `Tensor`; empty for the default overload.
    pub overload: Name,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Results in order.
    pub returns: Vec<Return>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: Type,
    /// The length of a list of a fixed length, for which one number may stand: `int[2]`.
    pub length: Option<usize>,
    /// Whether it need not be given.
    pub has_default: bool,
    /// Whether it is given by name only.
    pub keyword: bool,
    /// The memory that it stands for, as results name it: `a` of `Tensor(a!)`.
    pub alias: Option<char>,
    /// Whether the operator writes into it.
    pub written: bool,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub struct Return {
    /// Its type.
    pub ty: Type,
    /// The parameter whose memory it may be.
    pub alias: Option<char>,
}

impl Schema {
    /// Parses a schema; `None` if the text is not one, or has types that no call of a flattened
    /// program has.
    pub fn parse(text: &str) -> Option<Self> {
        let schema = pt2onnx_schemas::Schema::parse(text)?;
        let params = schema.params.into_iter().map(|param| Param {
            name: param.name.into(),
            ty: param.slot.ty.into(),
            length: param.slot.length,
            has_default: param.default.is_some(),
            keyword: param.keyword,
            alias: param.slot.alias,
            written: param.slot.written,
        });
        let returns = schema.returns.into_iter();
        Some(Self {
            namespace: schema.namespace.into(),
            name: schema.name.into(),
            overload: schema.overload.into(),
            params: params.collect(),
            returns: returns.map(|slot| Return { ty: slot.ty.into(), alias: slot.alias }).collect(),
        })
    }

    /// `aten::add.Tensor`.
    pub fn qualified(&self) -> String {
        let dot = if self.overload.is_empty() { "" } else { "." };
        format!("{}::{}{dot}{}", self.namespace, self.name, self.overload)
    }
}
