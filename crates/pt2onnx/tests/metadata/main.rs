//! Metadata against what `torch.onnx.export(dynamo=True, optimize=False)` wrote for the same archives: CASE.json, made by
//! `testdata/generate/metadata.py`. All differences are listed, with their reasons, in `differences.txt`.

#![expect(clippy::unwrap_used, reason = "tests")]

use pt2onnx::{
    Detail, Exporter,
    ir::{Def, Metadata, Model, NodeId, Value},
};
use serde_json::Value as Json;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

const FX_NODE: &str = "pkg.torch.onnx.fx_node";
const STACK_TRACE: &str = "pkg.torch.onnx.stack_trace";

type Props = BTreeMap<String, String>;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/metadata")
}

/// The archives of the small bundles and `testdata/models`, by name of the case.
fn archives() -> BTreeMap<String, Vec<u8>> {
    let mut archives = BTreeMap::new();
    let mlp = fs::read(testdata().join("models/mlp.pt2")).unwrap();
    archives.insert("mlp".to_owned(), mlp);
    for bundle in ["control", "exportdb"] {
        let file = fs::File::open(testdata().join(format!("cases/{bundle}.tar.zst"))).unwrap();
        let unpacked = ruzstd::decoding::StreamingDecoder::new(file).unwrap();
        for entry in tar::Archive::new(unpacked).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().into_owned();
            if path.ends_with("model.pt2") {
                let case = path.parent().unwrap().file_name().unwrap();
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).unwrap();
                archives.insert(case.to_str().unwrap().to_owned(), bytes);
            }
        }
    }
    archives
}

fn export(exporter: &Exporter, archive: &[u8]) -> pt2onnx::OnnxProgram {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(archive).unwrap();
    exporter.export(file.path()).unwrap()
}

fn props(metadata: &Metadata) -> Props {
    let entries = metadata.iter().map(|(k, v)| (k.to_string(), v.to_string()));
    entries.collect()
}

fn values(model: &Model, values: impl IntoIterator<Item = Value>) -> BTreeMap<String, Props> {
    let values = values.into_iter().map(|v| &model[v]);
    values
        .map(|v| (v.name.as_deref().unwrap().to_owned(), props(&v.metadata)))
        .collect()
}

fn strings(json: &Json) -> Props {
    let entries = json.as_object().unwrap().iter();
    entries
        .map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned()))
        .collect()
}

fn tables(json: &Json) -> BTreeMap<String, Props> {
    let entries = json.as_object().unwrap().iter();
    entries.map(|(k, v)| (k.clone(), strings(v))).collect()
}

/// By FX node, in the order of `metadata.py`: the first of several with one name counts.
fn nodes(model: &Model) -> BTreeMap<String, Props> {
    fn visit(model: &Model, nodes: Vec<NodeId>, found: &mut BTreeMap<String, Props>) {
        for id in nodes {
            for &origin in &model[id].origins {
                let props = props(&model[origin].metadata);
                let name = props[FX_NODE].split(' ').next().unwrap();
                found.entry(name[1..].to_owned()).or_insert(props);
            }
            let mut attributes: Vec<_> = model[id].attributes.iter().collect();
            attributes.sort_by_key(|(name, _)| name.clone());
            for (_, attribute) in attributes {
                for &region in attribute.regions() {
                    visit(model, model.nodes(region).collect(), found);
                }
            }
        }
    }
    let mut found = BTreeMap::new();
    visit(model, model.nodes(Model::MAIN).collect(), &mut found);
    found
}

/// `what name: key key`, `what name: only PyTorch`, `what name: only pt2onnx`.
fn differences(
    what: &str,
    theirs: &BTreeMap<String, Props>,
    ours: &BTreeMap<String, Props>,
) -> Vec<String> {
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let mut lines = Vec::new();
    for name in names {
        let which = match (theirs.get(name), ours.get(name)) {
            (Some(_), None) => "only PyTorch".to_owned(),
            (None, _) => "only pt2onnx".to_owned(),
            (Some(theirs), Some(ours)) => {
                let keys: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
                let differ = keys.into_iter().filter(|k| theirs.get(*k) != ours.get(*k));
                let short = |k: &String| k.rsplit('.').next().unwrap().to_owned();
                differ.map(short).collect::<Vec<_>>().join(" ")
            }
        };
        if !which.is_empty() {
            lines.push(format!("{what} {name}: {which}"));
        }
    }
    lines
}

fn compare(json: &Json, model: &Model) -> Vec<String> {
    let traces = &json["traces"];
    let mut theirs = BTreeMap::new();
    for (name, entry) in json["nodes"].as_object().unwrap() {
        let mut entry = entry.clone();
        let trace = usize::try_from(entry[STACK_TRACE].as_u64().unwrap()).unwrap();
        entry[STACK_TRACE] = traces[trace].clone();
        theirs.insert(name.clone(), strings(&entry));
    }
    let graph = |p: Props| BTreeMap::from([("graph".to_owned(), p)]);
    let weights = model.values().filter(|(_, d)| {
        matches!(d.def(), Def::Constant(_)) && d.uses().len() > 0 && !d.metadata.is_empty()
    });
    let mut ours_of_graph = props(&model.graph_metadata);
    // An addition of ours.
    ours_of_graph.remove("pkg.torch.export.ExportedProgram.guards_code");
    let pairs = [
        ("the", graph(strings(&json["graph"])), graph(ours_of_graph)),
        (
            "input",
            tables(&json["inputs"]),
            values(model, model.inputs().iter().copied()),
        ),
        (
            "output",
            tables(&json["outputs"]),
            values(model, model.outputs().iter().copied()),
        ),
        (
            "weight",
            tables(&json["initializers"]),
            values(model, weights.map(|(v, _)| v)),
        ),
        ("node", theirs, nodes(model)),
    ];
    let pairs = pairs.iter();
    pairs
        .flat_map(|(what, theirs, ours)| differences(what, theirs, ours))
        .collect()
}

#[test]
fn as_pytorch_writes_it() {
    let archives = archives();
    let mut found = Vec::new();
    let mut cases: Vec<PathBuf> = fs::read_dir(here())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "json"))
        .collect();
    cases.sort();
    assert!(cases.len() >= 20);
    for path in cases {
        let case = path.file_stem().unwrap().to_str().unwrap();
        let json: Json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let program = export(
            &Exporter::new().optimize(pt2onnx::opt::Level::Off),
            &archives[case],
        );
        let lines = compare(&json, program.model());
        found.extend(lines.into_iter().map(|l| format!("{case}: {l}")));
    }
    let listed = fs::read_to_string(here().join("differences.txt")).unwrap();
    let mut unexplained = Vec::new();
    let mut listed: BTreeSet<&str> = listed
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .collect();
    for line in &found {
        if !listed.remove(line.as_str()) {
            unexplained.push(line);
        }
    }
    assert!(
        unexplained.is_empty() && listed.is_empty(),
        "not listed: {unexplained:#?}\nlisted, but not so: {listed:#?}"
    );
}

#[test]
fn as_much_as_is_asked_for() {
    let archive = fs::read(testdata().join("models/mlp.pt2")).unwrap();
    let keys = |exporter: Exporter| {
        let program = export(&exporter, &archive);
        let model = program.model();
        let node = model.nodes(Model::MAIN).next().unwrap();
        let short = |m: &Metadata| {
            let keys = m.iter().map(|(k, _)| k.rsplit('.').next().unwrap());
            keys.map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        let origin = model[node].origins[0];
        [
            short(&model.graph_metadata),
            short(&model[model.inputs()[0]].metadata),
            short(&model[origin].metadata),
        ]
    };
    let nodes = "namespace class_hierarchy fx_node name_scopes stack_trace";
    for (detail, expected) in [
        (
            Detail::Full,
            [
                "graph_signature range_constraints guards_code",
                "kind persistent",
                nodes,
            ],
        ),
        (Detail::Basic, ["range_constraints", "", "namespace"]),
        (Detail::None, ["", "", ""]),
    ] {
        assert_eq!(keys(Exporter::new().metadata(detail)), expected);
    }
}

#[test]
fn stack_traces_without_folders() {
    let archive = fs::read(testdata().join("models/mlp.pt2")).unwrap();
    let program = export(&Exporter::new().strip_paths(true), &archive);
    let model = program.model();
    let traces: BTreeSet<String> = nodes(model)
        .into_values()
        .map(|p| p[STACK_TRACE].clone())
        .collect();
    let files: BTreeSet<&str> = traces
        .iter()
        .flat_map(|t| t.lines())
        .filter_map(|l| l.trim_start().strip_prefix("File \"")?.split('"').next())
        .collect();
    assert_eq!(
        files.into_iter().collect::<Vec<_>>(),
        ["linear.py", "seedcase.py"]
    );
}

#[test]
fn what_the_user_says_of_the_model() {
    let archive = fs::read(testdata().join("models/mlp.pt2")).unwrap();
    let exporter = Exporter::new()
        .meta("a", "1")
        .meta("b", "2")
        .meta("a", "3")
        .doc_string("words")
        .model_version(7)
        .producer("me")
        .source_lines(true);
    let program = export(&exporter, &archive);
    let model = program.model();
    assert_eq!(
        props(&model.metadata),
        Props::from([("a".into(), "3".into()), ("b".into(), "2".into())])
    );
    let said = (
        model.doc_string.as_deref(),
        model.model_version,
        model.producer.as_deref(),
    );
    assert_eq!(said, (Some("words"), Some(7), Some("me")));
    assert!(model.source_lines);
}
