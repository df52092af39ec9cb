//! Programs in text, and what passes make of them, or `error: ..`.
//!
//! A case of `tests/data/*.txt` is its name behind `# `, a program, `=>`, and the result.
//! `UPDATE=1` writes the results.

use crate::support::data;
use pt2onnx_fx::{
    ExportedProgram,
    passes::{attention::restore_attention, functionalise::functionalise, training},
    text,
};
use std::{env, fs, sync::Arc};

/// Compares what `of` makes of programs with what a file says.
pub fn compare(file: &str, of: impl Fn(&str) -> String) {
    let path = data(file);
    let cases = fs::read_to_string(&path).unwrap();
    let mut written = String::new();
    for case in cases.split("\n\n").map(str::trim).filter(|c| !c.is_empty()) {
        let (before, expected) = case.split_once("\n=>").unwrap_or((case, ""));
        let (title, program) = before.split_once('\n').unwrap();
        let found = of(program);
        written += &format!("{before}\n=>\n{found}\n\n");
        if env::var_os("UPDATE").is_none() {
            assert_eq!(found, expected.trim(), "{title}");
        }
    }
    if env::var_os("UPDATE").is_some() {
        fs::write(path, written.trim_end().to_owned() + "\n").unwrap();
    }
}

fn printed(program: &ExportedProgram) -> String {
    text::print(program).to_string()
}

#[test]
fn writes_become_results() {
    let after = |before: &str| {
        let mut program = text::parse_program(before).unwrap();
        if let Err(error) = functionalise(&mut program) {
            return format!("error: {error}");
        }
        let mutations = program.mutations.iter();
        let shown = mutations.map(|m| format!("\n{:?} {} becomes {}", m.kind, m.target, m.value));
        printed(&program) + &shown.collect::<String>()
    };
    compare("functionalise.txt", after);
    compare("bodies.txt", after);
}

/// All nodes of the programs are parts of an attention.
#[test]
fn decomposed_attention_is_that_of_the_kernel() {
    let from = r#"[{"name": "a", "target": "aten.scaled_dot_product_attention.default"}]"#;
    compare("attention.txt", |before| {
        let mut program = text::parse_program(before).unwrap();
        let written = printed(&program);
        restore_attention(&mut program);
        assert_eq!(printed(&program), written, "without a record, nothing is changed");
        for node in program.graph.nodes.iter_mut().map(Arc::make_mut) {
            Arc::make_mut(&mut node.meta).from_node = Some(from.into());
        }
        restore_attention(&mut program);
        printed(&program)
    });
}

/// Below a program stand the ops that were switched, and the targets of writes that update
/// statistics.
#[test]
fn programs_in_training_mode_are_evaluated() {
    compare("training.txt", |before| {
        let mut program = text::parse_program(before).unwrap();
        let ops = training::training_ops(&program);
        let mut functional = program.clone();
        functionalise(&mut functional).unwrap();
        let statistics = training::statistics(&functional, &ops).into_iter();
        let mut statistics: Vec<String> = statistics.map(|target| target.to_string()).collect();
        statistics.sort();
        training::evaluate(&mut program);
        assert!(training::training_ops(&program).is_empty());
        let ops: Vec<_> = ops.iter().map(|op| op.node.to_string()).collect();
        let (program, ops, statistics) = (printed(&program), ops.join(" "), statistics.join(" "));
        format!("{program}\nswitched: {ops}.\nstatistics: {statistics}.")
    });
}
