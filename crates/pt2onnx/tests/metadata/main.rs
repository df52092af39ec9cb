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
    Exporter, OnnxProgram,
    ir::{Def, Metadata, Model, Type, Value},
};
use serde_json::Value as Json;
use std::{collections::BTreeMap, fmt::Display, fs};

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
