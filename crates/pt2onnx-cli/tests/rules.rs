//! `--rules` and `--op-functions`: text of users that changes models.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[expect(dead_code, reason = "what other tests need")]
mod common;

use common::{mlp, pt2onnx};
use pt2onnx::{ir::Model, writer};
use std::{fs, path::Path};
use tempfile::{TempDir, tempdir};

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// The nodes of a graph after rules: `Mul(x, x)`, ...
fn rewritten(rules: &str, graph: &str, more: &[&str]) -> String {
    let folder = tempdir().unwrap();
    let (from, to, file) =
        (path(&folder, "m.onnx"), path(&folder, "n.onnx"), path(&folder, "r.onnxtxt"));
    let text = format!(r#"<ir_version: 9, opset_import: ["" : 20]> g {graph}"#);
    let mut model: Model = text.parse().unwrap();
    model.assign_names();
    writer::save(&model, &from, writer::Weights::Embed).unwrap();
    fs::write(&file, rules).unwrap();
    let run = pt2onnx([&["optimize", &from, "-o", &to, "--rules", &file], more].concat());
    assert_eq!((run.code, &*run.stderr), (0, ""), "{graph}");
    let made = pt2onnx(["show", &to]).stdout;
    let nodes = made.lines().filter(|line| line.starts_with("  ") && line.contains(" = "));
    let nodes = nodes.filter(|line| line.contains('(')).map(str::trim);
    nodes.collect::<Vec<_>>().join("; ")
}

/// The first block of docs/rules.md.
fn example() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page.split("```text\n").nth(1).unwrap();
    block.split("```").next().unwrap().to_owned()
}

#[test]
fn the_example_of_the_documentation() {
    let rules = example();
    for (graph, expected) in [
        // Either order.
        ("(float[n] x) => (float[n] y) { s = Sigmoid (x) y = Mul (s, x) }", "y = my.ops.Silu (x)"),
        // The inner value has another use.
        (
            "(float[n] x) => (float[n] y, float[n] s) { s = Sigmoid (x) y = Mul (s, x) }",
            "s = Sigmoid (x); y = Mul (s, x)",
        ),
        // Other values.
        (
            "(float[n] x, float[n] z) => (float[n] y) { s = Sigmoid (x) y = Mul (s, z) }",
            "s = Sigmoid (x); y = Mul (s, z)",
        ),
        // Constants, also of another float type and with dimensions.
        (
            "(float16[n] x) => (float16[n] y) <float16[1] c = {2.0}> { y = Pow (x, c) }",
            "y = Mul (x, x)",
        ),
        ("(float[n] x) => (float[n] y) <float c = {3.0}> { y = Pow (x, c) }", "y = Pow (x, c)"),
        // Attributes, and their defaults.
        (
            "(float[n,m] x) => (float[n,m] y) { p = Softmax <axis: int = 0> (x) y = Log (p) }",
            "y = LogSoftmax <axis: int = 0> (x)",
        ),
        (
            "(float[n,m] x) => (float[n,m] y) { p = Softmax (x) y = Log (p) }",
            "y = LogSoftmax <axis: int = -1> (x)",
        ),
    ] {
        assert_eq!(rewritten(&rules, graph, &["--no-optimize"]), expected, "{graph}");
    }
    let imported = "(float[n] x) => (float[n] y) { s = Sigmoid (x) y = Mul (s, x) }";
    assert_eq!(rewritten(&rules, imported, &[]), "y = my.ops.Silu (x)");
}

#[test]
fn rules_in_conversions() {
    let folder = tempdir().unwrap();
    let rules = r#"
        <domain: "pattern", opset_import: ["" : 20]>
        layer <t> (x, w, b) => (y) {
            g = Gemm <transB: int = @t> (x, w, b)
            y = Sigmoid (g)
        }
        <domain: "replacement", opset_import: ["" : 20, "my.ops" : 3]>
        layer <t> (x, w, b) => (y) { y = my.ops.Layer <transposed: int = @t> (x, w, b) }"#;
    let (file, to) = (path(&folder, "r.onnxtxt"), path(&folder, "m.onnx"));
    fs::write(&file, rules).unwrap();
    let archive = mlp();
    let run = pt2onnx([archive.to_str().unwrap(), "-q", "-o", &to, "--rules", &file]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let text = pt2onnx(["show", &to]).stdout;
    assert_eq!(text.matches("my.ops.Layer <transposed: int = 1>").count(), 4, "{text}");
    assert!(text.contains(r#""my.ops" : 3"#) && !text.contains("Sigmoid"), "{text}");
    // Nor is the file of rules overwritten.
    let run = pt2onnx([archive.to_str().unwrap(), "-o", &file, "--rules", &file]);
    assert!(run.code == 2 && run.stderr.contains("would overwrite the rules"), "{run:?}");
}

/// They end, and the warning names them.
#[test]
fn rules_that_undo_each_other() {
    let folder = tempdir().unwrap();
    let rule = |name: &str, from: &str, to: &str| {
        format!(
            "<domain: \"pattern\", opset_import: [\"\" : 20]> {name} (x) => (y) {{ {from} }}
             <domain: \"replacement\", opset_import: [\"\" : 20]> {name} (x) => (y) {{ {to} }}\n"
        )
    };
    let (forth, back) = ("a = Relu (x) y = Sigmoid (a)", "a = Sigmoid (x) y = Relu (a)");
    let (file, model, to) =
        (path(&folder, "r.onnxtxt"), path(&folder, "m.onnx"), path(&folder, "n.onnx"));
    fs::write(&file, rule("swap", forth, back) + &rule("swap_back", back, forth)).unwrap();
    let text = r#"<ir_version: 9, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) {
        a = Relu (x) y = Sigmoid (a) }"#;
    writer::save(&text.parse::<Model>().unwrap(), &model, writer::Weights::Embed).unwrap();
    let run = pt2onnx(["optimize", &model, "-o", &to, "--rules", &file]);
    let warning = "passes that undo each other's changes were stopped: rules (swap, swap_back)";
    assert_eq!((run.code, &*run.stderr), (0, &*format!("warning: {warning}\n")));
}

#[test]
fn explain_says_why_a_fusion_did_not_apply() {
    let folder = tempdir().unwrap();
    let (model, to) = (path(&folder, "m.onnx"), path(&folder, "n.onnx"));
    let text = r#"<ir_version: 9, opset_import: ["" : 20]>
        g (float[b,n,2] x, float[2,3] w, float[3] c) => (float[b,n,3] y, float[b,n,2] z) {
        i = Identity (x) a = MatMul (i, w) y = Add (a, c) z = Relu (x) }"#;
    writer::save(&text.parse::<Model>().unwrap(), &model, writer::Weights::Embed).unwrap();
    let run = pt2onnx(["optimize", &model, "-o", &to, "--explain"]);
    let lines = "cleanup: once, -1 nodes (-1 Identity)\n\
                 gemm: not applied at 1 place: the operands are not matrices of floats\n";
    assert_eq!((run.code, &*run.stderr), (0, lines));
}

#[test]
fn functions_without_calls() {
    let folder = tempdir().unwrap();
    let to = path(&folder, "m.onnx");
    let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors/newer.onnxtxt");
    let (archive, functions) = (mlp(), functions.to_str().unwrap().to_owned());
    let args = [archive.to_str().unwrap(), "-q", "-o", &to, "--op-functions", &functions];
    assert_eq!(pt2onnx(args).code, 0);
    let calls = pt2onnx(["show", &to]).stdout;
    assert!(calls.contains("aten.sigmoid (") && calls.contains("<domain: \"aten\""), "{calls}");
    assert_eq!(pt2onnx([&args[..], &["--inline"]].concat()).code, 0);
    let flat = pt2onnx(["show", &to]).stdout;
    assert!(!flat.contains("aten") && flat.matches("Gelu").count() == 4, "{flat}");
}
