//! Programs in training mode, switched to evaluation: `tests/data/training.txt`.
//!
//! Below a program stand the ops that were switched, and the targets of writes that update
//! statistics.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[path = "common/cases.rs"]
mod cases;

use pt2onnx_fx::{
    passes::{functionalise::functionalise, training},
    text,
};

fn switched(before: &str) -> String {
    let mut program = match text::parse_program(before) {
        Ok(program) => program,
        Err(error) => return format!("not read: {error}"),
    };
    let ops = training::training_ops(&program);
    let mut functional = program.clone();
    functionalise(&mut functional).unwrap();
    let mut statistics: Vec<_> =
        training::statistics(&functional, &ops).into_iter().map(|t| t.to_string()).collect();
    statistics.sort();
    training::evaluate(&mut program);
    assert!(training::training_ops(&program).is_empty());
    let ops: Vec<_> = ops.iter().map(|op| op.node.to_string()).collect();
    let (program, ops, statistics) = (text::print(&program), ops.join(" "), statistics.join(" "));
    format!("{program}\nswitched: {ops}.\nstatistics: {statistics}.")
}

#[test]
fn programs_in_training_mode_are_evaluated() {
    cases::compare("training.txt", switched);
}
