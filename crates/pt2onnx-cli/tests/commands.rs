//! The command's behaviour when all is well.

mod common;

use common::{command, convert, files, mlp, pt2onnx, with_json};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::tempdir;

#[test]
fn quiet_and_the_same_bytes_twice() {
    let folder = tempdir().unwrap();
    for name in ["a.onnx", "b.onnx"] {
        let run = convert(&mlp(), &folder.path().join(name));
        assert_eq!((run.code, &*run.stdout, &*run.stderr), (0, "", ""));
    }
    let written = files(folder.path());
    assert_eq!(written.keys().collect::<Vec<_>>(), ["a.onnx", "b.onnx"]);
    assert!(written["a.onnx"] == written["b.onnx"] && written["a.onnx"].len() > 1000);
}

#[test]
fn verbose_names_the_stages() {
    let folder = tempdir().unwrap();
    let output = folder.path().join("m.onnx");
    let run = pt2onnx([mlp().as_path(), Path::new("-o"), &output, Path::new("-v")]);
    assert_eq!((run.code, &*run.stdout), (0, ""));
    let stages = [
        "read",
        "inline",
        "records",
        "vmap",
        "wrapped",
        "foreach",
        "assertions",
        "functionalise",
        "attention",
        "dead",
        "passes",
        "drop state",
        "detach weights",
        "lower",
        "interface",
        "dimensions",
        "optimise",
        "seed",
        "domains",
        "legalise",
        "target",
        "functions",
        "names",
        "attach weights",
        "verify",
        "write",
    ];
    let lines: Vec<&str> =
        run.stderr.lines().filter_map(|l| l.split_once(" ms  ")).map(|(_, stage)| stage).collect();
    assert_eq!(lines[..stages.len()], stages);
    assert!(
        run.stderr.contains(&format!("m.onnx: {} bytes", fs::metadata(&output).unwrap().len())),
        "{run:?}"
    );
}

#[test]
fn options_change_the_model() {
    let folder = tempdir().unwrap();
    let write = |args: &[&str]| {
        let output = folder.path().join("m.onnx");
        let (model, output) = (mlp(), output);
        let paths = [model.to_str().unwrap(), "-o", output.to_str().unwrap()];
        let run = pt2onnx([&paths, args].concat());
        assert_eq!(run.code, 0, "{run:?}");
        fs::read(output).unwrap()
    };
    let plain = write(&[]);
    assert_eq!(plain, write(&["--opset", "20", "--weights", "auto"]));
    assert_eq!(plain, write(&["--weights", "embed"]));
    assert_ne!(plain, write(&["--opset", "18"]));
    assert_eq!(plain, write(&["--optimize", "2", "--fold-limit", "8192"]));
    let unoptimised = write(&["--no-optimize"]);
    assert_eq!(unoptimised, write(&["--optimize", "0"]));
    assert_eq!(unoptimised, write(&["--optimize", "0", "--skip-pass", "gelu"]));
    assert_eq!(plain, write(&["--provenance", "full"]));
    let has = |model: &[u8], text: &str| model.windows(text.len()).any(|w| w == text.as_bytes());
    let folder_of_source = "/opt/src/seedcase.py";
    let fx_node = "pkg.torch.onnx.fx_node";
    assert!(has(&plain, folder_of_source) && has(&plain, fx_node));
    let stripped = write(&["--strip-paths"]);
    assert!(!has(&stripped, "/opt/") && has(&stripped, "File \"seedcase.py\", line 9"));
    let basic = write(&["--provenance", "basic"]);
    assert!(!has(&basic, "seedcase.py") && !has(&basic, fx_node));
    assert!(has(&basic, ": __main__.MLPModel/cat: aten.cat.default"));
    let none = write(&["--provenance", "none"]);
    assert!(!has(&none, "aten.cat") && none.len() < basic.len() && basic.len() < plain.len());
    let said = [
        "--metadata-prop",
        "author=me=you",
        "--model-doc",
        "some words",
        "--model-version",
        "7",
        "--producer",
        "a maker",
        "--node-docs",
    ];
    let model = write(&said);
    for text in ["author", "me=you", "some words", "a maker", "seedcase.py:8: "] {
        assert!(has(&model, text), "{text}");
    }
    assert!(!has(&model, "pt2onnx"));
    // No weight of this model is worth a separate file.
    assert_eq!(plain, write(&["--weights", "external"]));
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn passes() {
    let run = pt2onnx(["passes"]);
    let names = run.stdout.lines().filter(|l| !l.starts_with(' '));
    let names: Vec<&str> = names.collect();
    assert_eq!(names.first(), Some(&"cleanup (level 1)"), "{run:?}");
    assert!(names.contains(&"gelu (level 2)"), "{run:?}");
}

/// An archive of the tests of `pt2onnx-fx`.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../pt2onnx-fx/tests/data/{name}.pt2"))
}

#[test]
fn inspect() {
    let folder = tempdir().unwrap();
    let unknown = folder.path().join("unknown_op.pt2");
    let (from, to) = ("aten.sigmoid.default", "mylib.foo.default");
    fs::write(&unknown, with_json(&mlp(), from, to)).unwrap();
    let mut all = String::new();
    for model in
        [mlp(), unknown, data("writes_buffer"), data("writes_repeated"), data("fake_weights")]
    {
        let run = pt2onnx([Path::new("inspect"), &model]);
        assert_eq!((run.code, &*run.stderr), (0, ""));
        let name = model.file_name().unwrap().to_str().unwrap();
        all += &format!("==== {name}\n{}\n", run.stdout);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn checks_that_the_model_does_not_make() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let model = data("checks");
    let model = model.to_str().unwrap();
    let inspected = pt2onnx(["inspect", model]).stdout;
    let (output, markdown) = (path("m.onnx"), path("r.md"));
    // No warning, as nearly every size that data decide is checked; `-v` reports the checks.
    let run = pt2onnx([model, "-o", &output, "--report", &markdown, "--warnings-as-errors"]);
    assert_eq!((run.code, &*run.stderr), (0, ""), "{run:?}");
    let run = pt2onnx([model, "-o", &output, "-v"]);
    let markdown = fs::read_to_string(markdown).unwrap();
    let checks = ["Eq(Mod(u0, 2), 0) at make.py:", "all must be positive at make.py:"];
    for check in checks {
        assert!(inspected.contains(&format!("\n  {check}")), "{inspected}");
        assert!(run.stderr.contains(&format!("the model does not check: {check}")), "{run:?}");
        assert!(markdown.contains(&format!("- `{check}")), "{markdown}");
    }
    // Ranges stand with the dimensions, and conditions that always hold are not checks.
    assert!(inspected.contains("\n  u0: 2 to 6\n"), "{inspected}");
    assert!(!inspected.contains("u0 >= 2"), "{inspected}");
    let json = pt2onnx(["inspect", "--json", model]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let all = json["program"]["checks"].as_array().unwrap();
    let starts =
        |(said, start): (&serde_json::Value, &str)| said.as_str().unwrap().starts_with(start);
    assert!(all.len() == 2 && all.iter().zip(checks).all(starts), "{all:?}");
}

#[test]
fn inspect_as_json() {
    let run = pt2onnx(["inspect", "--json", mlp().to_str().unwrap()]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let folder = mlp().parent().unwrap().to_str().unwrap().to_owned();
    insta::assert_snapshot!(run.stdout.replace(&folder, "FOLDER"));
}

#[test]
fn warnings_may_be_errors() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (output, report) = (path("m.onnx"), path("r.json"));
    let of = |model: &Path, more: &[&str]| {
        let model = model.to_str().unwrap();
        pt2onnx([&[model, "-o", &output, "--warnings-as-errors"], more].concat())
    };
    let run = of(&data("writes_buffer"), &["--report", &report]);
    assert_eq!(run.code, 4, "{run:?}");
    assert_eq!(files(folder.path()).len(), 1);
    let report = fs::read_to_string(path("r.json")).unwrap();
    assert!(report.contains(r#""kind": "warnings""#), "{report}");
    // Nothing is dropped here, so that there is nothing to warn of.
    assert_eq!(of(&data("writes_buffer"), &["--mutations", "outputs"]).code, 0);
    assert_eq!(of(&mlp(), &[]).code, 0);
    let model = data("writes_buffer");
    let check = ["check", "--warnings-as-errors", model.to_str().unwrap()];
    assert_eq!(pt2onnx(check).code, 4);
    assert_eq!(pt2onnx([check[0], check[2]]).code, 0);
}

#[test]
fn ops() {
    let run = pt2onnx(["ops"]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines.contains(&"aten::relu(Tensor self) -> Tensor"));
    assert!(lines.iter().all(|l| l.contains("::") && l.contains(" -> ")) && lines.len() > 100);
}

#[test]
fn help_and_version() {
    let help = pt2onnx(["--help"]);
    assert!(help.code == 0 && help.stderr.is_empty());
    for code in ["0  success", "1  ", "2  ", "3  ", "4  ", "5  ", "6  "] {
        assert!(help.stdout.contains(&format!("\n  {code}")), "{code}");
    }
    let headings = help.stdout.lines().filter(|l| l.ends_with(':') && !l.starts_with(' '));
    let headings: Vec<&str> = headings.collect();
    let expected = [
        "Commands:",
        "Arguments:",
        "Options:",
        "Input and output:",
        "Opset and target:",
        "Optimisation:",
        "Compression:",
        "Custom ops and functions:",
        "Names and dims:",
        "Weights:",
        "Metadata:",
        "Diagnostics:",
        "Examples:",
        "Exit codes:",
    ];
    assert_eq!(headings, expected);
    let check = pt2onnx(["check", "--help"]);
    assert!(check.stdout.contains("exit code is 0 if all") && check.stdout.contains("--opset"));
    let version = pt2onnx(["--version"]);
    assert_eq!(
        (version.code, version.stdout),
        (0, format!("pt2onnx {}\n", env!("CARGO_PKG_VERSION")))
    );
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command().arg("ops").stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command().arg("ops").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(output.stderr.starts_with(b"error: cannot write to standard output"));
}

#[test]
fn explain_tells_what_is_true_at_each_opset() {
    let explained = |op: &str| {
        let run = pt2onnx(["explain", op]);
        assert_eq!((run.code, &*run.stderr), (0, ""));
        run.stdout
    };
    let triu = explained("triu");
    let lines: Vec<&str> = triu.lines().map(str::trim).collect();
    assert_eq!(lines[0], "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor");
    let newest = lines.iter().find(|line| line.starts_with("opset 14 and newer:")).unwrap();
    assert!(newest.contains("Trilu"), "{triu}");
    let older: Vec<&&str> =
        lines.iter().filter(|line| line.starts_with("opset") && !line.contains("newer")).collect();
    assert!(!older.is_empty() && older.iter().all(|line| !line.contains("Trilu")), "{triu}");
    assert!(older.iter().any(|line| line.starts_with("opset 9")), "{triu}");
    let det = explained("aten::det");
    assert!(
        det.contains("  opset 11 and newer: Det\n  opset 10 and older: not possible\n"),
        "{det}"
    );
    // Every opset is listed once.
    let json = pt2onnx(["ops", "--json"]).stdout;
    let ops: serde_json::Value = serde_json::from_str(&json).unwrap();
    for op in ops.as_array().unwrap() {
        let forms = op["opsets"].as_array().unwrap();
        let mut above = 27;
        for form in forms {
            assert_eq!(form["last"], above - 1, "{op}");
            above = form["first"].as_u64().unwrap();
            assert!(above <= form["last"].as_u64().unwrap(), "{op}");
        }
        assert_eq!(forms.is_empty(), op["operators"].as_array().unwrap().is_empty(), "{op}");
    }
}

#[test]
fn explain_names_the_ways_out() {
    for op in ["mylib::op", "mylib::sum", "aten::no_such_op"] {
        let run = pt2onnx(["explain", op]);
        assert_eq!((run.code, &*run.stdout), (4, ""), "{run:?}");
        for way in
            ["--op-functions", "@pt2onnx.translation", "Registry::register", "run_decompositions()"]
        {
            assert!(run.stderr.contains(way), "{way}: {run:?}");
        }
    }
}
