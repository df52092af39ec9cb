//! Ops that stay what they are, with their arguments.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use pt2onnx::{
    Exporter, Provenance, UnsupportedOps,
    fx::{
        ExportedProgram, archive,
        graph::{ArgKind, Argument, Device, NamedArg, OpName, SymArg},
    },
    opt::Level,
};
use std::{path::Path, sync::Arc};

/// The MLP, its nodes as `change` makes them.
fn program(change: impl Fn(usize, &str) -> Option<&'static str>) -> ExportedProgram {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/mlp.pt2");
    let mut program = archive::read(path).unwrap();
    for (i, node) in program.graph.nodes.iter_mut().enumerate() {
        if let Some(target) = change(i, &node.target.name) {
            Arc::make_mut(node).target = OpName::parse(target);
        }
    }
    program
}

/// The first nodes as text.
fn nodes(exporter: Exporter, program: ExportedProgram) -> Vec<String> {
    let text = exporter.export(program).unwrap().to_text();
    let nodes = text.lines().filter(|l| l.starts_with("  ") && l.contains(" = "));
    let nodes = nodes.filter(|l| !l.contains("{...}") && !l.contains('{'));
    nodes.take(3).map(|l| l.trim().to_owned()).collect()
}

fn exporter(operators: UnsupportedOps) -> Exporter {
    Exporter::new().provenance(Provenance::None).unsupported_ops(operators)
}

#[test]
fn aten_nodes_have_all_arguments() {
    let mut known = program(|i, _| match i {
        1 => Some("torch.ops.aten.linear.new"),
        2 => Some("torch.ops.aten._sparse_mm.reduce"),
        _ => None,
    });
    let sparse = Arc::make_mut(&mut known.graph.nodes[2]);
    sparse.args[0].name = "sparse".into();
    let dense = sparse.args[0].value.clone();
    for (name, value) in [("reduce", Argument::String("mean".into())), ("dense", dense)] {
        sparse.args.push(NamedArg { name: name.into(), kind: ArgKind::Keyword, value });
    }
    let exporter = |operators| exporter(operators).optimize(Level::Off).aten_nodes(true);
    let text = exporter(UnsupportedOps::AtenFallback).export(known).unwrap().to_text();
    for node in [
        "linear = org.pytorch.aten.ATen <operator: string = \"linear\", overload_name: string = \"new\"> \
         (cat, fc_combined.weight, fc_combined.bias)",
        "val_0 = Constant <value_string: string = \"mean\"> ()",
        "sigmoid = org.pytorch.aten.ATen <operator: string = \"_sparse_mm\", overload_name: string = \"reduce\"> \
         (linear, linear, val_0)",
    ] {
        assert!(text.contains(node), "no {node} in {text}");
    }
    let error = exporter(UnsupportedOps::Aten).export(program(|_, _| None)).err().unwrap();
    assert!(error.to_string().contains("that is a list of tensors (`tensors`)"), "{error}");
}

#[test]
fn arguments_of_all_kinds() {
    use Argument::*;
    let mut program = program(|i, _| (i == 2).then_some("torch.ops.mylib.some.default"));
    let name = |n: &str| -> pt2onnx::fx::graph::Name { n.into() };
    let args = [
        ("none", None),
        ("gap", OptionalTensor(Option::None)),
        ("empty", Tensors(vec![])),
        ("gaps", OptionalTensors(vec![Some(name("linear")), Option::None, Some(name("linear"))])),
        ("ints", Ints(vec![1, -2])),
        ("size", SymInt(SymArg::Value(7))),
        ("sizes", SymInts(vec![SymArg::Value(1), SymArg::Value(2)])),
        ("float", Float(0.5)),
        ("floats", Floats(vec![1.0, f64::INFINITY])),
        ("yes", Bool(true)),
        ("flags", Bools(vec![true, false])),
        ("text", String(name("a \"b\""))),
        ("texts", Strings(vec![name("a"), name("b")])),
        ("dtype", DType(pt2onnx::tensor::DType::F16)),
        ("device", Device(self::Device { kind: name("cuda"), index: Some(1) })),
        ("complex", Complex(1.0, -2.0)),
    ];
    Arc::make_mut(&mut program.graph.nodes[2]).args = args
        .map(|(name, value)| NamedArg { name: name.into(), kind: ArgKind::Keyword, value })
        .to_vec();
    let nodes = nodes(exporter(UnsupportedOps::Fallthrough), program);
    let expected = "sigmoid = mylib.some <empty: ints = [], ints: ints = [1, -2], size: int = 7, sizes: ints = [1, 2], \
                    float: float = 0.5, floats: floats = [1.0, inf], yes: int = 1, flags: ints = [1, 0], \
                    text: string = \"a \\\"b\\\"\", texts: strings = [\"a\", \"b\"], dtype: int = 10, \
                    device: string = \"cuda:1\", complex: floats = [1.0, -2.0], \
                    input_names: strings = [\"gaps\", \"gaps\", \"gaps\"]> (linear, \"\", linear)";
    assert_eq!(nodes[2], expected);
}
