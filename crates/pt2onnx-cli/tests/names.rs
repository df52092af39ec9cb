//! Names of inputs, outputs, nodes and weights.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[path = "common/bundle.rs"]
mod bundle;
#[expect(dead_code, reason = "what other tests need")]
mod common;

use bundle::case;
use common::{mlp, pt2onnx, with_json};
use pt2onnx::{
    ir::{FOLDED_FROM, Model, ORIGINAL_NAME},
    writer,
};
use std::{fs, path::Path};
use tempfile::tempdir;

/// The model that the command makes of an archive.
fn converted(archive: &Path, args: &[&str]) -> Model {
    let folder = tempdir().unwrap();
    let output = folder.path().join("m.onnx");
    let fixed = [archive.to_str().unwrap(), "-q", "-o", output.to_str().unwrap()];
    let run = pt2onnx([&fixed, args].concat());
    assert_eq!((run.code, &*run.stderr), (0, ""), "{args:?}");
    writer::read(&output).unwrap()
}

/// Names of inputs and outputs: `x y -> z`.
fn ends(model: &Model) -> String {
    let name = |v: &pt2onnx::ir::Value| model[*v].name.as_deref().unwrap().to_owned();
    let inputs: Vec<String> = model.inputs().iter().map(name).collect();
    let outputs: Vec<String> = model.output_values().map(|v| name(&v)).collect();
    format!("{} -> {}", inputs.join(" "), outputs.join(" "))
}

fn nodes(model: &Model) -> Vec<String> {
    let nodes = model.nodes(Model::MAIN);
    nodes.map(|n| model[n].name.as_deref().unwrap().to_owned()).collect()
}

#[test]
fn nodes_are_called_after_those_of_the_program() {
    let model = converted(&mlp(), &["--optimize", "0"]);
    let expected = [
        "cat",
        "linear",
        "sigmoid",
        "linear_1",
        "sigmoid_1",
        "linear_2",
        "sigmoid_2",
        "linear_3",
        "sigmoid_3",
        "linear_4",
    ];
    assert_eq!(nodes(&model), expected.map(|name| format!("node_{name}")));
    // Names of values do not change them, and neither does what a fusion left.
    let renamed = converted(&mlp(), &["--rename", "linear=l", "--output-names", "y"]);
    assert_eq!(nodes(&renamed), nodes(&converted(&mlp(), &[])));
    assert_eq!(nodes(&renamed).last().unwrap(), "node_linear_4");
    // Several nodes of one.
    let archive = with_json(&mlp(), "aten.sigmoid.default", "aten.log_sigmoid.default");
    let folder = tempdir().unwrap();
    let path = folder.path().join("m.pt2");
    fs::write(&path, archive).unwrap();
    let several = nodes(&converted(&path, &[]));
    assert_eq!(
        several[2..5],
        ["node_sigmoid_Neg", "node_sigmoid_Softplus", "node_sigmoid"].map(str::to_owned),
        "{several:?}"
    );
}

#[test]
fn blanks_around_names_do_not_count() {
    let args = ["--input-names", " a, b ,c", "--output-names", " y ", "--rename", " cat = joined "];
    let model = converted(&mlp(), &args);
    assert_eq!(ends(&model), "a b c -> y");
    assert!(model.values().any(|(_, data)| data.name.as_deref() == Some("joined")));
}

#[test]
fn names_from_the_tree() {
    let args = ["--input-names", "from-tree", "--output-names", "from-tree"];
    let plain = "tensor_x input_dict_tensor_x input_list_0";
    assert_eq!(ends(&converted(&mlp(), &args)), format!("{plain} -> linear_4"));
    // A dict with the key of an input as its key.
    let leaf = r#"{\"type\": null, \"context\": null, \"children_spec\": []}"#;
    let dict = |key: &str| {
        let context = format!(r#"\"[\\\"{key}\\\"]\""#);
        format!(
            r#"{{\"type\": \"builtins.dict\", \"context\": {context}, \"children_spec\": [{leaf}]}}"#
        )
    };
    let folder = tempdir().unwrap();
    let path = folder.path().join("m.pt2");
    for (key, expected) in [("logits", "logits"), ("tensor_x", "tensor_x_out")] {
        let archive = with_json(
            &mlp(),
            &format!("\"out_spec\": \"[1, {leaf}]\""),
            &format!("\"out_spec\": \"[1, {}]\"", dict(key)),
        );
        fs::write(&path, archive).unwrap();
        assert_eq!(ends(&converted(&path, &args)), format!("{plain} -> {expected}"));
    }
}

/// A weight from which a constant was computed has its name in that of the constant, and
/// `apply-weights` does not take one for the other.
#[test]
fn folded_weights() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = r#"<ir_version: 9, opset_import: ["" : 20]>
        g (float[n,2,2] x) => (float[n,2,2] y) <float[2,2] w = {1, 2, 3, 4}> {
            t = Transpose <perm = [1, 0]> (w)
            y = MatMul (x, t)
        }"#;
    let mut model: Model = text.parse().unwrap();
    model.assign_names();
    writer::save(&model, path("m.onnx"), writer::Weights::Embed).unwrap();
    assert_eq!(pt2onnx(["optimize", &path("m.onnx"), "-o", &path("o.onnx")]).code, 0);
    let made = writer::read(path("o.onnx")).unwrap();
    let (_, folded) = made.values().find(|(_, data)| data.constant().is_some()).unwrap();
    assert_eq!(folded.name.as_deref(), Some("w_folded"));
    let said: Vec<(&str, &str)> = folded.metadata.iter().map(|(k, v)| (&**k, &**v)).collect();
    assert_eq!(said, [(ORIGINAL_NAME, "w"), (FOLDED_FROM, "w")]);
}

#[test]
fn caches_of_keys_and_values() {
    let folder = tempdir().unwrap();
    let archive = case("transformers/gpt2.dyncache", folder.path());
    let tree = ["--input-names", "from-tree", "--output-names", "from-tree"];
    let pairs = |start: &str| {
        let name = |part: &str, layer: u32| format!("{start}.{layer}.{part}");
        ["key", "value"].map(|part| format!("{} {}", name(part, 0), name(part, 1))).join(" ")
    };
    let expected = format!(
        "input_ids attention_mask {} -> linear {}",
        pairs("past_key_values"),
        pairs("present")
    );
    assert_eq!(ends(&converted(&archive, &tree)), expected);
    let own = ["--kv-names", "past.{layer}.{part},new.{layer}.{part}"];
    let expected = expected.replace("past_key_values", "past").replace("present", "new");
    assert_eq!(ends(&converted(&archive, &own)), expected);
}

/// Constants that were computed from weights of a program say which.
#[test]
fn folded_weights_of_a_program() {
    let folder = tempdir().unwrap();
    let model = converted(&case("transformers/bert.static", folder.path()), &[]);
    let mut found = 0;
    for (_, data) in model.values().filter(|(_, data)| data.constant().is_some()) {
        let name = data.name.as_deref().unwrap();
        let of = |key: &str| data.metadata.iter().find(|(k, _)| k == key).map(|(_, v)| &**v);
        if let Some(weight) = name.strip_suffix("_folded") {
            // It can be made from others, too.
            let first = of(FOLDED_FROM).and_then(|all| all.split(", ").next());
            assert_eq!((of(ORIGINAL_NAME), first), (Some(weight), Some(weight)), "{name}");
            found += 1;
        }
    }
    assert!(found > 0, "{model}");
}
