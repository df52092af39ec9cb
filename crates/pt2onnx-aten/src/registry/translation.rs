//! What translates an op.

use crate::{Args, AtenOp, Cx, Lowered, Outputs, Schema};
use std::sync::Arc;

/// A translation of an op.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Translation<'a> {
    /// An entry of a table.
    Table(&'static AtenOp),
    /// A function of Rust that was registered.
    Registered {
        /// The op's schema.
        schema: &'a Schema,
        /// Whether it is for complex tensors.
        is_complex: bool,
    },
    /// A function of ONNX: the op's nodes call it.
    Function(&'a pt2onnx_ir::Function),
}

pub(super) type Closure = Box<dyn Fn(&Cx, &mut Args) -> Lowered<Outputs> + Send + Sync>;

/// A translation that came at run time.
pub(crate) enum Custom {
    /// A function of Rust.
    Closure { schema: Arc<Schema>, lower: Closure, complex: bool },
    /// A function of ONNX: the number of the model that it is in, and its number there.
    Function(usize, usize),
}

/// Why a translation cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The text is no schema of an op.
    #[error("`{0}` is no schema of an op, as `mylib::foo(Tensor x, int n=2) -> Tensor` is one")]
    Schema(String),
    /// A parameter of the function does not fit the schema.
    #[error("{0}")]
    Parameters(String),
}
