//! TorchScript archives: what `torch.jit.save` writes, read without PyTorch.
//!
//! Layer 2, without knowledge of ONNX. Nothing in a file is executed; `pt2onnx-torchscript` runs
//! the code over types.
//!
//! ```no_run
//! use pt2onnx_torchscript_archive::Archive;
//!
//! let archive = Archive::open("model.pt")?;
//! for method in &archive.root_class()?.class.methods {
//!     println!("{}", method.signature()); // forward(x: Tensor) -> Tensor
//! }
//! # Ok::<(), pt2onnx_torchscript_archive::Error>(())
//! ```
//!
//! - [`Archive`] has the records and the code of a file, [`syntax`] the language of the code.
//! - [`Type`] is a type that code writes, [`Given`] the type or value of an input.

mod archive;
mod error;
mod given;
mod graph;
pub mod quantized;
mod signature;
mod source_ranges;
pub mod syntax;
mod traced;
mod types;

pub use archive::{Archive, ClassDef, Definition, FunctionDef, SourceFile, python_name};
pub use error::{Error, NotTorchScript, Result};
pub use given::{Given, Size};
pub use graph::{GraphState, GraphTensor, TensorKind};
pub use source_ranges::{Line, Origin};
pub use types::Type;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
