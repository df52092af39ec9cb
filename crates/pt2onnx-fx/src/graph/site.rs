//! How messages name a node.

use super::{
    meta::{SourceLine, place},
    name::Name,
    node::Node,
    op_name::OpName,
};
use std::sync::Arc;

/// A node in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Name of the node.
    pub node: Name,
    /// The operator or function that it calls.
    pub target: OpName,
    /// Path of the module it ran in: `layer1.0`; empty for the root, `None` if not known.
    pub module: Option<Name>,
    /// Class of that module: `torch.nn.modules.linear.Linear`.
    pub class: Option<Name>,
    stack_trace: Option<Arc<str>>,
}

impl Site {
    /// Describes a node.
    pub fn of(node: &Node) -> Self {
        Self {
            node: node.name.clone(),
            target: node.target.clone(),
            module: node.meta.nn_module_stack.last().map(|f| f.path.clone()),
            class: node.meta.nn_module_stack.last().map(|f| f.ty.clone()),
            stack_trace: node.meta.stack_trace.clone(),
        }
    }

    /// The user's line that made the node. If all frames are torch's, the module is named instead,
    /// which no line of the user's calls.
    pub fn place(&self) -> Option<String> {
        place(self.source_line(), self.module.as_ref().zip(self.class.as_ref()))
    }

    /// The user's line that made the node, if known.
    pub fn source_line(&self) -> Option<SourceLine<'_>> {
        SourceLine::of_stack(self.stack_trace.as_deref()?)
    }
}

/// ``aten.add_.Tensor (node `add_` in module layer1.0, model.py:12: x.add_(1))``.
impl std::fmt::Display for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (node `{}`", self.target, self.node)?;
        if let Some(module) = self.module.as_ref().filter(|m| !m.is_empty()) {
            write!(f, " in module {module}")?;
        }
        match (self.source_line(), &self.class) {
            (Some(line), _) => write!(f, ", {line}")?,
            // All frames are torch's: no line of the user's calls the module.
            (None, Some(class)) if self.stack_trace.is_some() => write!(f, " of class {class}")?,
            (None, _) => {}
        }
        f.write_str(")")
    }
}
