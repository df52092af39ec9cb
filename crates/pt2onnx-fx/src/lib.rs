//! PyTorch exported programs: .pt2 archives, FX graphs, dynamic-shape constraints.
//!
//! Layer 1: knows nothing of ONNX. Only [`archive`] touches files; nothing in a file is executed or unpickled.
//!
//! ```no_run
//! let mut program = pt2onnx_fx::archive::read("model.pt2")?;
//! pt2onnx_fx::passes::prepare(&mut program)?;
//! for node in &program.graph.nodes {
//!     assert!(node.target.schema_name().contains("::"));
//! }
//! # Ok::<(), pt2onnx_fx::Error>(())
//! ```

pub mod archive;
mod error;
pub mod graph;
pub mod passes;
pub mod printer;
pub mod schema;

pub use error::{
    Error, Invalid, NotAnArchive, PassProblem, Place, RecordProblem, Result, SCHEMA_MAJOR,
};
pub use graph::{
    ArgKind, Argument, Constant, ConstantValue, CustomObj, Device, ExportedProgram, Graph,
    GraphSignature, Hint, InputSpec, Layout, MemoryFormat, ModuleCallEntry, ModuleCallSignature,
    ModuleFrame, Mutation, MutationKind, Name, NamedArg, Node, NodeMeta, OpName, OutputSpec, Site,
    SourceLine, SymArg, TensorMeta, ValueMeta,
};
