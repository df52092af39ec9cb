//! Tests interface and metadata against what `torch.onnx.export(dynamo=True, optimize=False)`
//! wrote.
//!
//! Its models are in `testdata/metadata/torch.tar.zst`, made by `testdata/generate/metadata.py`
//! from the same archives. All differences are listed, text by text and with their reasons, in
//! `differences.txt`.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "../bundles/mod.rs"]
mod bundles;
mod listed;
mod nodes;

use bundles::{testdata, unpack};
use pt2onnx::{
    Detail, Exporter, OnnxProgram,
    ir::{Def, Metadata, Model, Type, Value},
};
use serde_json::Value as Json;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs,
};

const FX_NODE: &str = "pkg.torch.onnx.fx_node";
const NAME_SCOPES: &str = "pkg.torch.onnx.name_scopes";
const STACK_TRACE: &str = "pkg.torch.onnx.stack_trace";
const NAMESPACE: &str = "namespace";
const GUARDS: &str = "pkg.torch.export.ExportedProgram.guards_code";

type Props = BTreeMap<String, String>;
/// The metadata of each thing, by its kind and name: `node add`, `input x`.
type Said = BTreeMap<String, Props>;

/// The archives of the small bundles and `testdata/models`, by name of the case.
fn archives() -> BTreeMap<String, Vec<u8>> {
    let mlp = fs::read(testdata().join("models/mlp.pt2")).unwrap();
    let mut archives = BTreeMap::from([("mlp".to_owned(), mlp)]);
    for bundle in ["control", "exportdb", "first", "interface", "models"] {
        for (folder, mut files) in unpack(&testdata().join(format!("cases/{bundle}.tar.zst"))) {
            let case = folder.rsplit('/').next().unwrap().to_owned();
            let archive = files.remove("model.pt2").unwrap();
            archives.insert(case, archive);
        }
    }
    archives
}

fn export(exporter: &Exporter, archive: &[u8]) -> OnnxProgram {
    exporter.export(bundles::temporary(archive).path()).unwrap()
}

fn props<T: Display>(metadata: &Metadata<T>) -> Props {
    let entries = metadata.iter().map(|(k, v)| (k.to_string(), v.to_string()));
    entries.collect()
}

/// The last words of the keys.
fn keys<T>(metadata: &Metadata<T>) -> String {
    let keys = metadata.iter().map(|(k, _)| k.rsplit('.').next().unwrap());
    keys.map(str::to_owned).collect::<Vec<_>>().join(" ")
}

/// As `metadata.py` has types: `float[s18,2*s3]`.
fn type_text(ty: &Type) -> String {
    let text = ty.to_string().replace('"', "").replace(", ", ",");
    if text.ends_with(']') { text } else { text + "[]" }
}

fn values(said: &mut Said, what: &str, model: &Model, values: impl IntoIterator<Item = Value>) {
    for data in values.into_iter().map(|v| &model[v]) {
        let mut props = props(&data.metadata);
        props.insert("type".to_owned(), type_text(data.ty.as_ref().unwrap()));
        said.insert(format!("{what} {}", data.name.as_deref().unwrap()), props);
    }
}

/// The metadata of our model.
fn ours(model: &Model) -> Said {
    let mut said = Said::new();
    let mut graph = props(&model.graph_metadata);
    // An addition of ours.
    graph.remove(GUARDS);
    said.insert("graph".to_owned(), graph);
    values(&mut said, "input", model, model.inputs().iter().copied());
    values(&mut said, "output", model, model.output_values());
    let weights = model.values().filter(|(_, d)| {
        matches!(d.def(), Def::Constant(_)) && d.uses().len() > 0 && !d.metadata.is_empty()
    });
    values(&mut said, "weight", model, weights.map(|(v, _)| v));
    said
}

fn strings(json: &Json) -> Props {
    let entries = json.as_object().unwrap().iter();
    entries.map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned())).collect()
}

/// The metadata of PyTorch's model.
fn theirs(json: &Json) -> Said {
    let mut said = Said::from([("graph".to_owned(), strings(&json["graph"]))]);
    for (what, key) in [
        ("input", "inputs"),
        ("output", "outputs"),
        ("weight", "initializers"),
        ("value", "between"),
    ] {
        for (name, entry) in json[key].as_object().unwrap() {
            said.insert(format!("{what} {name}"), strings(entry));
        }
    }
    said
}

#[test]
fn as_pytorch_writes_it() {
    let archives = archives();
    let cases = unpack(&testdata().join("metadata/torch.tar.zst"));
    let mut found = Vec::new();
    for (file, bytes) in &cases[""] {
        let case = file.strip_suffix(".json").unwrap();
        let json: Json = serde_json::from_slice(bytes).unwrap();
        let program = export(&Exporter::new().optimize(pt2onnx::opt::Level::Off), &archives[case]);
        let mut lines = listed::differences(&theirs(&json), &ours(program.model()));
        lines.extend(nodes::differences(&json, program.model()));
        found.extend(lines.into_iter().map(|line| format!("{case}: {line}")));
    }
    listed::check(&found);
}

#[test]
fn as_much_as_is_asked_for() {
    let archive = fs::read(testdata().join("models/mlp.pt2")).unwrap();
    let keys = |exporter: Exporter| {
        let program = export(&exporter, &archive);
        let model = program.model();
        let node = model.nodes(Model::MAIN).next().unwrap();
        let origin = model[node].origins[0];
        [
            keys(&model.graph_metadata),
            keys(&model[model.inputs()[0]].metadata),
            keys(&model[origin].metadata),
        ]
    };
    let nodes = "namespace class_hierarchy fx_node name_scopes stack_trace";
    for (detail, expected) in [
        (Detail::Full, ["graph_signature range_constraints guards_code", "kind persistent", nodes]),
        (Detail::Basic, ["range_constraints", "", "namespace"]),
        (Detail::None, ["", "", ""]),
    ] {
        assert_eq!(keys(Exporter::new().provenance(detail)), expected);
    }
}

#[test]
fn stack_traces_without_folders() {
    let archive = fs::read(testdata().join("models/mlp.pt2")).unwrap();
    let program = export(&Exporter::new().strip_paths(true), &archive);
    let model = program.model();
    let traces: BTreeSet<String> =
        nodes::said(model).into_iter().map(|p| p[STACK_TRACE].clone()).collect();
    let files: BTreeSet<&str> = traces
        .iter()
        .flat_map(|t| t.lines())
        .filter_map(|l| l.trim_start().strip_prefix("File \"")?.split('"').next())
        .collect();
    assert_eq!(files.into_iter().collect::<Vec<_>>(), ["linear.py", "seedcase.py"]);
}

#[test]
fn what_the_user_says_of_the_model() {
    let archive = fs::read(testdata().join("models/mlp.pt2")).unwrap();
    let exporter = Exporter::new()
        .metadata_prop("a", "1")
        .metadata_prop("b", "2")
        .metadata_prop("a", "3")
        .model_doc("words")
        .model_version(7)
        .producer("me")
        .node_docs(true);
    let program = export(&exporter, &archive);
    let model = program.model();
    assert_eq!(
        props(&model.metadata),
        Props::from([("a".into(), "3".into()), ("b".into(), "2".into())])
    );
    let said = (model.doc_string.as_deref(), model.model_version, model.producer.as_deref());
    assert_eq!(said, (Some("words"), Some(7), Some("me")));
    assert!(model.source_lines);
}
