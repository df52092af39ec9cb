//! `--report` and `pt2onnx check`.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod common;

use common::{Run, convert, edited, files, mlp, pt2onnx, with_json};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::{TempDir, tempdir};

/// Converts, with both reports.
fn reported(model: &Path, folder: &TempDir, args: &[&str]) -> (Run, Value, String) {
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (output, json, markdown) = (path("m.onnx"), path("r.json"), path("r.md"));
    let all = [model.to_str().unwrap(), "-o", &output, "--report", &json];
    let run = pt2onnx([&all[..], &["--report", &markdown], args].concat());
    let value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    (run, value, fs::read_to_string(markdown).unwrap())
}

fn archive(folder: &TempDir, name: &str, bytes: Vec<u8>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// An archive of the tests of `pt2onnx-fx`.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../pt2onnx-fx/tests/data/{name}.pt2"))
}

fn unknown_op() -> Vec<u8> {
    with_json(&mlp(), "torch.ops.aten.sigmoid.default", "torch.ops.mylib.foo.default")
}

#[test]
fn of_a_success() {
    let folder = tempdir().unwrap();
    let (run, json, markdown) =
        reported(&mlp(), &folder, &["--opset", "19", "--rename-dim", "s18=batch"]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    let expected = [
        "format",
        "success",
        "error",
        "failures",
        "warnings",
        "environment",
        "options",
        "archive",
        "torchscript",
        "program",
        "ops",
        "model",
        "stages",
        "program_text",
        "model_text",
    ];
    assert_eq!(keys, expected);
    let at = |pointer: &str| json.pointer(pointer).unwrap().to_string();
    for (pointer, value) in [
        ("/format", "2"),
        ("/success", "true"),
        ("/error", "null"),
        ("/failures", "[]"),
        ("/options/opset", "19"),
        ("/options/rename-dim", r#"{"s18":"batch"}"#),
        ("/archive/bytes", "35597"),
        ("/program/torch", r#""2.15.0+cu132""#),
        ("/program/schema", r#""8.20""#),
        ("/program/inputs/0", r#"{"name":"tensor_x","type":"float32[s18, 8]"}"#),
        ("/program/dimensions", r#"[{"symbol":"s18","min":0,"max":null}]"#),
        ("/program/parameters/count", "10"),
        ("/program/parameters/dtypes", r#"{"float32":{"count":10,"elements":324,"bytes":1296}}"#),
        ("/program/buffers", r#"{"count":0,"elements":0,"bytes":0}"#),
        (
            "/ops/1",
            r#"{"op":"aten::linear","count":5,"supported":true,"failed":0,"becomes":["Gemm"]}"#,
        ),
        ("/model/opset", "19"),
        ("/model/operators", r#"{"Concat":1,"Gemm":5,"Sigmoid":4}"#),
        ("/model/weights/bytes", "1296"),
        ("/model/outputs/0", r#"{"name":"linear_4","type":"float[batch,2]"}"#),
    ] {
        assert_eq!(at(pointer), value, "{pointer}");
    }
    let written = fs::metadata(folder.path().join("m.onnx")).unwrap().len();
    assert_eq!(at("/model/files/0/bytes"), written.to_string());
    let stages = json["stages"].as_array().unwrap();
    assert_eq!(stages.first().unwrap()["name"], "read");
    assert_eq!(stages.last().unwrap()["name"], "write");
    for line in [
        "**Done.**",
        "- `tensor_x`: `float32[s18, 8]`",
        "| `aten::linear` | 5 | yes | Gemm |",
        "| `Gemm` | 5 |",
        "| opset | `19` |",
        "| parameters | float32 | 10 | 324 | 1296 |",
        "| buffers |  | 0 | 0 | 0 |",
        "    Range constraints: {s18: VR[0, int_oo]}",
        "      linear = Gemm <transB: int = 1> (cat, fc_combined.weight, fc_combined.bias)",
    ] {
        assert!(markdown.lines().any(|l| l == line), "no {line}: {markdown}");
    }
}

#[test]
fn of_a_failure() {
    let folder = tempdir().unwrap();
    let model = archive(&folder, "u.pt2", unknown_op());
    let (run, json, markdown) = reported(&model, &folder, &[]);
    assert_eq!(run.code, 4);
    let output = folder.path().join("m.onnx");
    assert!(!output.exists());
    // Nothing else is different.
    assert_eq!(convert(&model, &output), run);
    assert_eq!(json["success"], false);
    assert_eq!(json["error"]["kind"], "unsupported_operator");
    assert_eq!(json["failures"].as_array().unwrap().len(), 4);
    let first = &json["failures"][0];
    for (key, value) in [
        ("node", "sigmoid"),
        ("op", "mylib::foo"),
        ("file", "/opt/src/seedcase.py"),
        ("reason", "no translation is registered for mylib.foo.default"),
    ] {
        assert_eq!(first[key], value);
    }
    assert!(first["line"].as_u64().unwrap() > 0 && first["suggestion"].is_string());
    assert!(markdown.contains("## What prevents conversion: 4"), "{markdown}");
    // Four nodes, one reason: one example.
    assert_eq!(markdown.matches("What to do").count(), 1, "{markdown}");
    assert!(markdown.contains("\n   - and 3 more nodes for this reason\n"), "{markdown}");
    let row = "| `mylib::foo` | 4 | **no** |  |";
    assert!(markdown.contains(row), "{markdown}");
    // The program is there with its source lines, and no model.
    let program = json["program_text"].as_str().unwrap();
    assert!(program.contains("# File: /opt/src/seedcase.py:"), "{program}");
    assert!(markdown.contains("\n## Text of the program\n") && json["model_text"].is_null());
    // The ops that were translated are listed all the same.
    assert!(markdown.contains("| `aten::linear` | 5 | yes | Gemm |"), "{markdown}");
}

#[test]
fn failures_of_passes_and_of_lowerings_are_told_together() {
    let folder = tempdir().unwrap();
    let from = "torch.ops.aten.mul.Tensor";
    let both = with_json(&data("writes_repeated"), from, "torch.ops.mylib.foo.default");
    let model = archive(&folder, "b.pt2", both);
    let (run, json, _) = reported(&model, &folder, &[]);
    assert_eq!(run.code, 4);
    let failures = json["failures"].as_array().unwrap();
    let kinds: Vec<&str> = failures.iter().map(|f| f["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["conversion", "unsupported_operator"], "{json:#}");
    assert!(run.stderr.contains("expand") && run.stderr.contains("mylib.foo"));
}

#[test]
fn reports_that_cannot_be() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let model = path("m.md");
    fs::copy(mlp(), &model).unwrap();
    let before = files(folder.path());
    for (report, code) in
        [(path("none/r.md"), 5), (path("r.txt"), 2), (model.clone(), 2), (path("m.json"), 2)]
    {
        let run = pt2onnx([&model, "-o", &path("m.json"), "--report", &report]);
        assert!(run.code == code && !run.stderr.is_empty(), "{run:?}");
        assert!(files(folder.path()) == before, "{report}");
    }
}

#[test]
fn check_tells_of_each_archive_and_fails_if_one_cannot_be_converted() {
    let folder = tempdir().unwrap();
    let bad = archive(&folder, "bad.pt2", unknown_op());
    let none = folder.path().join("none.pt2");
    let (good, fake) = (mlp(), data("fake_weights"));
    let run = |args: &[&Path]| pt2onnx([&[Path::new("check")], args].concat());

    let one = run(&[&good]);
    let expected = format!("{}: can be converted\n", good.display());
    assert_eq!((one.code, &*one.stderr, one.stdout), (0, "", expected));

    let all = run(&[&good, &bad, &none, &fake, &good]);
    assert_eq!((all.code, all.stderr.lines().count()), (4, 1), "{all:?}");
    let warning =
        format!("warning: {}: the archive has no values for 2 of 2 weights", fake.display());
    assert!(all.stderr.starts_with(&warning), "{all:?}");
    let heads: Vec<&str> = { all.stdout.lines() }.filter(|l| !l.starts_with(' ')).collect();
    let ends = [
        "can be converted",
        "4 nodes of the program cannot be translated",
        "(os error 2)",
        "can be converted",
        "can be converted",
        "3 of 5 archives can be converted",
    ];
    assert_eq!(heads.len(), ends.len(), "{}", all.stdout);
    for (head, end) in heads.iter().zip(ends) {
        assert!(head.ends_with(end), "{head}");
    }
    for jobs in ["1", "5"] {
        let jobs = [Path::new("--jobs"), Path::new(jobs)];
        assert_eq!(run(&[&jobs[..], &[&good, &bad, &none, &fake, &good]].concat()), all);
    }
    // The first that fails decides.
    assert_eq!(run(&[&good, &none, &bad]).code, 3);

    let json = run(&[Path::new("--json"), &good, &bad]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json[0]["converts"], &json[0]["exit_code"]), (&true.into(), &0.into()));
    assert_eq!((&json[1]["converts"], &json[1]["exit_code"]), (&false.into(), &4.into()));
    assert_eq!(json[1]["failures"].as_array().unwrap().len(), 4);

    // Options count.
    let run = run(&[&good, Path::new("--fix-dim"), Path::new("s18=-1")]);
    assert!(run.code == 2 && run.stdout.contains("cannot be -1"), "{run:?}");
}

/// The data of a page.
fn page(path: &Path) -> Value {
    let page = fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn pages() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (output, html) = (path("m.onnx"), path("r.html"));
    let run =
        |model: &Path| pt2onnx([model.to_str().unwrap(), "-o", &output, "--report", &html]).code;
    assert_eq!(run(&mlp()), 0);
    let data = page(Path::new(&html));
    let names = |all: &Value, key: &str| -> Vec<String> {
        let all = all.as_array().unwrap().iter();
        all.map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    let drawing = &data["drawing"];
    assert_eq!(drawing["inputs"].as_array().unwrap().len(), 3);
    assert_eq!(names(&drawing["nodes"], "op").iter().filter(|op| *op == "Gemm").count(), 5);
    let gemm = &drawing["nodes"].as_array().unwrap().iter().find(|n| n["op"] == "Gemm").unwrap();
    assert!(gemm["source"].as_str().unwrap().starts_with("seedcase.py:"), "{gemm}");
    assert!(gemm["from"].as_str().unwrap().starts_with("aten.linear.default "), "{gemm}");
    let text = |data: &Value, key: &str| data["report"][key].as_str().unwrap().to_owned();
    assert!(text(&data, "program_text").starts_with("ExportedProgram:"));
    assert!(text(&data, "model_text").contains("Gemm"));
    // A failure draws the program.
    assert_eq!(run(&archive(&folder, "u.pt2", unknown_op())), 4);
    let data = page(Path::new(&html));
    let failing = names(&data["report"]["failures"], "node");
    let drawn = names(&data["drawing"]["nodes"], "name");
    assert!(failing.len() == 4 && failing.iter().all(|f| drawn.contains(f)), "{drawn:?}");
    assert!(text(&data, "program_text").contains("mylib.foo.default"));
    assert_eq!(data["report"]["model_text"], Value::Null);
    // A file that is not an archive has no program.
    assert_eq!(run(&archive(&folder, "n.pt2", b"nothing".to_vec())), 3);
    assert_eq!(page(Path::new(&html))["drawing"], Value::Null);
}

#[test]
fn a_page_of_differences() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (a, b, html) = (path("a.onnx"), path("b.onnx"), path("d.html"));
    let other = with_json(&mlp(), "torch.ops.aten.sigmoid.default", "torch.ops.aten.tanh.default");
    for (model, output) in [(mlp(), &a), (archive(&folder, "t.pt2", other), &b)] {
        assert_eq!(convert(&model, Path::new(output)).code, 0);
    }
    let text = pt2onnx(["diff", &a, &b]);
    assert_eq!(pt2onnx(["diff", &a, &b, "--html", &html]), text);
    let data = page(Path::new(&html));
    let marks = |side: usize, op: &str| {
        let nodes = data["drawings"][side]["nodes"].as_array().unwrap().iter();
        nodes.filter(|n| n["op"] == op).map(|n| n["mark"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(marks(0, "Sigmoid").len(), 4);
    for (side, op) in [(0, "Sigmoid"), (1, "Tanh")] {
        assert!(marks(side, op).iter().all(|mark| mark == "changed"), "{op}");
    }
    for side in [0, 1] {
        assert_eq!(marks(side, "Gemm"), vec![Value::Null; 5]);
    }
    // Not over a model.
    assert_eq!(pt2onnx(["diff", &a, &b, "--html", &a]).code, 2);
    assert_eq!(pt2onnx(["diff", &a, &a, "--html", &html]).code, 0);
}

#[test]
fn many_failures_of_one_op_are_one_line() {
    let folder = tempdir().unwrap();
    let of = |name: &str, op: &str| {
        let op = format!("torch.ops.aten.{op}.default");
        let model = archive(&folder, name, with_json(&mlp(), &op, "torch.ops.mylib.foo.default"));
        let run = convert(&model, &folder.path().join("m.onnx"));
        assert_eq!(run.code, 4);
        run.stderr
    };
    let (five, four) = (of("five.pt2", "linear"), of("four.pt2", "sigmoid"));
    assert!(five.starts_with("error: 5 nodes of the program cannot be translated\n"), "{five}");
    assert_eq!(five.matches("mylib.foo.default (node `").count(), 1, "{five}");
    assert!(five.contains("foo.default, and 4 more nodes for this reason\n"), "{five}");
    // Few are shown one by one.
    assert_eq!(four.matches("mylib.foo.default (node `").count(), 4, "{four}");
}

#[test]
fn reports_of_a_check() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let bad = archive(&folder, "bad.pt2", unknown_op());
    let (good, bad) = (mlp().to_str().unwrap().to_owned(), bad.to_str().unwrap().to_owned());
    let check = |model: &str| {
        let reports = ["r.md", "r.json", "r.html"].map(path);
        let reports = reports.iter().flat_map(|report| ["--report", report]);
        pt2onnx(["check", model].into_iter().chain(reports))
    };
    for (model, code) in [(&good, 0), (&bad, 4)] {
        let run = check(model);
        assert_eq!((run.code, &*run.stderr), (code, ""));
        assert_eq!(run, pt2onnx(["check", model]));
        let json: Value = serde_json::from_slice(&fs::read(path("r.json")).unwrap()).unwrap();
        assert_eq!(json["success"], Value::Bool(code == 0));
        assert_eq!(json["model_text"].is_string(), code == 0);
        let markdown = fs::read_to_string(path("r.md")).unwrap();
        assert!(markdown.contains("## Text of the program"), "{markdown}");
        assert_eq!(markdown.contains("## Text of the model"), code == 0);
        assert_eq!(page(Path::new(&path("r.html")))["report"]["success"], json["success"]);
    }
    // No model is written, and the archive is not overwritten.
    assert_eq!(files(folder.path()).len(), 4);
    let json = archive(&folder, "m.json", fs::read(mlp()).unwrap());
    let json = json.to_str().unwrap();
    assert_eq!(pt2onnx(["check", json, "--report", json]).code, 2);
    let text = r#"<domain: "mylib", opset_import: ["" : 18]> foo (x) => (y) { y = Sigmoid (x) }"#;
    fs::write(path("f.md"), text).unwrap();
    let both = pt2onnx(["check", &bad, "--op-functions", &path("f.md"), "--report", &path("f.md")]);
    assert!(both.code == 2 && both.stderr.contains("would overwrite"), "{both:?}");
}

/// Outputs that are no tensors are left out, with a warning for each.
fn without_outputs(count: usize) -> Vec<u8> {
    let none = r#"{"as_none": true}"#;
    let last = r#"{"as_tensor": {"name": "linear_4"}}"#;
    let more = |one: String| format!(", {one}").repeat(count);
    let graph = format!("[{last}{}], \"nodes\"", more(none.to_owned()));
    let spec = |arg: &str| format!("{{\"user_output\": {{\"arg\": {arg}}}}}");
    edited(&mlp(), |name, bytes| match name {
        "models/model.json" => String::from_utf8(bytes)
            .unwrap()
            .replace(&format!("[{last}], \"nodes\""), &graph)
            .replace(&spec(last), &(spec(last) + &more(spec(none))))
            .into_bytes(),
        _ => bytes,
    })
}

#[test]
fn many_warnings_of_one_kind_are_one_line() {
    let folder = tempdir().unwrap();
    let (few, many) = (
        archive(&folder, "few.pt2", without_outputs(4)),
        archive(&folder, "many.pt2", without_outputs(60)),
    );
    let lines = |run: Run| run.stderr.lines().map(str::to_owned).collect::<Vec<_>>();
    let output = folder.path().join("m.onnx");
    assert_eq!(lines(convert(&few, &output)).len(), 4);
    let one =
        "output 1 is None in the program and left out of the model, and 59 more warnings like this";
    assert_eq!(lines(convert(&many, &output)), [format!("warning: {one}")]);
    // The same in a check, in reports, and as errors; JSON has all of them.
    let path = many.to_str().unwrap();
    let check = pt2onnx(["check", path]);
    assert_eq!((check.code, check.stderr), (0, format!("warning: {path}: {one}\n")));
    assert_eq!(pt2onnx(["check", "-q", path]).stderr, "");
    let (_, json, markdown) = reported(&many, &folder, &[]);
    assert!(markdown.contains(&format!("\n- {one}\n")), "{markdown}");
    assert_eq!(json["warnings"].as_array().unwrap().len(), 60);
    let strict = pt2onnx([path, "-o", output.to_str().unwrap(), "--warnings-as-errors"]);
    assert_eq!((strict.code, strict.stderr.matches("output ").count()), (4, 1), "{strict:?}");
    // Those of several archives together.
    let models = folder.path().join("models/");
    let both = pt2onnx([few.to_str().unwrap(), path, "-o", models.to_str().unwrap()]);
    let one = one.replace("59", "63");
    assert_eq!(lines(both), [format!("warning: {}: {one}", few.display())]);
}

/// A module that only torch's own code calls has no line of the user's: its path and class identify
/// it.
#[test]
fn torchs_lines_are_not_the_users() {
    let folder = tempdir().unwrap();
    let bytes = edited(&mlp(), |name, bytes| match name {
        "models/model.json" => String::from_utf8(bytes)
            .unwrap()
            .replace("/opt/src/seedcase.py", "/v/site-packages/torch/nn/modules/container.py")
            .replace("torch.ops.aten.linear.default", "torch.ops.mylib.foo.default")
            .into_bytes(),
        _ => bytes,
    });
    let (run, json, _) = reported(&archive(&folder, "t.pt2", bytes), &folder, &[]);
    let place = "(node `linear` in module fc_combined of class torch.nn.modules.linear.Linear)";
    assert!(run.code == 4 && run.stderr.contains(place), "{run:?}");
    let first = &json["failures"][0];
    assert_eq!((&first["file"], &first["module"]), (&Value::Null, &"fc_combined".into()));
}
