//! TorchScript programs flattened into programs of ATen calls: an abstract interpreter.
//!
//! Layer 3, without knowledge of ONNX. Nothing in an [`archive`] is executed: the interpreter runs
//! the code over types instead of values, with limits on its steps, values, nodes and nesting.
//!
//! ```no_run
//! use pt2onnx_torchscript::{archive::{Archive, Given}, flatten, types::Types};
//!
//! fn print(path: &str, types: &mut dyn Types) -> pt2onnx_torchscript::Result<()> {
//!     let archive = Archive::open(path)?;
//!     let inputs = vec![("x".to_owned(), Given::parse("float32[batch,4]"))];
//!     let program = flatten(&archive, "forward", inputs, types, false)?.best.program;
//!     println!("{}", pt2onnx_fx::text::print(&program)); // as `pt2onnx show`
//!     Ok(())
//! }
//! ```
//!
//! - [`flatten`] makes an exported program of a method. It takes the types of the inputs
//!   ([`inputs`]), and asks [`types::Types`] for those of the results of operators.
//! - [`tensors`] gives the tensors of an archive by their paths.

mod alias;
mod builtins;
mod control;
mod driver;
mod error;
mod eval;
mod load;
mod note;
mod quantized;
mod schema;
mod state;
mod strides;
pub mod types;
mod value;

pub use driver::{Attempt, FlatProgram, Policy, flatten, flatten_as, inputs, tensors};
pub use error::{Error, Problem, Result, Site};
pub use eval::context::Limits;
pub use load::inputs::parameters;
pub use note::Note;
pub use pt2onnx_fx as fx;
pub use pt2onnx_torchscript_archive as archive;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
