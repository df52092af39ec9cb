//! ONNX graphs in memory: arena, types, operator schemas, builder, verifier, text printer and parser.
//!
//! Layer 1: knows ONNX's operators and types, neither PyTorch nor protobuf, and does no IO.
//! Everything of a model (nodes, values, regions) lives in one arena, [`Model`], and is named by a small id;
//! bodies of `If`, `Loop` and `Scan` are regions of the same arena, so a captured value is just a [`Value`].

mod attribute;
mod builder;
mod copy;
mod generated;
mod infer;
mod model;
mod names;
mod parse;
pub mod schema;
mod text;
mod types;
mod verify;

pub use attribute::{Attribute, Attributes};
pub use builder::{Builder, Fault, Operand};
pub use generated::attrs;
pub use model::{
    Def, Function, InsertPoint, Metadata, Model, Node, NodeId, Origin, OriginId, Region, RegionId,
    Use, Value, ValueData, is_unknown,
};
pub use parse::ParseError;
pub use types::{Shape, TensorType, Type};
pub use verify::{VerifyError, conforms, verify};
