//! Names, metadata, and the origins of nodes in the source program.

use crate::{Attributes, SharedText, ids::ModuleId};
use smol_str::SmolStr;
use std::{borrow::Cow, sync::Arc};

/// Name of a value, node or body. Cheap to clone.
pub type Name = SmolStr;

/// Keys and values of `metadata_props`.
pub type Metadata<T = Arc<str>> = Vec<(Cow<'static, str>, T)>;

/// A call of a module in the source program. The calls form a tree: the outermost one is the
/// program itself.
#[derive(Clone, Debug, Default)]
pub struct ModuleCall {
    /// The call that made this call; `None` for the program itself.
    pub parent: Option<ModuleId>,
    /// Path of the module in the program, such as `encoder.layer.0`. Several calls can be of one
    /// module.
    pub path: Name,
    /// Qualified name of its class, such as `torch.nn.modules.linear.Linear`.
    pub class: Name,
    /// Metadata for a node that stands for the call.
    pub metadata: Metadata<SharedText>,
    /// Attributes of the module for a node that calls its function. With them, even if there are
    /// none, other attributes of the function have names as torch.onnx.export gives them:
    /// `inferred::Conv_strides`.
    pub attributes: Option<Attributes>,
    pub(crate) depth: u32,
}

impl ModuleCall {
    /// A call that another call made.
    pub fn new(parent: Option<ModuleId>, path: impl Into<Name>, class: impl Into<Name>) -> Self {
        Self { parent, path: path.into(), class: class.into(), ..Self::default() }
    }
}

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
    pub metadata: Metadata<SharedText>,
    /// The call of a module that it is part of, if known.
    pub module: Option<ModuleId>,
}

impl Origin {
    /// Whether it only says to which call of a module a node belongs
    /// ([`Model::share`](crate::Model::share)).
    pub fn is_note(&self) -> bool {
        self.node.is_empty()
            && self.op.is_empty()
            && self.metadata.is_empty()
            && self.doc_string.is_none()
            && self.location.is_none()
    }
}
