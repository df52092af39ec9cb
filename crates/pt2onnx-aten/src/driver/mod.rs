//! The driver: translates a program node by node, and compares each result with the type that
//! PyTorch recorded.

mod ahead;
mod aten_node;
mod control;
mod functions;
mod kinds;
mod known;
mod lower;
mod metadata;
mod modules;
mod opaque;
mod options;
mod originals;
mod signature;
mod state;
mod types;
mod usage;
mod walk;

pub use lower::{Lowering, lower};
pub use options::{Detail, Operators, Options, State};
pub use originals::Originals;
pub(crate) use types::onnx_type;
pub use usage::{OpUse, emitted, ops_used};
pub(crate) use walk::Driver;
