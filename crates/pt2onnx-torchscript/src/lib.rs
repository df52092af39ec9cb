//! TorchScript archives: what `torch.jit.save` writes, flattened into programs of ATen calls.
//!
//! Layer 3, without knowledge of ONNX. Nothing in a file is executed: the interpreter runs the code
//! over types instead of values, with limits on its steps, values, nodes and nesting.
//!
//! ```no_run
//! use pt2onnx_torchscript::{Archive, signature};
//!
//! let archive = Archive::open("model.pt")?;
//! for method in &archive.root_class()?.class.methods {
//!     println!("{}", signature(method)); // forward(x: Tensor) -> Tensor
//! }
//! # Ok::<(), pt2onnx_torchscript::Error>(())
//! ```
//!
//! - [`Archive`] has the records and the code of a file, [`loaded`] its modules and tensors.
//! - [`flatten`] makes an exported program of a method. It takes the types of the inputs
//!   ([`inputs`]), and asks [`types::Types`] for those of the results of operators.

mod alias;
mod archive;
mod builtins;
mod control;
mod driver;
mod error;
mod eval;
mod load;
mod note;
mod quantized;
mod ranges;
mod schema;
mod state;
mod strides;
pub mod syntax;
pub mod types;
mod value;

pub use archive::{Archive, ClassDef, SourceFile, is_torchscript};
pub use driver::{Attempt, FlatProgram, Loaded, Policy, flatten, flatten_as, inputs, loaded};
pub use error::{Error, NotTorchScript, Problem, Result, Site};
pub use eval::context::Limits;
pub use load::inputs::{Given, Size, parameters, signature};
pub use note::Note;
pub use schema::Type;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
