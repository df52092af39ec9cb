//! From a `.pt2` archive to an ONNX model: the exporter.
//!
//! Layer 3: puts the crates below together, and is what programs use. An archive is what Python's
//! `torch.export.save(torch.export.export(model, args), "model.pt2")` writes; neither Python nor PyTorch is needed here.
//!
//! ```
//! use pt2onnx::{Exporter, Weights};
//!
//! # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
//! # let folder = tempfile::tempdir()?;
//! # let output = folder.path().join("mlp.onnx");
//! let program = Exporter::new().opset(20).weights(Weights::Auto).export(archive)?;
//! for warning in program.warnings() {
//!     eprintln!("{warning}");
//! }
//! program.save(&output)?;
//!
//! assert_eq!(program.model().opset, 20);
//! assert!(program.to_text().contains("Gemm"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crates that the way leads through are here under short names, for those who go it step by step or work on the
//! model: [`fx`] (archives and their programs), [`aten`] (the translation), [`ir`] (ONNX models), [`opt`] (passes).

mod diff;
mod dims;
mod domains;
mod error;
mod exporter;
mod ir_version;
mod metadata;
mod naming;
mod options;
mod pipeline;
mod program;
mod random;
mod report;
#[cfg(feature = "ort")]
mod runtime;
#[cfg(feature = "ort")]
mod verification;
mod weights;

pub use diff::{Change, DiffOptions, Differences, Section, diff};
pub use dims::DimError;
pub use domains::DomainError;
pub use error::{Error, ErrorKind, Failure, Reason};
pub use exporter::Exporter;
pub use ir_version::{IR_VERSIONS, IrVersionError};
pub use naming::NameError;
pub use options::{
    DEFAULT_OPSET, DynamicAxes, DynamicAxesError, OptionError, Options, OutputNames, parse_bytes,
};
#[cfg(feature = "ort")]
pub use ort;
pub use program::OnnxProgram;
pub use pt2onnx_aten as aten;
pub use pt2onnx_aten::{Detail, Operators, Registry, State};
pub use pt2onnx_fx as fx;
pub use pt2onnx_ir as ir;
pub use pt2onnx_opt as opt;
pub use pt2onnx_opt::{OPSETS, Target};
pub use pt2onnx_symbolic as symbolic;
pub use pt2onnx_tensor as tensor;
pub use pt2onnx_writer as writer;
pub use pt2onnx_writer::{SaveOptions, Saved, Weights};
pub use report::{
    Dimension, End, Environment, Failed, ModelSummary, ProgramSummary, REPORT_FORMAT, Report,
    ReportedArchive, ReportedError, ReportedFailure, ReportedOp, Stage, Tensors, WrittenFile,
};
#[cfg(feature = "ort")]
pub use runtime::{RunError, Session, SessionOptions, ort_environment};
#[cfg(feature = "ort")]
pub use verification::{OutputCheck, Tolerance, Verdict, Verification};
pub use weights::{Misfit, WeightType, WeightsError, apply_weights, read_weights};

/// The examples of the README and of the pages on custom ops and options.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/custom-ops.md")]
#[doc = include_str!("../../../docs/options.md")]
struct Readme;
