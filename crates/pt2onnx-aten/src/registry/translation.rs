//! Translations of ops, and why one cannot be registered.

use crate::{Args, AtenOp, Cx, GivenArg, Lowered, Outputs, Schema, SchemaError};
use std::sync::Arc;

/// A translation of an op: a lowering or an ONNX function.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Translation<'a> {
    /// The lowering of a table's row.
    Table(&'static AtenOp),
    /// A lowering that was registered.
    Registered {
        /// The op's schema.
        schema: &'a Schema,
        /// Whether it is for complex tensors.
        is_complex: bool,
    },
    /// A lowering that was registered without a schema.
    Untyped,
    /// An ONNX function. The op's nodes become calls of it.
    Function(&'a pt2onnx_ir::Function),
}

pub(super) type Closure = Arc<dyn Fn(&Cx, &mut Args) -> Lowered<Outputs> + Send + Sync>;
pub(super) type Untyped = Arc<dyn Fn(&Cx, Vec<GivenArg>) -> Lowered<Outputs> + Send + Sync>;

/// A translation that was registered at run time.
#[derive(Clone)]
pub(crate) enum Custom {
    /// A lowering.
    Closure { schema: Arc<Schema>, text: String, lower: Closure, complex: bool },
    /// A lowering that takes whatever a node is given. The schema may be known all the same.
    Untyped { text: Option<String>, lower: Untyped, complex: bool },
    /// An ONNX function: the number of its model in the registry, and its number in that model.
    Function(usize, usize),
}

impl Custom {
    /// The op's schema, if it is known.
    pub fn schema(&self) -> Option<Arc<Schema>> {
        match self {
            Self::Closure { schema, .. } => Some(schema.clone()),
            Self::Untyped { text: Some(text), .. } => Schema::parse(text).ok().map(Arc::new),
            Self::Untyped { text: None, .. } | Self::Function(..) => None,
        }
    }
}

/// Why a translation cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The text is not the schema of an op, or a default in it cannot be read.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A parameter of the lowering does not fit the schema.
    #[error("{0}")]
    Parameters(String),
}
