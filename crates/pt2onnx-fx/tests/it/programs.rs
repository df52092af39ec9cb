//! Tests that the programs of `tests/data` are printed as PyTorch prints them, and what the passes
//! make of them.
//!
//! PyTorch's text is `NAME.torch.txt`, written by `make.py`. After the passes it is
//! `NAME.prepared.txt`, rewritten where the environment has `UPDATE`.

use crate::support::{data, records};
use pt2onnx_fx::{Constant, ExportedProgram, archive, passes, printer, text};
use pt2onnx_tensor::DType;
use std::fs;

/// The names of files of `tests/data` with this end.
fn names(end: &str) -> Vec<String> {
    let files = fs::read_dir(data("")).unwrap().map(|file| file.unwrap().file_name());
    let names = files.filter_map(|name| Some(name.to_str()?.strip_suffix(end)?.to_owned()));
    let names: Vec<String> = names.collect();
    assert!(names.len() > 20, "{names:?}");
    names
}

fn read(name: &str) -> ExportedProgram {
    archive::read(data(&format!("{name}.pt2"))).unwrap()
}

#[test]
fn programs_print_as_pytorch_prints_them() {
    // PyTorch makes up other names for bodies within bodies: `autocast_nested` has no such file.
    for name in names(".torch.txt") {
        let program = read(&name);
        let graph = printer::Printer::new(&program);
        let ranges = printer::range_constraints(&program);
        let printed = format!("{graph}\n{}\n{ranges}\n", program.signature);
        let expected = fs::read_to_string(data(&format!("{name}.torch.txt"))).unwrap();
        assert_eq!(printed, expected, "{name}");
    }
}

#[test]
fn programs_after_the_passes() {
    for name in names(".prepared.txt") {
        let mut program = read(&name);
        let printed = match passes::prepare(&mut program) {
            Ok(()) => {
                let mutations = program.mutations.iter().map(|m| {
                    let source = m.source.as_deref().unwrap_or_default();
                    let node = m.node.as_deref().unwrap_or_default();
                    let (kind, target, value) = (m.kind, &m.target, &m.value);
                    format!("{kind:?} {target} becomes {value}, by {node} at {source}\n")
                });
                let mutations: String = mutations.collect();
                let graph = printer::Printer::new(&program);
                format!("{graph}\n{}{mutations}", program.signature)
            }
            Err(error) => format!("error: {error}\n"),
        };
        let path = data(&format!("{name}.prepared.txt"));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &printed).unwrap();
        }
        assert_eq!(printed, fs::read_to_string(path).unwrap(), "{name}");
    }
}

#[test]
fn functional_programs_are_left_as_they_are() {
    for name in ["functional", "several_results", "dynamic", "arguments"] {
        let mut program = read(name);
        passes::wrapped::unwrap_operators(&mut program).unwrap();
        let before = (program.graph.clone(), program.signature.clone());
        passes::functionalise::functionalise(&mut program).unwrap();
        assert_eq!((program.graph, program.signature), before, "{name}");
    }
}

#[test]
fn mutations_nobody_wants_leave_no_nodes() {
    let mut program = read("batch_norm");
    passes::prepare(&mut program).unwrap();
    let names: Vec<_> = program.mutations.iter().map(|m| &*m.input).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    program.mutations.clear();
    passes::dead::remove_dead(&mut program);
    let names = program.graph.nodes.iter().map(|n| n.target.to_string());
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "aten._native_batch_norm_legit_functional.default",
            "aten.instance_norm.default",
            "aten.add.Tensor"
        ]
    );
}

#[test]
fn what_the_passes_leave_alone_stays_a_program() {
    for name in names(".prepared.txt") {
        let mut program = read(&name);
        if passes::prepare(&mut program).is_err() {
            continue;
        }
        let mut known: Vec<_> = program.graph.inputs.iter().filter_map(|a| a.name()).collect();
        for node in &program.graph.nodes {
            for used in node.input_names() {
                assert!(known.contains(&&used), "{name}: {} uses {used}", node.name);
            }
            for defined in node.outputs.iter().filter_map(|a| a.name()) {
                assert!(!known.contains(&defined), "{name}: {defined} twice");
                assert!(program.graph.values.contains_key(defined), "{name}: {defined}");
            }
            node.outputs.iter().for_each(|o| o.for_each_name(&mut |n| known.push(n)));
        }
        let outputs = program.graph.outputs.iter().filter_map(|a| a.name());
        let specs = program.signature.outputs.iter().filter_map(|s| s.name());
        let outputs: Vec<_> = outputs.collect();
        assert!(outputs.iter().all(|n| known.contains(n)), "{name}");
        assert_eq!(outputs, specs.collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn weights_are_views_of_the_file() {
    let program = read("weights");
    let mut names: Vec<_> = program.state.keys().map(String::as_str).collect();
    names.sort();
    assert_eq!(names, ["a.bias", "a.weight", "b.bias", "b.weight", "none", "row", "t"]);
    let (weight, t, row) = (&program.state["a.weight"], &program.state["t"], &program.state["row"]);
    let storage = weight.storage().unwrap();
    for shared in [&program.state["b.weight"], t, row] {
        assert!(shared.storage().unwrap().same(storage));
    }
    let w = weight.to_vec::<f32>().unwrap();
    assert_eq!(t.to_vec::<f32>().unwrap(), [w[0], w[3], w[6], w[1], w[4], w[7], w[2], w[5], w[8]]);
    assert_eq!(row.to_vec::<f32>().unwrap(), w[3..6]);
    assert_eq!(program.state["none"].shape(), [0, 4]);
    assert!(program.state["none"].has_data());
    let Constant::Tensor(step) = &program.constants["step"] else { panic!() };
    assert_eq!(step.to_vec::<i64>().unwrap(), [7]);

    let source = storage.source().unwrap();
    let file = fs::read(data("weights.pt2")).unwrap();
    let start = usize::try_from(source.offset).unwrap();
    assert_eq!(&file[start..start + 36], &*weight.to_bytes());
    assert_eq!(start % 64, 0);
}

#[test]
fn fake_weights_are_absent() {
    let program = read("fake_weights");
    let weight = &program.state["weight"];
    assert_eq!((weight.dtype(), weight.shape()), (DType::F32, [2, 3].as_slice()));
    assert!(!weight.has_data());
}

#[test]
fn several_models_and_other_records() {
    let archive = archive::Archive::open(data("two_models.pt2")).unwrap();
    assert_eq!(archive.models().collect::<Vec<_>>(), ["twice", "thrice"]);
    let program = archive.program(Some("thrice")).unwrap();
    assert_eq!(program.torch_version, "2.15.0+cu132");
    assert_eq!((program.schema_version, program.opset_version["aten"]), ((8, 20), 10));
    assert_eq!(archive.record("extra/notes.txt").unwrap().bytes(), "hello");
    let error = archive.program(None).unwrap_err().to_string();
    assert!(error.ends_with("several models, name one of: twice, thrice"), "{error}");
    let error = archive.program(Some("model")).unwrap_err().to_string();
    assert!(error.ends_with("no model `model` in the archive, it holds: twice, thrice"), "{error}");
}

#[test]
fn from_memory() {
    let from_file = read("weights");
    let all = records("weights.pt2");
    let json = &all.iter().find(|(name, _)| name.ends_with("model.json")).unwrap().1;
    let program =
        archive::from_json(json, from_file.state.clone(), from_file.constants.clone()).unwrap();
    assert_eq!(program.graph, from_file.graph);
    let error = archive::from_json(json, Default::default(), Default::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the program's JSON: the archive has no data for parameter a.weight, which the program uses"
    );
}

/// A record of PyTorch 2.15 with `strict=True`.
#[test]
fn types_recorded_as_without_autocast_are_an_error() {
    let program = |result: &str| {
        format!(
            "graph(x: f32[2, 2]) {{
    wrap: (y: {result}[2, 2],) = higher_order.wrap_with_autocast('cpu', torch.bfloat16, True, None, graph body(x: f32[2, 2]) {{
        matmul: {result}[2, 2] = aten.matmul.default(self = x, other = x)
        return (matmul,)
    }}, x)
    return (y,)
}}"
        )
    };
    let inlined =
        |result| passes::inline::inline(&mut text::parse_program(&program(result)).unwrap());
    inlined("bf16").unwrap();
    let error = inlined("f32").unwrap_err().to_string();
    assert!(error.contains("aten.matmul.default (node `matmul`): runs under autocast"), "{error}");
}

#[test]
fn programs_captured_under_autocast_show_it_by_their_types() {
    let text = "graph(x: f32[2, 2]) {
    matmul: f16[2, 2] = aten.matmul.default(self = x, other = x)
    mul: f32[2, 2] = aten.mul.Tensor(self = matmul, other = x)
    mm: f16[2, 2] = aten.mm.default(self = mul, mat2 = matmul)
    return (mm,)
}";
    let casts = |text: &str| {
        let mut program = text::parse_program(text).unwrap();
        passes::inline::inline(&mut program).unwrap();
        let nodes = program.graph.nodes.iter();
        nodes.filter(|node| &*node.target.name == "_to_copy").count()
    };
    assert_eq!(casts(text), 3);
    assert_eq!(casts(&text.replace("f16", "f32")), 0);
    // Products of the types that they have.
    assert_eq!(casts(&text.replace("f32", "f16")), 0);
}
