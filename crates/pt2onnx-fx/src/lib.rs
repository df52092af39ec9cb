//! PyTorch exported programs: .pt2 archives, FX graphs, dynamic-shape constraints.
//!
//! Layer 1: knows nothing of ONNX. Only [`archive`] touches files; nothing in a file is executed or unpickled.

pub mod graph;

pub use graph::{
    ArgKind, Argument, Constant, ConstantValue, CustomObj, Device, ExportedProgram, Graph,
    GraphSignature, Hint, InputSpec, Layout, MemoryFormat, ModuleCallEntry, ModuleCallSignature,
    ModuleFrame, Name, NamedArg, Node, NodeMeta, OpName, OutputSpec, SymArg, TensorMeta, ValueMeta,
};
