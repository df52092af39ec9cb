//! TorchScript archives: what `torch.jit.save` writes, flattened into programs of ATen calls.
//!
//! Above `fx`, and without knowledge of ONNX. Nothing in a file is executed: the interpreter runs over types, with budgets.

mod archive;
mod error;
mod interp;
mod note;
mod quantized;
mod ranges;
pub mod schema;
pub mod syntax;
pub mod types;
mod value;

pub use archive::{Archive, ClassDef, Definition, FunctionDef, SourceFile, is_torchscript};
pub use error::{Error, NotTorchScript, Problem, Result, Site};
pub use interp::{
    Flat, Flattened, Given, How, Loaded, Size, flatten, flatten_as, inputs, loaded, parameters,
    signature,
};
pub use note::Note;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
