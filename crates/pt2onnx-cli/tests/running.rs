//! `run` and `verify`. ONNX Runtime is where `ORT_DYLIB_PATH` says.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]
#[expect(dead_code, reason = "these tests make no archives")]
mod common;

use ::pt2onnx::{ir::Model, tensor::Tensor, to_npz, to_safetensors, writer};
use common::{Run, command, convert, mlp, pt2onnx};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::{TempDir, tempdir};

/// A folder with the model `a.onnx`: `y = x * x`, `z = y + 1`, and `b.onnx`, which adds 2.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    for (name, addend) in [("a.onnx", "1.0"), ("b.onnx", "2.0")] {
        let text = format!(
            "<ir_version: 9, opset_import: [\"\" : 18]> g (float[N, 2] x, int64[N] i) => (float[N, 2] z, int64[N] j)
            <float one = {{{addend}}}> {{ y = Mul (x, x) z = Add (y, one) j = Add (i, i) }}"
        );
        let mut model: Model = text.parse().unwrap();
        model.assign_names();
        fs::write(folder.path().join(name), writer::to_bytes(&model).unwrap()).unwrap();
    }
    folder
}

/// Runs a command whose words with a dot are files of the folder.
fn run(folder: &Path, args: &str) -> Run {
    let words = args.split(' ').map(|word| match word.contains('.') && !word.starts_with('-') {
        true => folder.join(word).into_os_string(),
        false => word.into(),
    });
    pt2onnx(words)
}

fn save(path: PathBuf, arrays: &[(&str, Tensor)]) {
    let arrays: Vec<(String, Tensor)> =
        arrays.iter().map(|(name, t)| ((*name).to_owned(), t.clone())).collect();
    let pairs = arrays.iter().map(|(name, tensor)| (name, tensor));
    let bytes = match path.extension().is_some_and(|e| e == "npz") {
        true => to_npz(pairs).unwrap(),
        false => to_safetensors(pairs).unwrap(),
    };
    fs::write(path, bytes).unwrap();
}

fn floats(shape: &[usize], elements: &[f32]) -> Tensor {
    Tensor::from_slice(shape, elements).unwrap()
}

fn integers(elements: &[i64]) -> Tensor {
    Tensor::vector(elements)
}

#[test]
fn given_inputs_and_outputs() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let inputs = [("i", integers(&[7])), ("x", floats(&[1, 2], &[3.0, f32::NAN]))];
    save(at("in.npz"), &inputs);
    save(at("in.safetensors"), &inputs);
    for file in ["in.npz", "in.safetensors"] {
        let run = run(folder.path(), &format!("run a.onnx --inputs {file}"));
        assert_eq!(
            (run.code, &*run.stdout),
            (0, "z: float32[1, 2] = 10, NaN\nj: int64[1] = 14\n"),
            "{run:?}"
        );
    }
    let written = run(folder.path(), "run a.onnx --inputs in.npz -o out.safetensors");
    assert_eq!(written.code, 0, "{written:?}");
    let good = run(folder.path(), "verify a.onnx --inputs in.npz --outputs out.safetensors");
    assert_eq!(
        (good.code, &*good.stdout),
        (
            0,
            "z: within tolerance, differs by at most 0.00e0 (relative 0.00e0)\n\
             j: within tolerance, differs by at most 0.00e0 (relative 0.00e0)\n\
             2 of 2 outputs are as expected, on the given inputs, against the given outputs\n"
        ),
        "{good:?}"
    );
    // Numbers, NaN, types and shapes.
    for (z, said) in [
        (floats(&[1, 2], &[10.5, f32::NAN]), "z: 1 of 2 numbers out of tolerance, the first at 0"),
        (floats(&[1, 2], &[10.0, 1.0]), "z: 1 of 2 numbers out of tolerance, the first at 1"),
        (floats(&[2], &[10.0, f32::NAN]), "z: shape [1, 2], expected [2]"),
        (integers(&[10, 0]), "z: type float32, expected int64"),
    ] {
        save(at("bad.npz"), &[("output.0", z), ("output.1", integers(&[14]))]);
        let bad = run(folder.path(), "verify a.onnx --inputs in.npz --outputs bad.npz");
        assert_eq!(bad.code, 6, "{bad:?}");
        assert!(bad.stdout.starts_with(said), "{bad:?}");
        assert!(bad.stdout.contains("1 of 2 outputs are as expected"), "{bad:?}");
    }
    save(
        at("bad.npz"),
        &[("arr_0", floats(&[1, 2], &[10.5, f32::NAN])), ("arr_1", integers(&[14]))],
    );
    let wide =
        run(folder.path(), "verify a.onnx --inputs in.npz --outputs bad.npz --rtol 1e-1 --json");
    let json: serde_json::Value = serde_json::from_str(&wide.stdout).unwrap();
    assert_eq!(
        (wide.code, &json["passed"], &json["outputs"][0]["max_abs"]),
        (0, &true.into(), &0.5.into()),
        "{wide:?}"
    );
}

#[test]
fn two_models() {
    let folder = folder();
    let same = run(folder.path(), "verify a.onnx --against a.onnx --fix N=5 --seed 3");
    assert_eq!(same.code, 0, "{same:?}");
    assert!(
        same.stdout.ends_with(
            "2 of 2 outputs are as expected, on random inputs, against the other model\n"
        ),
        "{same:?}"
    );
    let other = run(folder.path(), "verify a.onnx --against b.onnx");
    assert_eq!(other.code, 6, "{other:?}");
    assert!(
        other.stdout.starts_with(
            "z: 4 of 4 numbers out of tolerance, the first at 0; differs by at most 1.00e0"
        ),
        "{other:?}"
    );
    let each = run(folder.path(), "verify a.onnx --against b.onnx --each");
    assert_eq!(each.code, 6, "{each:?}");
    assert!(
        each.stdout.starts_with(
            "1 of 3 values of the same name differ, against the other model; the first:\nz: 4 of 4"
        ),
        "{each:?}"
    );
    assert!(each.stdout.contains("computed by"), "{each:?}");
    let each = run(folder.path(), "verify a.onnx --against a.onnx --each");
    assert_eq!(
        (each.code, &*each.stdout),
        (0, "all 3 values of the same name are as expected, against the other model\n")
    );
    let alone = run(folder.path(), "verify a.onnx");
    assert_eq!(alone.code, 0, "{alone:?}");
    assert!(
        alone.stdout.starts_with("z: float32[2, 2]\nj: int64[2]\nthe model runs on random inputs"),
        "{alone:?}"
    );
}

#[test]
fn sample_inputs_of_the_archive() {
    let folder = tempdir().unwrap();
    let model = folder.path().join("m.onnx");
    assert_eq!(convert(&mlp(), &model).code, 0);
    let archive = mlp();
    for more in [&[][..], &["--each"]] {
        let args =
            ["verify".as_ref(), model.as_os_str(), "--archive".as_ref(), archive.as_os_str()];
        let run = pt2onnx(args.into_iter().chain(more.iter().map(AsRef::as_ref)));
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stdout.contains("as expected"), "{run:?}");
    }
    let run =
        pt2onnx(["run".as_ref(), model.as_os_str(), "--archive".as_ref(), archive.as_os_str()]);
    assert!(run.stdout.starts_with("linear_4: float32[97, 2], from "), "{run:?}");
}

#[test]
fn what_is_read_is_not_written() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    save(at("in.npz"), &[("i", integers(&[7])), ("x", floats(&[1, 2], &[3.0, 1.0]))]);
    let before = fs::read(at("in.npz")).unwrap();
    let refused = run(folder.path(), "run a.onnx --inputs in.npz -o in.npz");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_eq!(fs::read(at("in.npz")).unwrap(), before);
}

#[test]
fn the_library_is_found_in_a_python_package() {
    let library = std::env::var_os("ORT_DYLIB_PATH").unwrap();
    let folder = folder();
    let capi = folder.path().join("lib/python3.12/site-packages/onnxruntime/capi");
    fs::create_dir_all(&capi).unwrap();
    let name =
        format!("{}onnxruntime.{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_EXTENSION);
    fs::copy(library, capi.join(name)).unwrap();
    let mut command = command();
    command
        .env_remove("ORT_DYLIB_PATH")
        .env_remove("CONDA_PREFIX")
        .env("VIRTUAL_ENV", folder.path());
    let output = command.arg("run").arg(folder.path().join("a.onnx")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
