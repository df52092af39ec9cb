//! PyTorch exported programs: .pt2 archives, FX graphs, dynamic-shape constraints.
//!
//! Layer 1: knows nothing of ONNX. Only [`archive`] touches files; nothing in a file is executed.
//!
//! Alone it serves whoever wants to look into archives, or to translate programs into something else than ONNX:
//!
//! ```
//! use pt2onnx_fx::{archive, passes};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
//! let mut program = archive::read(path)?;
//! assert_eq!(program.state["fc0.weight"].shape(), [8, 8]);
//! // After these it is a pure function.
//! passes::prepare(&mut program)?;
//! let ops: Vec<String> = program.graph.nodes.iter().map(|n| n.target.to_string()).collect();
//! assert_eq!(ops[..2], ["aten.cat.default", "aten.linear.default"]);
//! # Ok::<(), pt2onnx_fx::Error>(())
//! ```
//!
//! `examples/weights.rs` lists the weights of an archive.

pub mod archive;
mod error;
pub mod graph;
pub mod passes;
pub mod printer;
mod python;
pub mod schema;
pub mod text;

pub use error::{
    Error, Invalid, NotAnArchive, PassProblem, PickleProblem, Place, RecordProblem, Result,
};
pub use graph::{
    ArgKind, Argument, Constant, ConstantValue, CustomObj, Device, ExportedProgram, Graph,
    GraphSignature, Hint, InputSpec, Layout, MemoryFormat, ModuleCallEntry, ModuleCallSignature,
    ModuleFrame, Mutation, MutationKind, Name, NamedArg, Node, NodeMeta, OpName, OpParts,
    OutputSpec, Site, SourceLine, SymArg, TensorMeta, ValueMap, ValueMeta, Values,
};
pub use schema::MAJOR as SCHEMA_MAJOR;
