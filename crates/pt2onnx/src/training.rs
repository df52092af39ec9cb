//! Programs that were exported in training mode.

use crate::error::{Failure, Reason};
use pt2onnx_fx::{
    ExportedProgram, Name, Site,
    passes::{dead, training},
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// The treatment of ops that behave as in training, because `model.eval()` was not called before
/// export: dropout, normalisation with the statistics of the batch, `rrelu`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Training {
    /// Let them behave the same in the model, with a warning.
    #[default]
    Preserve,
    /// Let them behave as after `model.eval()`: dropout keeps everything, norms use running
    /// statistics.
    Eval,
    /// Report an error that lists all of them.
    Error,
    /// Let them behave the same, by ONNX's nodes for training: `BatchNormalization` with
    /// `training_mode` also gives the new running statistics. For runtimes that train.
    Train,
}

serde_plain::derive_display_from_serialize!(Training);
serde_plain::derive_fromstr_from_deserialize!(Training);

/// The ops of a program that behave as in training.
#[derive(Default)]
pub(crate) struct TrainingOps {
    ops: Vec<Site>,
    training: Training,
}

impl TrainingOps {
    /// Finds the ops, and switches them to evaluation if that is asked for.
    pub(crate) fn find(program: &mut ExportedProgram, training: Training) -> Self {
        let ops = training::training_ops(program);
        if training == Training::Eval {
            training::evaluate(program);
        }
        Self { ops, training }
    }

    /// The ops, if they are errors.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        let ops = self.ops.iter().filter(|_| self.training == Training::Error);
        ops.map(|op| Failure { site: Some(op.clone()), reason: Reason::Training }).collect()
    }

    /// A warning with the number of ops of each name, and the place of the first.
    pub(crate) fn warning(&self) -> Option<String> {
        let first = self.ops.first().filter(|_| self.training == Training::Preserve)?;
        let mut counts = BTreeMap::<&str, usize>::new();
        self.ops.iter().for_each(|op| *counts.entry(&op.target.name).or_default() += 1);
        let counts: Vec<String> = counts.iter().map(|(op, n)| format!("{n} {op}")).collect();
        let place = first.place().map(|place| format!(", first at {place}")).unwrap_or_default();
        Some(format!(
            "exported in training mode: call `model.eval()` before export, or set the option `training` to `eval` ({}{place})",
            counts.join(", ")
        ))
    }

    /// Finds the tensors whose writes are statistics of these ops. With [`Training::Eval`] they do
    /// not change: those writes are removed.
    pub(crate) fn statistics(&self, program: &mut ExportedProgram) -> HashSet<Name> {
        let statistics = training::statistics(program, &self.ops);
        if self.training == Training::Eval && !statistics.is_empty() {
            program.mutations.retain(|m| !statistics.contains(&m.target));
            dead::remove_dead(program);
        }
        statistics
    }
}
