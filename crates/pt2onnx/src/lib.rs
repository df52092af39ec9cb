//! Converts PyTorch programs to ONNX models: `.pt2` archives of `torch.export.save`, and `.pt`
//! files of `torch.jit.save`.
//!
//! Layer 4: combines the crates below it, and is the library to use. In Python,
//! `torch.export.save(torch.export.export(model, args), "model.pt2")` writes an archive. The
//! conversion needs neither Python nor PyTorch.
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
//! The crates of the single steps are available under short names: [`fx`] (archives and their
//! programs), [`aten`] (the translation), [`ir`] (ONNX models), [`opt`] (passes), [`writer`] (ONNX
//! files).

#![deny(missing_debug_implementations)]

mod alike;
mod archives;
mod cuts;
mod diff;
mod dims;
mod domains;
mod drawing;
mod edits;
mod error;
mod exporter;
mod ir_version;
mod joining;
mod lost_state;
mod metadata;
mod modules;
mod naming;
mod options;
mod page;
mod pipeline;
pub mod printable;
mod program;
mod random;
mod ranges;
mod report;
#[cfg(feature = "ort")]
mod runtime;
mod texts;
mod torchscript_program;
mod training;
#[cfg(feature = "ort")]
mod verification;
mod warning;
mod weights;

pub use alike::alike;
pub use archives::programs;
pub use diff::{Change, DiffOptions, Differences, Section, diff};
pub use dims::DimError;
pub use domains::DomainError;
pub use error::{Error, ErrorKind, Failure, Reason};
pub use exporter::{Exporter, Source};
pub use ir_version::{IR_VERSIONS, IrVersionError};
pub use joining::JoinError;
pub use modules::ModuleError;
pub use naming::NameError;
pub use options::{
    DEFAULT_OPSET, DefaultDtype, DynamicAxes, DynamicAxesError, InputNames, KvNames, OptionError,
    Options, OutputNames, in_words, parse_bytes,
};
#[cfg(feature = "ort")]
pub use ort;
pub use page::diff_page;
pub use program::OnnxProgram;
pub use pt2onnx_aten as aten;
pub use pt2onnx_aten::{Detail, Operators, Registry, State};
pub use pt2onnx_compress as compress;
pub use pt2onnx_compress::{OptionText, Spelling};
pub use pt2onnx_fx as fx;
pub use pt2onnx_ir as ir;
pub use pt2onnx_opt as opt;
pub use pt2onnx_opt::{OPSETS, Target};
pub use pt2onnx_symbolic as symbolic;
pub use pt2onnx_tensor as tensor;
pub use pt2onnx_torchscript as torchscript;
pub use pt2onnx_writer as writer;
pub use pt2onnx_writer::{SaveOptions, Saved, Weights};
pub use report::{Blocker, Reports};
pub use report::{
    Dimension, End, Environment, Failed, ModelSummary, ProgramSummary, REPORT_FORMAT, Report,
    ReportedArchive, ReportedError, ReportedFailure, ReportedOp, Stage, StoredTensors, Tensors,
    TorchScriptSummary, WrittenFile,
};
#[cfg(feature = "ort")]
pub use runtime::{
    ArraysError, Dim, InputType, RunError, Session, SessionOptions, load_ort, ort_environment,
    random_inputs, read_arrays, to_npz, to_safetensors,
};
pub use training::Training;
#[cfg(feature = "ort")]
pub use verification::{OutputCheck, Tolerance, Verdict, Verification, as_doubles};
pub use warning::{Warning, WarningGroup, WarningKind, grouped};
pub use weights::{
    Misfit, Unused, WeightType, WeightsError, apply_weights, apply_weights_with, read_weights,
};

/// The examples of the READMEs and of the pages on custom ops and options.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/custom-ops.md")]
#[doc = include_str!("../../../docs/options.md")]
struct Readme;
