//! Converts PyTorch programs to ONNX models: `.pt2` archives of `torch.export.save`, and `.pt`
//! files of `torch.jit.save`.
//!
//! Layer 5: combines the crates below it, and is the library to use. In Python,
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

// `declare_options!` names this crate, here and in other crates.
extern crate self as pt2onnx;

mod archives;
mod dims;
mod domains;
mod drop_mutations;
mod error;
mod exporter;
mod extract;
mod ir_version;
mod merge_models;
mod metadata;
mod modules;
mod naming;
mod options;
mod pipeline;
mod program;
mod random;
mod regions;
#[cfg_attr(not(feature = "ort"), path = "off/running.rs")]
mod running;
#[cfg_attr(not(feature = "ort"), path = "off/runtime.rs")]
mod runtime;
mod size_conditions;
mod source_program;
mod torchscript_program;
mod training;
mod weights;

pub use archives::programs;
pub use dims::DimError;
pub use domains::DomainError;
pub use error::{Error, Failed, Failure, Reason};
pub use exporter::{Exporter, Source};
pub use ir_version::{IR_VERSIONS, IrVersionError};
pub use merge_models::JoinError;
pub use modules::{ModuleAttributes, ModuleError};
pub use naming::NameError;
pub use options::{
    Assign, Bytes, Choice, DEFAULT_OPSET, DefaultDtype, DynamicAxes, DynamicAxesError, FlagKind,
    IoNames, Item, KvNames, OptionError, OptionMeta, OptionValue, Options, Pairs, Task, in_words,
    parse_bytes,
};
#[cfg(feature = "clap")]
pub use options::{Flags, words};
#[doc(hidden)]
pub use options::{kebab, of_type};
pub use program::{OnnxProgram, SizesOfInputs};
pub use pt2onnx_aten as aten;
pub use pt2onnx_aten::{Mutations, Provenance, Registry, UnsupportedOps};
pub use pt2onnx_compress as compress;
pub use pt2onnx_compress::{OptionText, Spelling};
pub use pt2onnx_fx as fx;
pub use pt2onnx_ir as ir;
pub use pt2onnx_opt as opt;
pub use pt2onnx_opt::{OPSETS, Target};
#[cfg(feature = "ort")]
pub use pt2onnx_ort::{
    ArrayError, Dim, InputType, OutputCheck, Session, SessionOptions, Tolerance, Verdict,
    Verification, as_doubles, load_ort, ort, ort_environment, random_inputs, to_npz,
    to_safetensors,
};
pub use pt2onnx_report::{
    Blocker, Change, DiffOptions, Differences, Dimension, End, Environment, ErrorKind,
    ModelSummary, ProgramSummary, REPORT_FORMAT, Report, ReportError, ReportedArchive,
    ReportedError, ReportedFailure, ReportedOp, ReportedOptions, Reports, Section, Stage,
    StoredTensors, Tensors, TorchScriptSummary, Warning, WarningGroup, WarningKind, WrittenFile,
    diff, diff_page, group, grouped, printable,
};
pub use pt2onnx_symbolic as symbolic;
pub use pt2onnx_tensor as tensor;
pub use pt2onnx_torchscript as torchscript;
pub use pt2onnx_writer as writer;
pub use pt2onnx_writer::{SaveOptions, Saved, Weights};
pub use regions::{ChooseError, Tree};
#[cfg(feature = "ort")]
pub use running::{ArraysError, read_arrays};
pub use runtime::RunError;
pub use training::Training;
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
