//! What an export did, or why it failed: for people as Markdown, for programs as JSON.

mod data;
mod failures;
mod markdown;
mod record;
mod several;
mod summary;

pub use data::{
    Dimension, End, Environment, Failed, ModelSummary, ProgramSummary, REPORT_FORMAT, Report,
    ReportedArchive, ReportedError, ReportedFailure, ReportedOp, Stage, StoredTensors, Tensors,
    TorchScriptSummary, WrittenFile,
};
pub(crate) use record::{stage, text_of};
pub(crate) use several::Named;
pub use several::{Blocker, Reports};
pub(crate) use summary::ops;
