//! The features of `.pt2` archives for those of `torch.jit.save`, which the content identifies.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[expect(dead_code, reason = "these tests make no archives")]
mod common;

use ::pt2onnx::{
    OnnxProgram,
    ir::{Model, Origin},
    read_weights,
};
use common::{Run, mlp, pt2onnx};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::{TempDir, tempdir};

/// The archives of the tests of `pt2onnx-torchscript`.
fn archives() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../pt2onnx-torchscript/tests/data")
}

fn archive(name: &str) -> String {
    archives().join(name).to_str().unwrap().to_owned()
}

/// A folder with copies of the archives, under the names that docs/torchscript.md gives them.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    for (from, to) in
        [("net.pt", "trace.pt"), ("net_script.pt", "scripted.pt"), ("counter.pt", "counter.pt")]
    {
        fs::copy(archive(from), folder.path().join(to)).unwrap();
    }
    folder
}

/// Runs the command in a folder.
fn within<'a>(folder: &Path, args: impl IntoIterator<Item = &'a str>) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pt2onnx"));
    let output = command.current_dir(folder).args(args).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Converts an archive.
fn convert(name: &str, args: &[&str]) -> (Model, Run) {
    let folder = tempdir().unwrap();
    let output = folder.path().join("m.onnx");
    let (model, out) = (archive(name), output.to_str().unwrap().to_owned());
    let run = pt2onnx([&[&*model, "-o", &*out], args].concat());
    assert_eq!(run.code, 0, "{run:?}");
    (OnnxProgram::open(&output).unwrap().model().clone(), run)
}

fn names(model: &Model) -> Vec<String> {
    let names = model.inputs().iter().map(|v| model[*v].name.as_deref().unwrap_or_default());
    names.map(str::to_owned).collect()
}

/// Where the first node of this operator comes from.
fn origin<'a>(model: &'a Model, op: &str) -> &'a Origin {
    let node = model.all_nodes().into_iter().find(|n| model[*n].op() == op).unwrap();
    &model[model[node].origins[0]]
}

#[test]
fn inspect() {
    let mut all = String::new();
    for args in [
        &["net.pt"][..],
        &["net_script.pt"],
        &["counter.pt", "--input", "x=float32[n,3]"],
        &["counter.pt", "--method", "scaled", "--input", "0=float32[n,3]", "--input", "by=2"],
        &["odd.pt"],
    ] {
        let path = archive(args[0]);
        let run = pt2onnx([&["inspect", &*path], &args[1..]].concat());
        assert_eq!((run.code, &*run.stderr), (0, ""));
        all += &format!("==== {}\n{}\n", args.join(" "), run.stdout);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn inspect_and_check_as_json() {
    let json = |args: &[&str]| -> Value { serde_json::from_str(&pt2onnx(args).stdout).unwrap() };
    let shown = json(&["inspect", "--json", &archive("net_script.pt")]);
    assert_eq!(shown["torchscript"]["methods"][0], "forward(x: Tensor) -> Tensor");
    assert_eq!((&shown["exit_code"], &shown["weights"]["tensors"]), (&2.into(), &16.into()));
    assert_eq!(shown["error"]["kind"], "options");
    let checked = json(&["check", "--json", &archive("net.pt"), &archive("odd.pt")]);
    assert_eq!((&checked[0]["converts"], &checked[1]["exit_code"]), (&true.into(), &4.into()));
    let failure = &checked[1]["failures"][0];
    assert_eq!(failure["kind"], "unsupported_operator");
    assert_eq!(failure["op"], "aten.to_sparse.default");
    assert_eq!((&failure["line"], &failure["module"]), (&58.into(), &"".into()));
}

#[test]
fn errors_name_the_users_line() {
    for (name, input, line) in [
        ("odd.pt", "0=float32[3,3]", "  make.py:58 (in forward)"),
        (
            "odd_script.pt",
            "x=float32[n,3]",
            "  make.py:58: return y.to_sparse().to_dense() + x (in forward)",
        ),
    ] {
        let folder = tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (output, report) = (path("m.onnx"), path("r.md"));
        let run = pt2onnx([&*archive(name), "-o", &output, "--input", input, "--report", &report]);
        assert_eq!(run.code, 4);
        assert!(run.stderr.lines().any(|l| l == line), "{run:?}");
        let report = fs::read_to_string(report).unwrap();
        assert!(report.contains("make.py:58"), "{report}");
    }
}

#[test]
fn metadata_is_that_of_the_module() {
    let trace =
        ["File \"/tmp/model/make.py\", line 30, in forward", "make.py\", line 17, in forward"];
    for (name, args, doc) in [
        ("net.pt", &[][..], "make.py:17"),
        (
            "net_script.pt",
            &["--input", "x=float32[n,3,H,W]"],
            "make.py:17: return torch.relu(self.bn(self.conv(x))) + x",
        ),
    ] {
        let (model, _) = convert(name, &[args, &["--node-docs"]].concat());
        let relu = origin(&model, "Relu");
        let of = |key: &str| {
            let key = format!("pkg.torch.onnx.{key}");
            relu.metadata.iter().find(|(k, _)| *k == key).unwrap().1.to_string()
        };
        assert_eq!(of("name_scopes"), "['', 'layers.0', 'relu']");
        assert_eq!(of("class_hierarchy"), "['Net', 'Block', 'aten.relu.default']");
        assert!(trace.iter().all(|part| of("stack_trace").contains(part)), "{}", of("stack_trace"));
        assert_eq!(relu.doc_string.as_deref(), Some(doc));
    }
}

#[test]
fn names_go_on_over_parameters() {
    let names_given = "image,w,b,scale";
    let args = ["--input", "x=float32[n,3,H,W]", "--input-names", names_given, "--optimize", "0"];
    let (model, _) = convert("net_script.pt", &args);
    assert_eq!(names(&model), ["image"]);
    let has = |name: &str| model.values().any(|(_, v)| v.name.as_deref() == Some(name));
    assert!(["w", "b", "scale", "layers.0.bn.bias"].into_iter().all(has));
    assert!(!has("layers.0.conv.weight"));
    let surplus = vec!["a"; 18].join(",");
    let run = pt2onnx([&*archive("net.pt"), "-o", "m.onnx", "--input-names", &surplus]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("of the program: x; it has 14 parameters and buffers besides"),
        "{run:?}"
    );
}

#[test]
fn dynamic_axes_make_a_trace_dynamic() {
    for args in [
        &["--dynamic-axes", r#"{"x": {"0": "batch", "-1": "W"}}"#][..],
        &["--input-names", "image", "--dynamic-axes", r#"{"image": {"0": "batch", "-1": "W"}}"#],
        &["--input", "0=float32[batch,3,8,W]"],
    ] {
        let (model, _) = convert("net.pt", args);
        let ty = |v: ::pt2onnx::ir::Value| model[v].ty.as_ref().unwrap().to_string();
        assert_eq!(ty(model.inputs()[0]), "float[batch,3,8,W]", "{args:?}");
        assert_eq!(ty(model.output_values().next().unwrap()), "float[batch,2]");
    }
}

#[test]
fn weights_go_where_they_are_wanted() {
    let folder = folder();
    let run = |args: &str| {
        let run = within(folder.path(), args.split_whitespace());
        assert_eq!((run.code, &*run.stderr), (0, ""), "{args}");
        run.stdout
    };
    run("trace.pt -o all.onnx --optimize 0");
    run("trace.pt -o out.onnx --optimize 0 --weights external --external-threshold 1");
    run("trace.pt -o link.onnx --optimize 0 --weights link --external-threshold 1");
    run("trace.pt -o none.onnx --optimize 0 --weights none");
    // The same weights in another archive, by the same names.
    run("apply-weights none.onnx --weights scripted.pt -o full.onnx");
    for other in ["out.onnx", "link.onnx", "full.onnx"] {
        assert_eq!(run(&format!("diff all.onnx {other}")), "");
    }
    let size = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
    assert!(size("out.onnx.data") > 0 && size("link.onnx") < size("all.onnx"));
    let (model, _) = convert("net.pt", &["--weights", "none", "--keep-initializers-as-inputs"]);
    let weights = read_weights(archive("net.pt")).unwrap();
    let order = weights.keys().filter(|name| !name.ends_with("num_batches_tracked"));
    assert_eq!(names(&model)[1..], order.cloned().collect::<Vec<_>>());
}

#[test]
fn tied_weights_have_all_their_names() {
    let weights = read_weights(archive("counter.pt")).unwrap();
    assert_eq!(
        weights.keys().map(String::as_str).collect::<Vec<_>>(),
        ["count", "first.weight", "second.weight"]
    );
}

#[test]
fn state_comes_back_once() {
    let args = ["--input", "x=float32[n,3]", "--mutations", "pairs"];
    let (model, _) = convert("counter.pt", &args);
    assert_eq!(names(&model), ["x", "count"]);
    let outputs = model.output_values().map(|v| model[v].name.as_deref().unwrap().to_owned());
    assert_eq!(outputs.collect::<Vec<_>>(), ["add", "count.next"]);
    let model = archive("counter.pt");
    let run = pt2onnx(["check", "--mutations", "error", "--input", "x=float32[n,3]", &model]);
    assert_eq!(run.code, 4);
    assert!(run.stdout.contains("make.py:45: self.count += 1"), "{run:?}");
}

#[test]
fn options_of_the_other_kind_are_errors() {
    let model = mlp();
    let model = model.to_str().unwrap();
    for args in [
        &[model, "-o", "m.onnx", "--input", "x=none"][..],
        &[model, "-o", "m.onnx", "--method", "encode"],
        &["inspect", model, "--method", "encode"],
    ] {
        let run = pt2onnx(args);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("is for TorchScript archives"), "{run:?}");
    }
    let run = pt2onnx(["check", model, "--input", "x=none"]);
    assert!(run.code == 2 && run.stdout.contains("`--rename-dim`"), "{run:?}");
}

#[test]
fn atens_ops_as_nodes_of_the_older_exporter() {
    let (model, _) = convert("net.pt", &["--unsupported-ops", "aten", "--aten-nodes"]);
    let text = model.to_string();
    for part in [
        "relu = org.pytorch.aten.ATen <operator: string = \"relu\", overload_name: string = \"\"> (batch_norm)",
        "<operator: string = \"add\", overload_name: string = \"Tensor\"> (relu, x, val_3)",
        "int64 val_3 = {1}",
        "double val_6 = {1e-5}",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

/// The commands of docs/torchscript.md.
#[test]
fn the_commands_of_the_page_run() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/torchscript.md");
    let page = fs::read_to_string(page).unwrap();
    let mut count = 0;
    let folder = folder();
    for block in page.split("```sh\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            let line = line.split(" #").next().unwrap().replace('\'', "").replace(": ", ":");
            let line = line.replace(", \"", ",\"").replace(", [", ",[");
            let args = line.strip_prefix("pt2onnx ").unwrap().split_whitespace();
            let run = within(folder.path(), args);
            assert_eq!(run.code, 0, "{line}: {run:?}");
            count += 1;
        }
    }
    assert!(count > 10);
}
