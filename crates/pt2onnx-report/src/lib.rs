//! Reports about conversions, drawings of graphs, and differences between ONNX models.
//!
//! Layer 4. [`Report`] collects the stages, warnings, failures, operators and sizes of one
//! conversion, and [`Reports`] those of several; both are written as Markdown, JSON or a page of
//! HTML. [`diff`] compares two models, and [`diff_page`] shows them side by side.
//!
//! ```
//! use pt2onnx_ir::Model;
//! use pt2onnx_report::{Report, Warning, WarningKind};
//!
//! let model: Model = "g (float[2] x) => (float[2] y) { y = Relu (x) }".parse()?;
//! let mut report = Report::default();
//! report.done(&model, &[Warning::new(WarningKind::Random, "outputs differ from run to run")]);
//! assert!(report.to_markdown().contains("- outputs differ from run to run"));
//! # Ok::<(), pt2onnx_ir::ParseError>(())
//! ```

#![deny(missing_debug_implementations)]

mod diff;
mod drawing;
mod edits;
mod error_kind;
mod group;
mod page;
pub mod printable;
mod report;
mod warning;

pub use diff::{Change, DiffOptions, Differences, Section, diff, fingerprint};
pub use error_kind::ErrorKind;
pub use group::group;
pub use page::diff_page;
pub use pt2onnx_ir as ir;
pub use report::{
    Blocker, Dimension, End, Environment, ModelSummary, ProgramSummary, REPORT_FORMAT, Report,
    ReportError, ReportedArchive, ReportedError, ReportedFailure, ReportedOp, ReportedOptions,
    Reports, Stage, StoredTensors, Tensors, Timer, TorchScriptSummary, WrittenFile, ops, stage,
};
pub use warning::{Warning, WarningGroup, WarningKind, grouped};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
