//! Metadata of nodes: stack traces, and calls of modules.

use pt2onnx_aten::{Options, Registry, lower};
use pt2onnx_fx::{
    graph::{ModuleFrame, NodeMeta},
    text,
};
use pt2onnx_ir::{Model, OriginId};
use std::sync::Arc;

/// The model of a chain of `relu` with these metadata, by a program of that version of PyTorch.
fn model(version: &str, metas: Vec<NodeMeta>, options: Options) -> Model {
    let line = |i: usize| format!("y{}: f32[2] = aten.relu.default(self = y{i})\n", i + 1);
    let lines: String = (0..metas.len()).map(line).collect();
    let text = format!("graph(y0: f32[2]) {{\n{lines}return (y{},)\n}}", metas.len());
    let mut program = text::parse_program(&text).unwrap();
    program.torch_version = version.to_owned();
    for (node, meta) in program.graph.nodes.iter_mut().zip(metas) {
        Arc::make_mut(node).meta = meta.into();
    }
    lower(&program, &Registry::default(), options).unwrap().model
}

/// The first origin of each node.
fn origins(model: &Model) -> impl Iterator<Item = OriginId> {
    model.nodes(Model::MAIN).map(|node| model[node].origins[0])
}

/// The stack trace that a node gets for this one.
fn trace(trace: &str, strip_paths: bool) -> String {
    let meta = NodeMeta { stack_trace: Some(trace.into()), ..NodeMeta::default() };
    let model = model("2.15.0", vec![meta], Options { strip_paths, ..Options::default() });
    let origin = origins(&model).next().unwrap();
    let mut metadata = model[origin].metadata.iter();
    metadata.find(|(key, _)| key.ends_with("stack_trace")).unwrap().1.to_string()
}

#[test]
fn traces_without_folders() {
    for (given, stripped) in [
        (
            "File \"/a/b c/m.py\", line 3, in f\n    x = open(\"/etc/x\")\n  File \"C:\\d\\n.py\", line 4, in g\n    y",
            "File \"m.py\", line 3, in f\n    x = open(\"/etc/x\")\n  File \"n.py\", line 4, in g\n    y",
        ),
        ("File \"m.py\", line 3, in f\n", "File \"m.py\", line 3, in f\n"),
        ("File \"/a/m.py", "File \"/a/m.py"),
        ("", ""),
    ] {
        assert_eq!(trace(given, true), stripped);
        assert_eq!(trace(given, false), given);
    }
}

#[test]
fn long_source_lines_are_cut() {
    let file = |name: &str| format!("File \"{name}.py\", line 3, in f");
    let source = |file: &str, length, end| {
        format!("{file}\n    {}{end}\n  File \"m.py\", line 4, in g\n    y", "ä".repeat(length))
    };
    let long = file(&format!("/a/{}", "d".repeat(200)));
    assert_eq!(trace(&source(&long, 160, ""), false), source(&long, 156, "..."));
    assert_eq!(trace(&long, false), long);
    let stripped = file(&"d".repeat(200));
    assert_eq!(trace(&source(&long, 160, ""), true), source(&stripped, 156, "..."));
}

/// The paths of the calls that nodes with these stacks belong to, with numbers that distinguish
/// calls.
fn calls(version: &str, stacks: &[&[&str]]) -> String {
    let frame = |key: &&str| ModuleFrame {
        key: (*key).into(),
        path: key.split('@').next().unwrap().into(),
        ty: if *key == "_" { "_" } else { "m.C" }.into(),
    };
    let meta = |keys: &&[&str]| NodeMeta {
        nn_module_stack: keys.iter().map(frame).collect(),
        ..NodeMeta::default()
    };
    let options = Options { modules: true, ..Options::default() };
    let model = model(version, stacks.iter().map(meta).collect(), options);
    let call = |origin: OriginId| match model[origin].module {
        Some(module) => format!("{}{}", model[module].path, module.index()),
        None => "-".into(),
    };
    origins(&model).map(call).collect::<Vec<_>>().join(" ")
}

#[test]
fn keys_or_order_tell_calls_apart() {
    let stacks: [&[&str]; 8] =
        [&["r"], &["r", "a"], &["r"], &["_"], &["r", "a"], &["r", "a", "b"], &["r", "a@1"], &[]];
    for version in ["2.6.0", "2.9.0+cpu", "2.15.0+cu132", "3.0", "TorchScript 3"] {
        assert_eq!(calls(version, &stacks), "r0 a1 r0 - a1 b2 a3 -", "{version}");
    }
    assert_eq!(calls("2.5.1", &stacks), "r0 a1 r0 - a2 b3 a4 -");
}
