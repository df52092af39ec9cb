//! `--options FILE.toml`: the same options in a file and in flags.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail so")]

#[expect(dead_code, reason = "these tests make no archives")]
mod common;

use ::pt2onnx::{FlagKind, Options};
use common::{mlp, pt2onnx};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, fs, path::Path};
use tempfile::tempdir;

/// Every option at a value other than its default. Files are in the folder.
fn all(folder: &Path) -> Map<String, Value> {
    let text = include_str!("../../pt2onnx/tests/options.json");
    let path = |name: &str| format!("\"{}\"", folder.join(name).display());
    let text = text.replace("\"ops.onnxtxt\"", &path("ops.onnxtxt"));
    let text = text.replace("\"rules.onnxtxt\"", &path("rules.onnxtxt"));
    serde_json::from_str(&text.replace("\"samples.npz\"", &path("samples.npz"))).unwrap()
}

/// The flags for an option.
fn flags(key: &str, value: &Value) -> Vec<String> {
    let option = Options::META.iter().find(|option| option.key == key).unwrap();
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let texts: Vec<String> = match (option.flag, value) {
        (FlagKind::Switch, _) => return vec![format!("--{key}")],
        (FlagKind::Many, Value::Object(pairs)) => {
            pairs.iter().map(|(key, value)| format!("{key}={}", word(value))).collect()
        }
        (FlagKind::Many, Value::Array(items)) => items.iter().map(word).collect(),
        (_, Value::Array(items)) => vec![items.iter().map(word).collect::<Vec<_>>().join(",")],
        (_, value) => vec![word(value)],
    };
    texts.into_iter().flat_map(|text| [format!("--{key}"), text]).collect()
}

/// The options in the report of a conversion with these arguments, and the model if there is one.
fn converted(folder: &Path, torchscript: bool, args: &[String]) -> (Value, Option<Vec<u8>>) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let counter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pt2onnx-torchscript/tests/data");
    let model = if torchscript { counter.join("counter.pt") } else { mlp() };
    let (output, report) = (path("m.onnx"), path("r.json"));
    let fixed = ["-o", &output, "--report", &report].map(str::to_owned);
    let run = pt2onnx([&[model.to_str().unwrap().to_owned()], &fixed[..], args].concat());
    assert!([0, 2, 4].contains(&run.code), "{run:?}");
    let text = fs::read(&report).unwrap_or_else(|_| panic!("no report: {run:?}"));
    let report: Value = serde_json::from_slice(&text).unwrap();
    let bytes = fs::read(&output).ok();
    let _ = fs::remove_file(output);
    (report["options"].clone(), bytes)
}

/// The argument for a file of options.
fn file(folder: &Path, options: &Map<String, Value>) -> [String; 2] {
    let path = folder.join("o.toml");
    fs::write(&path, toml::to_string(options).unwrap()).unwrap();
    ["--options".to_owned(), path.to_str().unwrap().to_owned()]
}

#[test]
fn a_file_gives_what_flags_give() {
    let folder = tempdir().unwrap();
    let all = all(folder.path());
    let function =
        r#"<domain: "aten", opset_import: ["" : 20]> sigmoid (self) => (y) { y = Gelu (self) }"#;
    fs::write(folder.path().join("ops.onnxtxt"), function).unwrap();
    fs::write(folder.path().join("rules.onnxtxt"), "# No rules.\n").unwrap();
    let defaults = converted(folder.path(), false, &[]).0;
    let mut all_flags = Vec::new();
    for (key, value) in &all {
        // Each alone changes its key, and nothing else.
        let flags = flags(key, value);
        let torchscript = ["input", "method", "default-dtype"].contains(&key.as_str());
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        let with_file = converted(folder.path(), torchscript, &file(folder.path(), &alone));
        let with_flags = converted(folder.path(), torchscript, &flags);
        assert!(with_file == with_flags, "{key}: {} {}", with_file.0, with_flags.0);
        let reported = with_flags.0.as_object().unwrap().iter();
        let differing: Vec<&String> =
            reported.filter(|(k, v)| defaults[*k] != **v).map(|(k, _)| k).collect();
        assert_eq!(differing, [key]);
        all_flags.extend(flags);
    }
    let (of_file, of_flags) = (
        converted(folder.path(), true, &file(folder.path(), &all)),
        converted(folder.path(), true, &all_flags),
    );
    assert_eq!(of_file, of_flags);
    assert!(of_file.0.as_object().unwrap().keys().eq(Options::META.iter().map(|o| o.key)));
}

#[test]
fn every_flag_is_an_option() {
    let help = pt2onnx(["--help"]).stdout;
    let flags = help.lines().filter_map(|l| l.trim_start().split_once("--"));
    let flags = flags.filter(|(before, _)| before.is_empty() || before.ends_with(", "));
    let flags: BTreeSet<&str> = flags
        .map(|(_, flag)| flag.split(|c: char| c.is_whitespace() || c == '.').next().unwrap())
        .collect();
    let of_the_command =
        "help version output options all jobs report json verbose quiet no-optimize";
    let options = Options::META.iter().map(|option| option.key).chain(of_the_command.split(' '));
    assert_eq!(flags, options.collect());
}

/// Every opset is in one entry of the table of an op.
#[test]
fn ops_have_each_opset_once() {
    let json = pt2onnx(["ops", "--json"]).stdout;
    let ops: Value = serde_json::from_str(&json).unwrap();
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
