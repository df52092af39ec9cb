//! The test of the table of rules: each step of each operator has a rule, needs none, or is listed
//! here.
//!
//! It needs none if the schemas tell the difference between its two forms.

use super::rules;
use crate::opsets::OPSETS;
use pt2onnx_ir::schema::{self, AttributeSchema, OpSchema, Param, ParamKind};
use std::collections::BTreeSet;

/// Steps without a difference in meaning that the schemas do not show: they clarify, or allow what
/// runtimes allowed before (shapes that vary between iterations, the meaning of `auto_pad`).
const SAME: &[(&str, u32)] = &[
    ("AveragePool", 11),
    ("BatchNormalization", 9),
    // A sparse value is new.
    ("Constant", 11),
    ("Conv", 11),
    ("ConvTranspose", 11),
    ("LpPool", 11),
    ("MaxPool", 8),
    ("MaxPool", 11),
    ("MaxUnpool", 11),
    ("NegativeLogLikelihoodLoss", 13),
    ("NonMaxSuppression", 11),
];

/// Operators that no older opset can express: their nodes fail with this step as the lowest opset.
const NEWER: &[(&str, u32)] = &[
    ("Acosh", 9),
    ("Asinh", 9),
    ("Atanh", 9),
    ("BlackmanWindow", 17),
    ("CenterCropPad", 18),
    ("Compress", 9),
    ("ConcatFromSequence", 11),
    ("ConvInteger", 10),
    ("Cosh", 9),
    ("DeformConv", 19),
    ("Det", 11),
    ("DynamicQuantizeLinear", 11),
    ("Erf", 9),
    ("EyeLike", 9),
    ("HammingWindow", 17),
    ("HannWindow", 17),
    ("ImageDecoder", 20),
    ("MatMulInteger", 10),
    ("MaxUnpool", 9),
    ("MeanVarianceNormalization", 9),
    ("MelWeightMatrix", 17),
    ("NonMaxSuppression", 10),
    ("Optional", 15),
    ("OptionalGetElement", 15),
    ("OptionalHasElement", 15),
    ("OptionalHasElement", 18),
    ("QLinearConv", 10),
    ("QLinearMatMul", 10),
    ("RegexFullMatch", 20),
    ("ReverseSequence", 10),
    ("RoiAlign", 10),
    ("Scan", 8),
    ("Scatter", 9),
    ("SequenceAt", 11),
    ("SequenceConstruct", 11),
    ("SequenceEmpty", 11),
    ("SequenceErase", 11),
    ("SequenceInsert", 11),
    ("SequenceLength", 11),
    ("Shrink", 9),
    ("Sinh", 9),
    ("SplitToSequence", 11),
    ("StringConcat", 20),
    ("StringNormalizer", 10),
    ("StringSplit", 20),
    ("TensorScatter", 24),
    ("TfIdfVectorizer", 9),
    ("Unique", 11),
];

#[derive(Debug, PartialEq)]
enum Step {
    /// More types, attributes and inputs: a node without them means the same, and the schema
    /// refuses the others.
    Told,
    /// The schemas say the same.
    Equal,
    /// Anything else.
    Other,
}

/// Attributes that only told how to compute.
const HOW: &[&str] = &["consumed_inputs", "output_sequence"];

fn told(older: Option<&OpSchema>, newer: &OpSchema) -> Step {
    let Some(older) = older.filter(|o| !o.deprecated) else {
        return Step::Other;
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
    let mut told = older.attributes.iter().filter(|a| !HOW.contains(&a.name));
    if !kept || !told.all(same) {
        return Step::Other;
    }
    let counts = |s: &OpSchema| (s.min_inputs, s.min_outputs, s.attributes.len());
    let added = longer > shorter || counts(older) != counts(newer);
    let types = |s: &OpSchema| s.constraints.iter().map(|c| c.types).collect::<Vec<_>>();
    if !added && types(older) == types(newer) { Step::Equal } else { Step::Told }
}

#[test]
fn every_step_is_accounted_for() {
    let mut open = Vec::new();
    let mut listed: BTreeSet<_> = SAME.iter().chain(NEWER).copied().collect();
    let mut ruled: BTreeSet<_> = rules::RULES.iter().map(|r| (r.op, r.since)).collect();
    assert_eq!(ruled.len(), rules::RULES.len(), "two rules for one step");
    assert!(rules::RULES.is_sorted_by_key(|r| (r.op, r.since)));
    for newer in schema::all() {
        let step = (newer.name, newer.since);
        let within = (OPSETS.start() + 1..=schema::CANONICAL_OPSET).contains(&newer.since);
        if !within || newer.deprecated {
            continue;
        }
        let told = told(schema::lookup(newer.name, newer.since - 1), newer);
        match (ruled.remove(&step), listed.remove(&step), &told) {
            (true, false, _) | (false, false, Step::Told) => {}
            (false, true, Step::Equal | Step::Other) => {}
            _ => open.push(format!("(\"{}\", {}), // {told:?}", newer.name, newer.since)),
        }
    }
    assert!(open.is_empty(), "neither told, nor ruled, nor listed, or twice:\n{}", open.join("\n"));
    assert!(ruled.is_empty() && listed.is_empty(), "no such steps: {ruled:?} {listed:?}");
}

/// Steps before the oldest opset that is written, which `oldest` has rules for, or which mean the
/// same.
const OLDEST: &[(&str, u32)] = &[
    // A default is spelt right, an output need not be there.
    ("GRU", 3),
    // More words.
    ("Gemm", 6),
    ("Add", 7),
    ("And", 7),
    ("BatchNormalization", 7),
    ("Cast", 6),
    ("Clip", 6),
    ("Concat", 4),
    ("Div", 7),
    ("Dropout", 7),
    ("Equal", 7),
    ("Gemm", 7),
    ("GlobalLpPool", 2),
    ("Greater", 7),
    ("Less", 7),
    ("LpPool", 2),
    ("Mul", 7),
    ("Or", 7),
    ("PRelu", 7),
    ("Pad", 2),
    ("Pow", 7),
    ("Reshape", 5),
    ("Selu", 6),
    ("Split", 2),
    ("Sub", 7),
    ("Tile", 6),
    ("Upsample", 7),
    ("Xor", 7),
];

#[test]
fn every_step_before_is_accounted_for() {
    let mut listed: BTreeSet<_> = OLDEST.iter().copied().collect();
    let mut open = Vec::new();
    for newer in schema::all().iter().filter(|s| (2..=*OPSETS.start()).contains(&s.since)) {
        let older = schema::lookup(newer.name, newer.since - 1);
        let told = older.map(|older| told(Some(older), newer));
        let step = (newer.name, newer.since);
        if told.is_some_and(|told| told != Step::Told) != listed.remove(&step) {
            open.push(step);
        }
    }
    assert!(open.is_empty() && listed.is_empty(), "not accounted for: {open:?} {listed:?}");
}
