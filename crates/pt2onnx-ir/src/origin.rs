//! Names, metadata, and the origins of nodes in the source program.

use crate::ids::ModuleId;
use smol_str::SmolStr;
use std::{borrow::Cow, sync::Arc};

/// Name of a value, node or body. Cheap to clone.
pub type Name = SmolStr;

/// Keys and values of `metadata_props`.
pub type Metadata = Vec<(Cow<'static, str>, Arc<str>)>;

/// A node of the source program that nodes of the model were made from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Name of the source node.
    pub node: Name,
    /// Its operator, such as `aten.relu.default`.
    pub op: Arc<str>,
    /// The user's source line, as `file.py:12`.
    pub location: Option<Arc<str>>,
    /// Its documentation, if the source program is an ONNX file.
    pub doc_string: Option<Arc<str>>,
    /// Metadata for every node that was made from it.
    pub metadata: Metadata,
    /// The call of a module that it is part of, if known.
    pub module: Option<ModuleId>,
}

impl Origin {
    /// Whether it only says to which call of a module a node belongs ([`Model::share`](crate::Model::share)).
    pub fn is_note(&self) -> bool {
        self.node.is_empty()
            && self.op.is_empty()
            && self.metadata.is_empty()
            && self.doc_string.is_none()
            && self.location.is_none()
    }
}
