//! Names, metadata, and where nodes come from in the source program.

use smol_str::SmolStr;
use std::{borrow::Cow, sync::Arc};

/// Name of a value, node or body. Cheap to clone.
pub type Name = SmolStr;

/// Keys and values that are written as `metadata_props`.
pub type Metadata = Vec<(Cow<'static, str>, Arc<str>)>;

/// What in the source program nodes were made from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Name of the source node.
    pub node: Name,
    /// Its operator, such as `aten.relu.default`.
    pub op: Arc<str>,
    /// The user's source line, as `file.py:12`.
    pub location: Option<Arc<str>>,
    /// Its documentation, if it was a node of an ONNX file.
    pub doc_string: Option<Arc<str>>,
    /// Metadata for every node made from it.
    pub metadata: Metadata,
}
