//! `--options FILE.toml`: the same options in a file and in flags.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail so")]

#[expect(dead_code, reason = "these tests make no archives")]
mod common;

use common::{mlp, pt2onnx};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};
use tempfile::tempdir;

/// Every option, as key and TOML, and as flags.
const ALL: &[(&str, &str, &[&str])] = &[
    ("input", "{ x = \"float32[n,3]\" }", &["--input", "x=float32[n,3]"]),
    ("method", "\"scaled\"", &["--method", "scaled"]),
    ("default-dtype", "\"float64\"", &["--default-dtype", "float64"]),
    ("program", "\"model\"", &["--program", "model"]),
    ("opset", "18", &["--opset", "18"]),
    ("ir-version", "9", &["--ir-version", "9"]),
    ("target", "\"tensorrt\"", &["--target", "tensorrt"]),
    ("mutations", "\"pairs\"", &["--mutations", "pairs"]),
    ("training", "\"eval\"", &["--training", "eval"]),
    ("unsupported-ops", "\"aten-fallback\"", &["--unsupported-ops", "aten-fallback"]),
    ("aten-nodes", "true", &["--aten-nodes"]),
    ("op-functions", "[\"newer.onnxtxt\"]", &["--op-functions", "newer.onnxtxt"]),
    ("rules", "[\"rules.onnxtxt\"]", &["--rules", "rules.onnxtxt"]),
    ("module-functions", "[\"fc*\", \"Linear\"]", &["--module-functions", "fc*,Linear"]),
    ("inline", "true", &["--inline"]),
    ("custom-opset", "{ mylib = 2 }", &["--custom-opset", "mylib=2"]),
    ("seed", "7", &["--seed", "7"]),
    ("assume-finite", "true", &["--assume-finite"]),
    ("warnings-as-errors", "true", &["--warnings-as-errors"]),
    ("input-names", "[\"a\", \"b\"]", &["--input-names", "a,b"]),
    ("output-names", "[\"y\"]", &["--output-names", "y"]),
    (
        "kv-names",
        "\"a{layer}{part},b{layer}{part}\"",
        &["--kv-names", "a{layer}{part}, b{layer}{part}"],
    ),
    ("rename", "{ cat = \"joined\", a = \"b\" }", &["--rename", "cat=joined", "--rename", "a=b"]),
    (
        "rename-dim",
        "{ s18 = \"n\", \"x.1\" = \"m\" }",
        &["--rename-dim", "s18=n", "--rename-dim", "x.1=m"],
    ),
    ("dynamic-axes", "{ x = [0] }", &["--dynamic-axes", r#"{"x": [0]}"#]),
    ("fix-dim", "{ n = 1 }", &["--fix-dim", "n=1"]),
    ("input-shape", "{ x = \"1,n\" }", &["--input-shape", "x=1,n"]),
    ("weights", "\"external\"", &["--weights", "external"]),
    ("weights-file", "\"w\"", &["--weights-file", "w"]),
    ("external-threshold", "\"2KiB\"", &["--external-threshold", "2048"]),
    ("shard-size", "1000", &["--shard-size", "1kB"]),
    ("alignment", "\"64KiB\"", &["--alignment", "65536"]),
    ("allow-external-paths", "true", &["--allow-external-paths"]),
    ("keep-initializers-as-inputs", "true", &["--keep-initializers-as-inputs"]),
    ("optimize", "1", &["--optimize", "1"]),
    ("skip-pass", "[\"gelu\", \"pad\"]", &["--skip-pass", "gelu", "--skip-pass", "pad"]),
    ("fold-limit", "9", &["--fold-limit", "9"]),
    ("dedup-weights", "true", &["--dedup-weights"]),
    ("cast-weights", "\"bfloat16\"", &["--cast-weights", "bfloat16"]),
    ("precision", "\"float16\"", &["--precision", "float16"]),
    ("cast-io", "true", &["--cast-io"]),
    ("quantize", "\"int8\"", &["--quantize", "int8"]),
    ("block-size", "32", &["--block-size", "32"]),
    ("zero-points", "true", &["--zero-points"]),
    ("signed", "true", &["--signed"]),
    ("accuracy-level", "4", &["--accuracy-level", "4"]),
    ("compress-include", "[\"fc*\", \"Gemm\"]", &["--compress-include", "fc*,Gemm"]),
    ("compress-exclude", "[\"fc1.weight\"]", &["--compress-exclude", "fc1.weight"]),
    ("min-elements", "16", &["--min-elements", "16"]),
    ("calibration-data", "[\"/a.npz\"]", &["--calibration-data", "/a.npz"]),
    ("calibration-method", "\"entropy\"", &["--calibration-method", "entropy"]),
    ("provenance", "\"basic\"", &["--provenance", "basic"]),
    ("strip-paths", "true", &["--strip-paths"]),
    ("node-docs", "true", &["--node-docs"]),
    (
        "metadata-prop",
        "{ z = \"1\", a = \"2\" }",
        &["--metadata-prop", "z=1", "--metadata-prop", "a=2"],
    ),
    ("model-doc", "\"some words\"", &["--model-doc", "some words"]),
    ("model-version", "3", &["--model-version", "3"]),
    ("producer", "\"me\"", &["--producer", "me"]),
];

/// The options in the report of a conversion with these arguments, and the model if there is one.
fn converted(folder: &Path, args: &[&str]) -> (Value, Option<Vec<u8>>) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let script = args.iter().any(|arg| ["--input", "--method", "--default-dtype"].contains(arg));
    let model = if script || reads(args) { script_archive() } else { mlp() };
    let (output, report) = (path("m.onnx"), path("r.json"));
    let fixed = [model.to_str().unwrap(), "-o", &output, "--report", &report];
    let run = pt2onnx([&fixed, args].concat());
    assert!([0, 2, 4].contains(&run.code), "{run:?}");
    let text = fs::read(&report).unwrap_or_else(|_| panic!("no report: {run:?}"));
    let report: Value = serde_json::from_slice(&text).unwrap();
    let bytes = fs::read(&output).ok();
    let _ = fs::remove_file(output);
    (report["options"].clone(), bytes)
}

/// Whether the file of options is about a TorchScript archive.
fn reads(args: &[&str]) -> bool {
    let file = args.iter().skip_while(|arg| **arg != "--options").nth(1);
    let text = file.map(|path| fs::read_to_string(path).unwrap()).unwrap_or_default();
    let keys = ["input =", "method =", "default-dtype ="];
    text.lines().any(|line| keys.iter().any(|key| line.starts_with(key)))
}

fn script_archive() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../pt2onnx-torchscript/tests/data/counter.pt")
}

fn file(folder: &Path, text: &str) -> String {
    let path = folder.join("o.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_file_says_what_flags_say() {
    let folder = tempdir().unwrap();
    let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors/newer.onnxtxt");
    let functions_here = folder.path().join("newer.onnxtxt");
    fs::copy(functions, &functions_here).unwrap();
    let here = functions_here.to_str().unwrap();
    let rules_here = folder.path().join("rules.onnxtxt");
    fs::write(&rules_here, "# No rules.\n").unwrap();
    let rules = rules_here.to_str().unwrap();
    let (mut text, mut flags) = (String::new(), Vec::new());
    let defaults = converted(folder.path(), &[]).0;
    for (key, toml, args) in ALL {
        text += &format!("{key} = {toml}\n");
        let args: Vec<&str> = args
            .iter()
            .map(|a| match *a {
                "newer.onnxtxt" => here,
                "rules.onnxtxt" => rules,
                a => a,
            })
            .collect();
        flags.extend(&args);
        // Each alone changes its key, and nothing else.
        let alone = file(folder.path(), &format!("{key} = {toml}\n"));
        let with_file = converted(folder.path(), &["--options", &alone]);
        let with_flags = converted(folder.path(), &args);
        assert!(with_file == with_flags, "{key}: {} {}", with_file.0, with_flags.0);
        let differing = with_flags.0.as_object().unwrap().iter();
        let differing: Vec<&String> =
            differing.filter(|(k, v)| defaults[*k] != **v).map(|(k, _)| k).collect();
        assert_eq!(differing, [key]);
    }
    let all = file(folder.path(), &text);
    let (of_file, of_flags) =
        (converted(folder.path(), &["--options", &all]), converted(folder.path(), &flags));
    assert_eq!(of_file, of_flags);
    let reported: BTreeSet<&str> =
        of_file.0.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(reported, ALL.iter().map(|(key, ..)| *key).collect());
}

#[test]
fn flags_override_the_file() {
    let folder = tempdir().unwrap();
    let text =
        "opset = 18\nprovenance = 'none'\ninput-names = ['a', 'b']\n[rename-dim]\ns18 = 'n'\n";
    let path = file(folder.path(), text);
    let flags =
        ["--options", &path, "--opset", "19", "--rename-dim", "s18=m", "--input-names", "c"];
    let (options, model) = converted(folder.path(), &flags);
    assert!(model.is_some());
    let shown =
        ["opset", "provenance", "input-names", "rename-dim"].map(|key| options[key].to_string());
    assert_eq!(shown, ["19", "\"none\"", "[\"c\"]", "{\"s18\":\"m\"}"]);
}

#[test]
fn every_flag_is_an_option() {
    let help = pt2onnx(["--help"]).stdout;
    let flags = help.lines().filter_map(|l| l.trim_start().split_once("--"));
    let flags = flags.filter(|(before, _)| before.is_empty() || before.ends_with(", "));
    let flags: BTreeSet<&str> = flags
        .map(|(_, flag)| flag.split(|c: char| c.is_whitespace() || c == '.').next().unwrap())
        .collect();
    let of_the_command = [
        "help",
        "version",
        "output",
        "options",
        "all",
        "jobs",
        "report",
        "json",
        "verbose",
        "quiet",
        "no-optimize",
    ];
    let options = ALL.iter().map(|(key, ..)| *key).chain(of_the_command);
    assert_eq!(flags, options.collect());
}
