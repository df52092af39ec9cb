//! Items that tasks, benchmarks and tests share.

pub mod compare;
pub mod modules;
pub mod options;
pub mod prose;
pub mod synth;

/// Runs the examples of pages that are not the documentation of a crate.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
#[doc = include_str!("../../docs/adding-a-pass.md")]
#[doc = include_str!("../../crates/pt2onnx-symbolic/README.md")]
#[doc = include_str!("../../crates/pt2onnx-tensor/README.md")]
#[doc = include_str!("../../crates/pt2onnx-proto/README.md")]
#[doc = include_str!("../../crates/pt2onnx-schemas/README.md")]
#[doc = include_str!("../../crates/pt2onnx-aten/README.md")]
struct Pages;
