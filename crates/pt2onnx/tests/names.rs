//! Names and dimensions, as the exporter is given them: what the model then has.
#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test may fail so")]

mod bundles;

use pt2onnx::{Exporter, IoNames};
use std::path::{Path, PathBuf};

fn mlp() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/mlp.pt2")
}

/// Inputs and outputs as text: `x: float[s18,8]`.
fn ends(program: &pt2onnx::OnnxProgram) -> String {
    let model = program.model();
    let show = |v: &pt2onnx::ir::Value| {
        let data = &model[*v];
        let (name, ty) = (data.name.as_deref().unwrap(), data.ty.as_ref().unwrap());
        format!("{name}: {ty}")
    };
    let list =
        |values: &[pt2onnx::ir::Value]| values.iter().map(show).collect::<Vec<_>>().join(", ");
    format!("{} -> {}", list(model.inputs()), list(&model.output_values().collect::<Vec<_>>()))
}

#[test]
fn the_example_of_pytorchs_documentation() {
    let program = Exporter::new()
        .input_names(["tensor_input", "tensor_x", "list_input_index_0"])
        .output_names(["output"])
        .rename_dim("tensor_x.0", "batch_size")
        .export(mlp())
        .unwrap();
    assert_eq!(
        ends(&program),
        "tensor_input: float[batch_size,8], tensor_x: float[batch_size,8], \
         list_input_index_0: float[batch_size,8] -> output: float[batch_size,2]"
    );
    let model = program.model();
    let original = |v: pt2onnx::ir::Value| {
        let metadata = &model[v].metadata;
        let entry = metadata.iter().find(|(k, _)| k == "pkg.torch.onnx.original_node_name");
        entry.map(|(_, name)| name.to_string()).unwrap()
    };
    let originals: Vec<String> = model.inputs().iter().map(|v| original(*v)).collect();
    assert_eq!(originals, ["tensor_x", "input_dict_tensor_x", "input_list_0"]);
}

#[test]
fn dimensions() {
    let x = |dim: &str, out: &str| {
        format!(
            "tensor_x: float[{dim},8], input_dict_tensor_x: float[{dim},8], \
             input_list_0: float[{dim},8] -> linear_4: float[{out},2]"
        )
    };
    let axes = |text: &str| Exporter::new().dynamic_axes(text.parse().unwrap());
    for (exporter, expected) in [
        (Exporter::new(), x("s18", "s18")),
        (Exporter::new().rename_dim("s18", "n"), x("n", "n")),
        (Exporter::new().rename_dim("linear_4.-2", "n"), x("n", "n")),
        (Exporter::new().fix_dim("s18", 3), x("3", "3")),
        (Exporter::new().rename_dim("s18", "n").fix_dim("n", 3), x("3", "3")),
        (Exporter::new().fix_dim("input_list_0.0", 3), x("3", "3")),
        (axes(r#"{"tensor_x": {"0": "n"}}"#), x("n", "n")),
        (axes(r#"{"tensor_x": {"0": "n"}, "linear_4": [0]}"#), x("n", "linear_4_dynamic_axes_1")),
        (axes(r#"{"linear_4": [0]}"#).fix_dim("linear_4_dynamic_axes_1", 2), x("2", "2")),
    ] {
        assert_eq!(ends(&exporter.export(mlp()).unwrap()), expected);
    }
    let mut program = Exporter::new().export(mlp()).unwrap();
    program.rename_axes([("tensor_x.0", "rows")]).unwrap();
    assert_eq!(ends(&program), x("rows", "rows"));
    assert!(program.rename_axes([("s18", "n")]).is_err());
}

#[test]
fn values_in_between() {
    let text = |exporter: Exporter| exporter.export(mlp()).unwrap().to_text();
    let renamed = text(Exporter::new().rename("cat", "joined").rename("fc0.weight", "w"));
    assert!(renamed.contains("joined") && !renamed.contains("fc0.weight"), "{renamed}");
    // They step aside for inputs.
    let moved = text(Exporter::new().rename("tensor_x", "cat"));
    assert!(moved.contains("cat") && moved.contains("val_0"), "{moved}");
    // So do weights, which keep their name in the state dict.
    let program = Exporter::new().rename("tensor_x", "fc0.weight").export(mlp()).unwrap();
    let weights: Vec<_> =
        program.model().values().filter(|(_, data)| data.constant().is_some()).collect();
    let moved =
        weights.iter().find(|(_, data)| data.name.as_deref() == Some("fc0.weight_1")).unwrap().1;
    assert!(
        moved
            .metadata
            .iter()
            .any(|(key, name)| key == "pkg.pt2onnx.target" && &**name == "fc0.weight")
    );
    // And two may swap.
    let swapped =
        Exporter::new().rename("tensor_x", "input_list_0").rename("input_list_0", "tensor_x");
    let swapped = ends(&swapped.export(mlp()).unwrap());
    assert!(swapped.starts_with("input_list_0: ") && swapped.contains(", tensor_x: "), "{swapped}");
}

/// `str(ep.range_constraints)`, and so the model's metadata, has also what follows; names given to
/// dimensions are the model's, the program's ranges keep its symbols, as PyTorch's do.
#[test]
fn ranges_in_metadata() {
    let bundle = bundles::unpack(&bundles::testdata().join("cases/interface.tar.zst"));
    for (case, dims, ends_are, ranges) in [
        (
            "derived_dim",
            [("s77", "d")],
            "x: float[d], y: float[\"d + 1\"] -> add: float[d], slice_2: float[\"((d + 1)//2)\"]",
            "{s77: VR[3, 64], s77 + 1: VR[4, 65]}",
        ),
        (
            "multiple_dim",
            [("s40", "d")],
            "x: float[\"2*d\",3], y: float[\"2*d\",3] -> add: float[\"2*d\",3], cat: float[\"4*d\",3]",
            "{2*s40: VR[0, 64], s40: VR[2, 32]}",
        ),
    ] {
        let archive = bundles::temporary(&bundle[case]["model.pt2"]);
        let [(symbol, name)] = dims;
        let program = Exporter::new().rename_dim(symbol, name).export(archive.path());
        let program = program.unwrap();
        assert_eq!(ends(&program), ends_are);
        let metadata = &program.model().graph_metadata;
        let key = "pkg.torch.export.ExportedProgram.range_constraints";
        let entry = metadata.iter().find(|(k, _)| k == key).unwrap();
        assert_eq!(&*entry.1, ranges);
    }
}

/// Caches of keys and values are called as runtimes of language models want them.
#[test]
fn caches_have_the_names_that_runtimes_want() {
    let bundle = bundles::unpack(&bundles::testdata().join("cases/models.tar.zst"));
    let archive = bundles::temporary(&bundle["transformers/gpt2.dyncache"]["model.pt2"]);
    let names = |exporter: Exporter| {
        let ends = ends(&exporter.export(archive.path()).unwrap());
        let words = ends.split_whitespace().filter_map(|word| word.strip_suffix(':'));
        words.map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let both = Exporter::new().input_names(IoNames::FromTree).output_names(IoNames::FromTree);
    let standard = "input_ids attention_mask past_key_values.0.key past_key_values.1.key past_key_values.0.value \
                    past_key_values.1.value linear present.0.key present.1.key present.0.value present.1.value";
    assert_eq!(names(both), standard);
    let scheme = "old.{part}.{layer}, new.{part}.{layer}";
    let own = Exporter::new().input_names(["ids"]).kv_names(scheme.parse().unwrap());
    let expected = "ids attention_mask old.key.0 old.key.1 old.value.0 old.value.1 \
                    linear new.key.0 new.key.1 new.value.0 new.value.1";
    assert_eq!(names(own), expected);
}

/// A body of an operator of another domain may have the names of values around it, which are found
/// first.
#[test]
fn values_of_other_scopes_come_last() {
    let text = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>
        g (float[2] x) => (float[2] y) {
            s = com.microsoft.Search <body: graph = b (float[2] z) => (float[2] a) { a = Neg (z) }> (x)
            a = Relu (x)
            y = Add (a, s)
        }";
    let model: pt2onnx::ir::Model = text.parse().unwrap();
    let bytes = pt2onnx::writer::to_bytes(&model).unwrap();
    let program = pt2onnx::OnnxProgram::from_bytes(bytes, []).unwrap();
    let made_by = |name: &str| {
        let model = program.model();
        model.producer(program.value(name).unwrap()).map(|node| model[node].op().to_owned())
    };
    assert_eq!(made_by("a").as_deref(), Some("Relu"));
    assert_eq!(made_by("z"), None);
}
