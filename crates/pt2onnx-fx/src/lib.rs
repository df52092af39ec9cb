//! PyTorch exported programs: .pt2 archives, FX graphs, dynamic-shape constraints.
//!
//! Layer 1: it knows nothing of ONNX. Only [`archive`] opens files, and nothing in a file is
//! executed.
//!
//! On its own the crate serves to inspect archives, or to translate programs into something other
//! than ONNX:
//!
//! ```
//! use pt2onnx_fx::{archive, passes};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
//! let mut program = archive::read(path)?;
//! assert_eq!(program.state["fc0.weight"].shape(), [8, 8]);
//! // After these passes the graph is a pure function.
//! passes::prepare(&mut program)?;
//! let ops: Vec<String> = program.graph.nodes.iter().map(|n| n.target.to_string()).collect();
//! assert_eq!(ops[..2], ["aten.cat.default", "aten.linear.default"]);
//! # Ok::<(), pt2onnx_fx::Error>(())
//! ```
//!
//! `examples/show.rs` prints the graph of an archive and lists its weights. [`text`] prints and
//! parses programs, for tests.

pub mod archive;
mod element_types;
mod error;
pub mod graph;
mod inferred;
pub mod passes;
pub mod printer;
mod python;
mod readable;
pub mod schema;
pub mod strides;
pub mod text;
mod threads;
pub mod views;

pub use element_types::dtype_numbered;
pub use error::{
    Error, Invalid, NotAnArchive, PassProblem, PickleProblem, Place, RecordProblem, Result,
};
pub use graph::{
    ArgKind, Argument, Constant, ConstantValue, CustomObj, Device, ExportedProgram, Graph,
    GraphSignature, Hint, InputSpec, Layout, MemoryFormat, ModuleCallEntry, ModuleCallSignature,
    ModuleFrame, Mutation, MutationKind, Name, NamedArg, Node, NodeMeta, OpName, OpParts,
    OutputKind, OutputSpec, Site, SizeCondition, SourceLine, SymArg, TensorMeta, ValueMap,
    ValueMeta, Values,
};
pub use inferred::{Contents, Outcome, Typed};
pub use readable::readable;
pub use schema::MAJOR as SCHEMA_MAJOR;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
