//! What tasks and benches share.

pub mod compare;
pub mod modules;
pub mod synth;

/// The examples of pages that no crate has as its own.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
#[doc = include_str!("../../crates/pt2onnx-symbolic/README.md")]
#[doc = include_str!("../../crates/pt2onnx-tensor/README.md")]
#[doc = include_str!("../../crates/pt2onnx-proto/README.md")]
#[doc = include_str!("../../crates/pt2onnx-aten/README.md")]
struct Pages;
