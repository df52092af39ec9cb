//! Tests that each step of each operator has a row, needs none, or is listed here.
//!
//! It needs none if the schemas show the difference between its two forms.

use super::steps::STEPS;
use crate::OPSETS;
use pt2onnx_ir::schema::{self, AttributeSchema, OpSchema, Param, ParamKind};
use std::collections::BTreeSet;

/// Steps without a difference in meaning that the schemas do not show: they clarify, or allow what
/// runtimes allowed before (shapes that vary between iterations, the meaning of `auto_pad`, sparse
/// constants).
const SAME: &str = "
    AveragePool-11 BatchNormalization-9 Constant-11 Conv-11 ConvTranspose-11 LpPool-11 MaxPool-8
    MaxPool-11 MaxUnpool-11 NegativeLogLikelihoodLoss-13 NonMaxSuppression-11";

/// Steps of operators that no older opset can express: nodes fail with this opset as the lowest.
const NEWER: &str = "
    Acosh-9 Asinh-9 Atanh-9 BlackmanWindow-17 CenterCropPad-18 Compress-9 ConcatFromSequence-11
    ConvInteger-10 Cosh-9 DeformConv-19 Det-11 DynamicQuantizeLinear-11 Erf-9 EyeLike-9
    HammingWindow-17 HannWindow-17 ImageDecoder-20 MatMulInteger-10 MaxUnpool-9
    MeanVarianceNormalization-9 MelWeightMatrix-17 NonMaxSuppression-10 Optional-15
    OptionalGetElement-15 OptionalHasElement-15 OptionalHasElement-18 QLinearConv-10
    QLinearMatMul-10 RegexFullMatch-20 ReverseSequence-10 RoiAlign-10 Scan-8 Scatter-9
    SequenceAt-11 SequenceConstruct-11 SequenceEmpty-11 SequenceErase-11 SequenceInsert-11
    SequenceLength-11 Shrink-9 Sinh-9 SplitToSequence-11 StringConcat-20 StringNormalizer-10
    StringSplit-20 TensorScatter-24 TfIdfVectorizer-9 Unique-11";

/// The steps of a list, each an operator and an opset.
fn listed(steps: &'static str) -> impl Iterator<Item = (&'static str, u32)> {
    steps.split_whitespace().map(|step| {
        let (op, since) = step.split_once('-').unwrap();
        (op, since.parse().unwrap())
    })
}

#[derive(Debug, PartialEq)]
enum Kind {
    /// More types, attributes and inputs: a node without them means the same, and the older schema
    /// refuses the others.
    Shown,
    /// The schemas say the same.
    Equal,
    /// Anything else.
    Other,
}

/// Attributes that only kind how to compute.
const HOW: &[&str] = &["consumed_inputs", "output_sequence"];

fn kind(older: Option<&OpSchema>, newer: &OpSchema) -> Kind {
    let Some(older) = older.filter(|o| !o.deprecated) else {
        return Kind::Other;
    };
    let kinds = |ps: &[Param]| ps.iter().map(|p| (p.kind, p.homogeneous)).collect::<Vec<_>>();
    let (shorter, longer) = (older.inputs.len(), newer.inputs.len());
    let kept = newer.inputs.get(..shorter).map(kinds) == Some(kinds(older.inputs))
        && kinds(older.outputs) == kinds(newer.outputs)
        && newer.inputs[shorter..].iter().all(|p| p.kind == ParamKind::Optional);
    let same = |a: &AttributeSchema| {
        let new = newer.attribute(a.name);
        new.is_some_and(|n| format!("{n:?}") == format!("{a:?}"))
    };
    let mut kept_attributes = older.attributes.iter().filter(|a| !HOW.contains(&a.name));
    if !kept || !kept_attributes.all(same) {
        return Kind::Other;
    }
    let counts = |s: &OpSchema| (s.min_inputs, s.min_outputs, s.attributes.len());
    let added = longer > shorter || counts(older) != counts(newer);
    let types = |s: &OpSchema| s.constraints.iter().map(|c| c.types).collect::<Vec<_>>();
    if !added && types(older) == types(newer) { Kind::Equal } else { Kind::Shown }
}

#[test]
fn every_step_is_accounted_for() {
    let mut open = Vec::new();
    let mut listed: BTreeSet<_> = listed(SAME).chain(listed(NEWER)).collect();
    let down = STEPS.iter().filter(|(_, s)| s.down.is_some());
    let mut ruled: BTreeSet<_> = down.map(|(step, _)| *step).collect();
    for newer in schema::all() {
        let step = (newer.name, newer.since);
        let within = (OPSETS.start() + 1..=schema::CANONICAL_OPSET).contains(&newer.since);
        if !within || newer.deprecated {
            continue;
        }
        let kind = kind(schema::lookup(newer.name, newer.since - 1), newer);
        match (ruled.remove(&step), listed.remove(&step), &kind) {
            (true, false, _) | (false, false, Kind::Shown) => {}
            (false, true, Kind::Equal | Kind::Other) => {}
            _ => open.push(format!("{}-{}: {kind:?}", newer.name, newer.since)),
        }
    }
    assert!(
        open.is_empty(),
        "neither shown by the schemas, nor ruled, nor listed, or twice:\n{}",
        open.join("\n")
    );
    assert!(ruled.is_empty() && listed.is_empty(), "no such steps: {ruled:?} {listed:?}");
}

/// Steps before the oldest written opset that mean the same: a default and the wording.
const OLDEST: &[(&str, u32)] = &[("GRU", 3), ("Gemm", 6)];

#[test]
fn every_step_before_is_accounted_for() {
    let ruled = STEPS.keys().copied().filter(|step| step.1 <= *OPSETS.start());
    let mut listed: BTreeSet<_> = ruled.chain(OLDEST.iter().copied()).collect();
    let mut open = Vec::new();
    for newer in schema::all().iter().filter(|s| (2..=*OPSETS.start()).contains(&s.since)) {
        let older = schema::lookup(newer.name, newer.since - 1);
        let kind = older.map(|older| kind(Some(older), newer));
        let step = (newer.name, newer.since);
        if kind.is_some_and(|kind| kind != Kind::Shown) != listed.remove(&step) {
            open.push(step);
        }
    }
    assert!(open.is_empty() && listed.is_empty(), "not accounted for: {open:?} {listed:?}");
}
