//! `run` and `verify`. ONNX Runtime is where `ORT_DYLIB_PATH` says.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]
#[expect(dead_code, reason = "these tests make no archives")]
mod common;

use ::pt2onnx::{ir::Model, tensor::Tensor, to_npz, to_safetensors, writer};
use common::{Run, command, convert, mlp, pt2onnx, with_json};
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
    let words = args.split(' ').map(|word| {
        if word.contains('.') && !word.starts_with('-') {
            folder.join(word).into_os_string()
        } else {
            word.into()
        }
    });
    pt2onnx(words)
}

fn save(path: PathBuf, arrays: &[(&str, Tensor)]) {
    let arrays: Vec<(String, Tensor)> =
        arrays.iter().map(|(name, t)| ((*name).to_owned(), t.clone())).collect();
    let pairs = arrays.iter().map(|(name, tensor)| (name, tensor));
    let bytes = if path.extension().is_some_and(|e| e == "npz") {
        to_npz(pairs).unwrap()
    } else {
        to_safetensors(pairs).unwrap()
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
    let same = run(folder.path(), "verify a.onnx --against a.onnx --fix-dim N=5 --seed 3");
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

/// Names decide which input and output is which, and nothing that is expected is left out.
#[test]
fn names_decide_which_input_and_output_is_which() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| {
        let mut model: Model = text.parse().unwrap();
        model.assign_names();
        fs::write(at(name), writer::to_bytes(&model).unwrap()).unwrap();
    };
    write(
        "m.onnx",
        "g (float[3] x, float[3] w) => (float[3] y, float[3] v) { y = Sub (x, w) v = Exp (x) }",
    );
    write(
        "n.onnx",
        "g (float[3] w, float[3] x) => (float[3] v, float[3] y) { v = Exp (x) y = Sub (x, w) }",
    );
    for more in ["", " --each"] {
        let run = run(folder.path(), &format!("verify m.onnx --against n.onnx{more}"));
        assert_eq!(run.code, 0, "{run:?}");
    }
    let z = floats(&[1, 2], &[2.0, 5.0]);
    let (x, i) = (floats(&[1, 2], &[1.0, 2.0]), integers(&[4]));
    let all = [("x", x), ("i", i), ("z", z.clone()), ("j", integers(&[8])), ("more", z)];
    save(at("good.npz"), &all[..4]);
    save(at("more.npz"), &all);
    assert_eq!(run(folder.path(), "verify a.onnx --inputs good.npz --outputs good.npz").code, 0);
    let more = run(folder.path(), "verify a.onnx --inputs good.npz --outputs more.npz");
    assert!(
        more.code == 6 && more.stderr.contains("no output more, which is expected"),
        "{more:?}"
    );
    let numbered: Vec<(String, Tensor)> = all
        .iter()
        .skip(2)
        .enumerate()
        .map(|(i, (_, t))| (format!("output.{i}"), t.clone()))
        .collect();
    let numbered: Vec<(&str, Tensor)> =
        numbered.iter().map(|(name, t)| (name.as_str(), t.clone())).collect();
    save(at("numbered.npz"), &numbered);
    let more = run(folder.path(), "verify a.onnx --inputs good.npz --outputs numbered.npz");
    assert!(more.code == 6 && more.stderr.contains("no output output.2"), "{more:?}");
}

/// Values that cannot be read are left out.
#[test]
fn each_value_that_can_be_read() {
    let folder = folder();
    let text = "g (float[2] x) => (float[2] y) <int64 i = {0}> {
        s = SequenceConstruct (x, x) a = SequenceAt (s, i) t = Cast <to = 8> (a) y = Cast <to = 1> (t) }";
    let mut model: Model = text.parse().unwrap();
    model.assign_names();
    fs::write(folder.path().join("m.onnx"), writer::to_bytes(&model).unwrap()).unwrap();
    let each = run(folder.path(), "verify m.onnx --against m.onnx --each");
    assert_eq!(each.code, 0, "{each:?}");
    assert!(each.stdout.starts_with("all 2 values of the same name"), "{each:?}");
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

/// A model of inputs of several kinds, which are its outputs, too.
fn kinds(folder: &Path) {
    let text = r#"<ir_version: 9, opset_import: ["" : 20]>
        g (bfloat16[N, 2] h, bool[N] b, uint8[?] u, double[] s) => (bfloat16[N, 2] H, bool[N] B, uint8[?] U, double[] S)
        { H = Identity (h) B = Identity (b) U = Identity (u) S = Identity (s) }"#;
    let mut model: Model = text.parse().unwrap();
    model.assign_names();
    fs::write(folder.join("kinds.onnx"), writer::to_bytes(&model).unwrap()).unwrap();
}

#[test]
fn inputs_of_several_kinds() {
    let folder = folder();
    kinds(folder.path());
    let model = folder.path().join("kinds.onnx");
    let random =
        pt2onnx(["run", model.to_str().unwrap(), "--fix-dim", "N=1", "--fix-dim", "u.0=3"]);
    let heads: Vec<&str> =
        random.stdout.lines().filter_map(|l| Some(l.split_once(" = ")?.0)).collect();
    let expected = ["H: bfloat16[1, 2]", "B: bool[1]", "U: uint8[3]", "S: float64[]"];
    assert_eq!((random.code, &heads[..]), (0, &expected[..]), "{random:?}");
    // A dimension of a name is one, whichever axis names it.
    let axis = pt2onnx(["run", model.to_str().unwrap(), "--fix-dim", "b.0=4"]);
    assert!(axis.stdout.starts_with("H: bfloat16[4, 2]"), "{axis:?}");
    // One run reads the file that another writes.
    let written = run(folder.path(), "run kinds.onnx -o out.safetensors");
    assert_eq!(written.code, 0, "{written:?}");
    let one = half_of(&[1.0, -2.0]);
    let inputs = [
        ("h", one),
        ("b", Tensor::vector(&[true])),
        ("u", Tensor::vector(&[7u8])),
        ("s", Tensor::scalar(0.5f64)),
    ];
    save(folder.path().join("in.safetensors"), &inputs);
    let given = run(folder.path(), "run kinds.onnx --inputs in.safetensors");
    let lines = "H: bfloat16[1, 2] = 1, -2\nB: bool[1] = 1\nU: uint8[1] = 7\nS: float64[] = 0.5\n";
    assert_eq!((given.code, &*given.stdout), (0, lines), "{given:?}");
    // NumPy has no bfloat16.
    let npz = run(folder.path(), "run kinds.onnx -o out.npz");
    assert!(npz.code == 5 && npz.stderr.contains("write .safetensors"), "{npz:?}");
}

fn half_of(numbers: &[f32]) -> Tensor {
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()[2..].to_vec()).collect();
    Tensor::new(::pt2onnx::tensor::DType::BF16, vec![1, numbers.len()], bytes).unwrap()
}

#[test]
fn inputs_that_do_not_fit() {
    let folder = folder();
    kinds(folder.path());
    let at = |name: &str| folder.path().join(name);
    let (x, i) = (floats(&[1, 2], &[3.0, 4.0]), integers(&[7]));
    for (file, arrays, said) in [
        ("name", vec![("x", x.clone()), ("k", i.clone())], "the file does not have the input i"),
        ("few", vec![("arr_0", x.clone())], "the file does not have the inputs x, i"),
        ("none", vec![], "it has no arrays; name its arrays as the model's inputs, or input.0"),
        (
            "type",
            vec![("x", integers(&[1])), ("i", i.clone())],
            "the input x takes float32[N, 2], but int64[1] is given",
        ),
        (
            "size",
            vec![("x", floats(&[1, 3], &[1.0; 3])), ("i", i.clone())],
            "the input x takes float32[N, 2], but float32[1, 3] is given",
        ),
        (
            "rank",
            vec![("x", floats(&[2], &[1.0; 2])), ("i", i.clone())],
            "the input x takes float32[N, 2], but float32[2] is given",
        ),
    ] {
        for ending in ["npz", "safetensors"] {
            let file = format!("{file}.{ending}");
            save(at(&file), &arrays);
            let bad = run(folder.path(), &format!("run a.onnx --inputs {file}"));
            assert!(bad.code == 2 && bad.stderr.contains(said), "{bad:?}");
        }
    }
    save(at("in.npz"), &[("x", x), ("i", i)]);
    fs::copy(mlp(), at("m.pt2")).unwrap();
    fs::write(at("text.txt"), "hello").unwrap();
    for (args, code, said) in [
        // Expected outputs, and another model.
        ("verify a.onnx --inputs in.npz --outputs in.npz", 2, "does not have the outputs z, j"),
        (
            "verify a.onnx --against kinds.onnx",
            2,
            "the number of tensors is 2, that of the inputs is 4: h, b, u, s",
        ),
        ("verify a.onnx --archive m.pt2", 3, "the archive has 3 sample inputs, the model takes 2"),
        // Sizes and seeds are for random inputs.
        ("run a.onnx --inputs in.npz --fix-dim N=2", 2, "cannot be used with"),
        ("run a.onnx --inputs in.npz --seed 2", 2, "cannot be used with"),
        (
            "run a.onnx --fix-dim M=2",
            2,
            "no dynamic dimension `M`\n  help: the dynamic dimensions of its inputs are: N\n",
        ),
        // Files that are not models, or not arrays.
        ("run m.pt2", 3, "help: convert it first: `pt2onnx "),
        ("verify a.onnx --against m.pt2", 3, "this is an archive, not an ONNX model"),
        ("run text.txt", 3, "this is not an ONNX model: it is plain text"),
        ("run in.npz", 3, "this is not an ONNX model: it is a zip file"),
        ("run a.onnx --inputs text.txt", 3, "give a .npz, .npy or .safetensors file"),
        ("run a.onnx --inputs none.npy", 3, "the arrays cannot be read"),
    ] {
        let bad = run(folder.path(), args);
        assert!(bad.code == code && bad.stderr.contains(said), "{args}: {bad:?}");
        assert_eq!(bad.stdout, "", "{args}");
    }
}

/// The oldest opsets give the same numbers, or an error that names the lowest one that does.
#[test]
fn the_oldest_opsets() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (new, old, archive) = (path("new.onnx"), path("old.onnx"), path("erf.pt2"));
    let model = mlp().to_str().unwrap().to_owned();
    assert_eq!(convert(&mlp(), Path::new(&new)).code, 0);
    for opset in ["7", "8"] {
        assert_eq!(pt2onnx([&model, "-o", &old, "--opset", opset]).code, 0);
        let same = pt2onnx(["verify", &old, "--against", &new]);
        assert_eq!(same.code, 0, "{same:?}");
    }
    let erf = with_json(&mlp(), "torch.ops.aten.sigmoid.default", "torch.ops.aten.erf.default");
    fs::write(&archive, erf).unwrap();
    let refused = pt2onnx([&archive, "-o", &old, "--opset", "8"]);
    assert!(refused.code == 4 && refused.stderr.contains("use `--opset 9`"), "{refused:?}");
    let made = pt2onnx([&archive, "-o", &old, "--opset", "9"]);
    assert_eq!((made.code, &*made.stderr), (0, ""));
}
