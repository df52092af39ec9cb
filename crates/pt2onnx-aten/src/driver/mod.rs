//! The driver: translates a program node by node, and compares each result with the type that
//! PyTorch recorded.

mod aten_node;
mod control;
mod functions;
mod kinds;
mod lower;
mod lower_graph;
mod metadata;
mod modules;
mod node_facts;
mod opaque;
mod options;
mod originals;
mod prefetch;
mod signature;
mod state;
mod types;
mod usage;

pub use lower::{Lowering, lower};
pub(crate) use lower_graph::Driver;
pub use options::{Mutations, Options, Provenance, UnsupportedOps};
pub use originals::Originals;
pub(crate) use types::onnx_type;
pub use usage::{OpUse, emitted, ops_used};
