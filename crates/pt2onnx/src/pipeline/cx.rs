//! The context of stages.

use crate::{
    options::Options, size_conditions::SizeConditions, training::TrainingOps,
    weights::DetachedWeights,
};
use pt2onnx_aten::Registry;
use pt2onnx_compress::{Calibrated, Compressed};
use pt2onnx_fx::ExportedProgram;
use pt2onnx_ir::{Model, Value};
use pt2onnx_report::{Report, Warning, WarningKind};
use rustc_hash::FxHashSet;
use std::borrow::Cow;

/// A run of the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pipeline {
    /// The conversion of a program.
    Export,
    /// The rewriting of a finished model, whose values all have names between stages.
    Optimise,
}

/// The state that stages read and change.
pub(crate) struct StageCx<'a> {
    pub pipeline: Pipeline,
    /// The stages to run, whatever the options ask for.
    pub only: Option<&'static [&'static str]>,
    pub options: &'a Options,
    pub passes: pt2onnx_opt::Options,
    pub report: &'a mut Report,
    pub warnings: Vec<Warning>,
    /// The translations; `None` for a finished model.
    pub registry: Option<&'a Registry>,
    /// The program as the archive has it.
    pub source: Option<Cow<'a, ExportedProgram>>,
    /// Whether the graph of `source` is freed when it is no longer needed.
    pub forget_graph: bool,
    /// The program after the passes over it, until the model has its dimensions.
    pub program: Option<ExportedProgram>,
    pub training: TrainingOps,
    /// Whether the program was read from an archive.
    pub archived: bool,
    /// The conditions on sizes under which the program is right.
    pub conditions: SizeConditions,
    pub weights: DetachedWeights,
    /// The model; empty until the program is lowered.
    pub model: Model,
    /// Whether the model was read from a file.
    pub imported: bool,
    /// The opset that a finished model is rewritten for.
    pub opset: Option<u32>,
    /// Old names of values that were renamed.
    pub renamed: FxHashSet<String>,
    /// The numbers of activations.
    pub calibrated: Calibrated,
    pub compressed: Compressed,
    /// Weights from which nothing was computed.
    pub replaceable: FxHashSet<Value>,
}

impl<'a> StageCx<'a> {
    /// A context without a program.
    pub fn new(
        pipeline: Pipeline,
        options: &'a Options,
        passes: pt2onnx_opt::Options,
        report: &'a mut Report,
        model: Model,
    ) -> Self {
        Self {
            pipeline,
            only: None,
            options,
            passes,
            report,
            warnings: Vec::new(),
            registry: None,
            source: None,
            forget_graph: false,
            program: None,
            training: TrainingOps::default(),
            archived: false,
            conditions: SizeConditions::default(),
            weights: DetachedWeights::default(),
            model,
            imported: false,
            opset: None,
            renamed: FxHashSet::default(),
            calibrated: Calibrated::default(),
            compressed: Compressed::default(),
            replaceable: FxHashSet::default(),
        }
    }

    /// Adds warnings of one kind.
    pub fn warn(&mut self, kind: WarningKind, messages: impl IntoIterator<Item = String>) {
        self.warnings.extend(Warning::all(kind, messages));
    }

    /// The options of compression, with the ranges of activations.
    pub fn compression(&self) -> pt2onnx_compress::Options {
        let calibrated = self.calibrated.clone();
        pt2onnx_compress::Options { calibrated, ..self.options.compression() }
    }

    /// Whether the model is a finished one.
    pub fn is_finished(&self) -> bool {
        self.pipeline == Pipeline::Optimise
    }
}
