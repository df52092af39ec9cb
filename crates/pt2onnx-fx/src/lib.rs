//! PyTorch exported programs: .pt2 archives, FX graphs, dynamic-shape constraints.
//!
//! Layer 1: knows nothing of ONNX. Only [`archive`] touches files; nothing in a file is executed or unpickled.

pub mod archive;
mod constraints;
mod error;
pub mod graph;
pub mod passes;
pub mod printer;
pub mod schema;

pub use error::{
    Error, Invalid, NotAnArchive, PassProblem, Place, RecordProblem, Result, SCHEMA_MAJOR, Site,
};
pub use graph::{
    ArgKind, Argument, Constant, ConstantValue, CustomObj, Device, ExportedProgram, Graph,
    GraphSignature, Hint, InputSpec, Layout, MemoryFormat, ModuleCallEntry, ModuleCallSignature,
    ModuleFrame, Name, NamedArg, Node, NodeMeta, OpName, OutputSpec, SymArg, TensorMeta, ValueMeta,
};
