//! Defines the functions of a model.

use crate::{Attributes, Metadata, RegionId};
use indexmap::IndexMap;

/// A function of a model (ONNX: model-local function). Nodes of its domain, name and overload call
/// it.
#[derive(Clone, Debug)]
pub struct Function {
    /// Domain of the nodes that call it.
    pub domain: String,
    /// Operator type of the nodes that call it.
    pub name: String,
    /// Distinguishes functions with the same domain and name; mostly empty.
    pub overload: String,
    /// Names of the attributes that its body may refer to.
    pub attributes: Vec<String>,
    /// More attributes, with the values for calls that do not give them.
    pub defaults: Attributes,
    /// Versions of the domains that the body uses. If empty, those of the model.
    pub imports: IndexMap<String, u32>,
    /// Documentation.
    pub doc_string: Option<String>,
    /// Its `metadata_props`.
    pub metadata: Metadata,
    /// Its body. The inputs and outputs of the body are those of the function.
    pub body: RegionId,
}

impl Function {
    /// A function without attributes.
    pub fn new(domain: impl Into<String>, name: impl Into<String>, body: RegionId) -> Self {
        Self {
            domain: domain.into(),
            name: name.into(),
            overload: String::new(),
            attributes: Vec::new(),
            defaults: Attributes::new(),
            imports: IndexMap::new(),
            doc_string: None,
            metadata: Metadata::new(),
            body,
        }
    }

    /// Its calls are recognised by these.
    pub(crate) fn key(&self) -> Key<'_> {
        (&self.domain, &self.name, &self.overload)
    }

    /// Domain and name, for errors.
    pub(crate) fn called(&self) -> String {
        format!("{}.{}", self.domain, self.name)
    }

    /// Whether both have the same domain, name and overload.
    pub fn is_same_as(&self, other: &Function) -> bool {
        self.key() == other.key()
    }
}

/// Domain, name and overload.
pub(crate) type Key<'a> = (&'a str, &'a str, &'a str);
