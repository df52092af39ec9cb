//! `pt2onnx ops` and `pt2onnx explain`: the ops that have a translation, and what they become.

use crate::{
    error::{Code, CommandError},
    output::{print, print_json},
};
use pt2onnx::{Registry, aten::AtenOp};
use std::{collections::HashMap, fmt::Write};

/// What each op became in the conformance cases. `cargo xtask regen-ops` writes it.
const TABLE: &str = include_str!("generated/ops.tsv");

/// How ops of other libraries get a translation.
pub const CUSTOM_OPS: &str = "add a translation: an ONNX function (`--functions FILE.onnxtxt`), a Python function \
    (`@pt2onnx.translation`) or a closure in Rust (`Registry::register`), see docs/custom-ops.md; or keep the op for a runtime that \
    knows it: `--operators fallthrough`; or let PyTorch expand it before saving: `exported_program.run_decompositions()`";

/// A line of the table.
#[derive(Default, Clone, Copy)]
struct Tested<'a> {
    cases: &'a str,
    operators: &'a str,
    opset: &'a str,
    types: &'a str,
}

fn table() -> HashMap<&'static str, Tested<'static>> {
    let row = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [name, cases, operators, opset, types] => {
            Some((name, Tested { cases, operators, opset, types }))
        }
        _ => None,
    };
    TABLE.lines().filter_map(row).collect()
}

/// Prints all ops that have a translation: one schema in a line, or JSON with everything known about them.
pub fn list(json: bool) -> Result<(), CommandError> {
    let (ops, table) = (Registry::default().ops(), table());
    if !json {
        let lines: String = ops.into_iter().map(|op| format!("{}\n", op.schema)).collect();
        return print(&lines);
    }
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let entry = |op: &&AtenOp| {
        let tested = table.get(op.name()).copied().unwrap_or_default();
        serde_json::json!({
            "name": op.name(),
            "schema": op.schema,
            "complex": op.takes_complex(),
            "cases": tested.cases.parse::<u32>().unwrap_or(0),
            "operators": words(tested.operators),
            "opset": tested.opset.parse::<u32>().ok(),
            "types": words(tested.types),
        })
    };
    let all: Vec<_> = ops.iter().map(entry).collect();
    print_json(&all.into(), true)
}

/// All overloads of an op, or one of them.
pub fn explain(op: &str) -> Result<String, CommandError> {
    let (registry, table) = (Registry::default(), table());
    let wanted = op.strip_prefix("torch.ops.").unwrap_or(op).strip_suffix(".default").unwrap_or(op);
    let wanted = if wanted.contains("::") {
        wanted.to_owned()
    } else {
        format!("aten::{}", wanted.trim_start_matches("aten."))
    };
    let is_it =
        |op: &&&AtenOp| op.name() == wanted || op.name().split('.').next() == Some(&*wanted);
    let all = registry.ops();
    let found: Vec<_> = all.iter().filter(is_it).collect();
    if found.is_empty() {
        let error =
            CommandError::new(Code::Program, format!("there is no translation of {wanted}"));
        let near = registry.nearest(&wanted).map(|n| format!("the most similar supported op: {n}"));
        return Err(error.help(match near {
            Some(near) => near,
            None if wanted.starts_with("aten::") => "`pt2onnx ops` lists what there is".to_owned(),
            None => CUSTOM_OPS.to_owned(),
        }));
    }
    let mut out = String::new();
    for op in found {
        let tested = table.get(op.name()).copied().unwrap_or_default();
        // A String takes whatever is written to it.
        let _ = writeln!(out, "{}", op.schema);
        let _ =
            writeln!(out, "  complex tensors: {}", if op.takes_complex() { "yes" } else { "no" });
        if !tested.operators.is_empty() {
            let _ = writeln!(
                out,
                "  becomes: {} (all there since opset {})",
                tested.operators, tested.opset
            );
        }
        let _ =
            writeln!(out, "  tested by {} cases, results of type: {}", tested.cases, tested.types);
    }
    Ok(out)
}
