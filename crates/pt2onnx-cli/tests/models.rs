//! The commands for ONNX models, whatever made them.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[expect(dead_code, reason = "what other tests need")]
mod common;

use common::pt2onnx;
use pt2onnx::{
    ir::Model,
    writer::{self, Weights},
};
use std::{fs, path::PathBuf};
use tempfile::{TempDir, tempdir};

/// Bodies, a function that is called with an attribute, another domain, a sequence, words about the model.
const FOREIGN: &str = r#"<ir_version: 9, opset_import: ["" : 17, "my.domain" : 2, "local" : 1]>
    other_graph (float[N,4] x, bool flag) => (float[N,4] y, seq(float[N,4]) all)
    <float[4] bias = {1.0, 2.0, 3.0, 4.0}, float[4,128] weight = {WEIGHT}> {
        same = Identity (x)
        chosen = If (flag) <
            then_branch = yes () => (float[N,4] a) { a = Add (same, bias) },
            else_branch = no () => (float[N,4] b) { b = my.domain.Thing <how = "well"> (same) }
        >
        wide = MatMul (chosen, weight)
        narrow = Slice (wide, zero, four, one)
        scaled = local.Scaled <by = 2.0> (narrow)
        y = Identity (scaled)
        all = SequenceConstruct (scaled)
    }
    <domain: "local", opset_import: ["" : 17]>
    Scaled <by> (x) => (y) {
        factor = Constant <value_float: float = @by> ()
        y = Mul (x, factor)
    }"#;

/// The model with its one large weight.
fn foreign() -> Model {
    let weight = vec!["0.5"; 512].join(", ");
    let constants = "int64[1] zero = {0}, int64[1] four = {4}, int64[1] one = {1}, float[4] bias";
    let text = FOREIGN.replace("WEIGHT", &weight);
    text.replace("float[4] bias", constants).parse().unwrap()
}

fn save(folder: &TempDir, name: &str, model: &Model, weights: Weights) -> PathBuf {
    let path = folder.path().join(name);
    let mut model = model.clone();
    model.assign_names();
    writer::save(&model, &path, weights).unwrap();
    path
}

#[test]
fn show() {
    let folder = tempdir().unwrap();
    let model = save(&folder, "m.onnx", &foreign(), Weights::External);
    // The text has no elements of large weights.
    fs::remove_file(folder.path().join("m.onnx.data")).unwrap();
    let run = pt2onnx(["show", model.to_str().unwrap()]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    insta::assert_snapshot!(run.stdout);
}
