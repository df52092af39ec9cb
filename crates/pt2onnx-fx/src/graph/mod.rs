//! Exported programs in memory: the form that passes and lowering work on.
//!
//! Values have the names of FX nodes. There are no `getitem` nodes: a node with several results has
//! one output for each, with the name that its `getitem` node had (`split_0`, `X_unused_1`).

pub(crate) mod build;
mod device;
mod guards;
mod meta;
mod name;
mod node;
mod op_name;
mod program;
mod site;
mod value;
mod value_map;

pub use device::{Device, Layout, MemoryFormat};
pub use guards::SizeCondition;
pub use meta::{ModuleFrame, NodeMeta, SourceLine};
pub use name::Name;
pub use node::{ArgKind, Argument, CustomObj, Graph, NamedArg, Node, SymArg};
pub use op_name::{OpName, OpParts};
pub use program::{
    Constant, ConstantValue, ExportedProgram, GraphSignature, InputSpec, ModuleCallEntry,
    ModuleCallSignature, Mutation, MutationKind, OutputKind, OutputSpec,
};
pub use site::Site;
pub use value::{Hint, TensorMeta, ValueMeta, Values};
pub use value_map::ValueMap;
