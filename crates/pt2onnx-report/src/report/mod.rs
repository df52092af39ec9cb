//! The report of a conversion, successful or not: Markdown for people, JSON for programs.

mod data;
mod markdown;
mod record;
mod several;
mod summary;

pub use data::{
    Dimension, End, Environment, ModelSummary, ProgramSummary, REPORT_FORMAT, Report,
    ReportedArchive, ReportedError, ReportedFailure, ReportedOp, ReportedOptions, Stage,
    StoredTensors, Tensors, TorchScriptSummary, WrittenFile,
};
pub use record::{ReportError, Timer, stage};
pub(crate) use several::Named;
pub use several::{Blocker, Reports};
pub use summary::ops;
