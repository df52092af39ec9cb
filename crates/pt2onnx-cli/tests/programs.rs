//! `show` of archives, and archives with several programs.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[expect(dead_code, reason = "what other tests need")]
mod common;

use common::{mlp, pt2onnx, zip};
use std::{
    fs,
    io::{Cursor, Read},
    path::Path,
};
use tempfile::{TempDir, tempdir};
use zip::ZipArchive;

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// The archive of the perceptron, with its program once for each of the names.
fn several(names: &[&str]) -> Vec<u8> {
    let mut old = ZipArchive::new(Cursor::new(fs::read(mlp()).unwrap())).unwrap();
    let mut records: Vec<(String, Vec<u8>)> = Vec::new();
    for i in 0..old.len() {
        let mut record = old.by_index(i).unwrap();
        let mut bytes = Vec::new();
        record.read_to_end(&mut bytes).unwrap();
        let name = record.name().unwrap().into_owned();
        let own = ["models/model.json", "/model_weights_config", "/model_constants_config"];
        if own.iter().any(|part| name.contains(part)) {
            let (folder, file) = name.rsplit_once('/').unwrap();
            for own in names {
                let file = file.replacen("model", own, 1);
                records.push((format!("{folder}/{file}"), bytes.clone()));
            }
        } else {
            records.push((name, bytes))
        }
    }
    zip(records.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
}

#[test]
fn several_programs() {
    let folder = tempdir().unwrap();
    let (archive, out) = (path(&folder, "a.pt2"), path(&folder, "m.onnx"));
    fs::write(&archive, several(&["encoder", "decoder"])).unwrap();
    let which = pt2onnx([&*archive, "-o", &out]);
    assert!(which.code == 3 && which.stderr.contains("--program NAME"), "{which:?}");
    let other = pt2onnx([&*archive, "-o", &out, "--program", "model"]);
    assert!(other.code == 3 && other.stderr.contains("it holds: encoder, decoder"), "{other:?}");
    assert_eq!(pt2onnx([&*archive, "-q", "-o", &out, "--program", "decoder"]).code, 0);
    assert!(Path::new(&out).exists());
    // All of them, each in a separate file.
    let models = path(&folder, "models");
    let run = pt2onnx([&*archive, "-q", "-o", &models, "--all", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.stdout.matches("\"program\": ").count(), 2, "{run:?}");
    let made: Vec<String> = common::files(Path::new(&models)).into_keys().collect();
    assert_eq!(made, ["decoder.onnx", "encoder.onnx"]);
    let file = pt2onnx([&*archive, "-o", &out, "--all"]);
    assert!(file.code == 2 && file.stderr.contains("needs a folder"), "{file:?}");
    // The one that is called `model` is meant, but the other is not forgotten.
    fs::write(&archive, several(&["model", "extra"])).unwrap();
    let run = pt2onnx([&*archive, "-o", &out]);
    assert!(run.code == 0 && run.stderr.contains("`extra`"), "{run:?}");
    let named = pt2onnx([&*archive, "-o", &out, "--program", "model"]);
    assert!(named.code == 0 && !named.stderr.contains("extra"), "{named:?}");
    // A name is not a path.
    fs::write(&archive, several(&["model", "../../x"])).unwrap();
    let run = pt2onnx([&*archive, "-q", "-o", &path(&folder, "more/"), "--all"]);
    assert_eq!(run.code, 0, "{run:?}");
    let made: Vec<String> = common::files(&folder.path().join("more")).into_keys().collect();
    assert_eq!(made, ["_.._x.onnx", "model.onnx"]);
}

#[test]
fn programs_as_pytorch_prints_them() {
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/metadata/mlp.txt");
    let mlp = mlp();
    let raw = pt2onnx(["show", "--raw", mlp.to_str().unwrap()]);
    assert_eq!((raw.code, &*raw.stderr), (0, ""));
    assert_eq!(raw.stdout, fs::read_to_string(expected).unwrap());
    let passed = pt2onnx(["show", mlp.to_str().unwrap()]).stdout;
    assert!(passed.contains("torch.ops.aten.sigmoid.default(linear_3)"), "{passed}");
    // TorchScript, with the types of its inputs.
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../pt2onnx-torchscript/tests/data/counter.pt");
    let script = script.to_str().unwrap();
    let run = pt2onnx(["show", "--raw", script, "--input", "x=float32[n,3]"]);
    assert!(run.code == 0 && run.stdout.starts_with("ExportedProgram:\n"), "{run:?}");
    let onnx = pt2onnx(["show", mlp.to_str().unwrap(), "--types"]);
    assert!(onnx.code == 2 && onnx.stderr.contains("--types is for ONNX models"), "{onnx:?}");
}

#[test]
fn models_with_types_and_without_values() {
    let folder = tempdir().unwrap();
    let out = path(&folder, "m.onnx");
    let mlp = mlp();
    let args = [mlp.to_str().unwrap(), "-q", "-o", &out];
    assert_eq!(pt2onnx(args).code, 0);
    let text = pt2onnx(["show", &out, "--types"]).stdout;
    assert!(text.contains("= Sigmoid (linear)  # float[s18,8]\n"), "{text}");
    let bias = "float[2] fc3.bias = {";
    assert!(text.contains(bias) && !text.contains("float[2] fc3.bias = {...}"), "{text}");
    let without = pt2onnx(["show", &out, "--no-values"]).stdout;
    assert!(without.contains("float[2] fc3.bias = {...}"), "{without}");
    assert!(!without.contains("no values in this file"), "{without}");
    // A weight that has none says so, also to a parser.
    assert_eq!(pt2onnx([&args[..], &["--weights", "none"]].concat()).code, 0);
    let hollow = pt2onnx(["show", &out]).stdout;
    assert!(hollow.contains("{...},  # no values in this file\n"), "{hollow}");
    assert!(hollow.parse::<pt2onnx::ir::Model>().is_ok(), "{hollow}");
    let raw = pt2onnx(["show", &out, "--raw"]);
    assert!(raw.code == 2 && raw.stderr.contains("--raw is for archives"), "{raw:?}");
}
