//! Whatever is wrong: one clear error, the documented exit code, and no file changed.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod common;

use common::{Run, convert, edited, files, mlp, pt2onnx, with_json, zip};
use std::{fs, path::Path};
use tempfile::tempdir;

/// Converts into an empty folder and over an earlier export: neither may change.
fn fails(model: &Path) -> Run {
    let folder = tempdir().unwrap();
    let output = folder.path().join("m.onnx");
    let run = convert(model, &output);
    assert!(files(folder.path()).is_empty(), "{run:?} left {:?}", files(folder.path()).keys());

    fs::write(&output, "a model").unwrap();
    fs::write(folder.path().join("m.onnx.data"), "its weights").unwrap();
    let before = files(folder.path());
    assert_eq!(convert(model, &output), run);
    assert!(files(folder.path()) == before, "{run:?}");
    one_error(&run);
    run
}

fn one_error(run: &Run) {
    let first: Vec<&str> = run.stderr.lines().filter(|l| !l.starts_with(' ')).collect();
    assert!(first.len() == 1 && first[0].starts_with("error: ") && first[0].len() > 20, "{run:?}");
    assert!(run.stdout.is_empty() && !run.stderr.contains("panicked"), "{run:?}");
}

fn fails_with(archive: &[u8], code: i32, words: &[&str]) {
    let folder = tempdir().unwrap();
    let model = folder.path().join("model.pt2");
    fs::write(&model, archive).unwrap();
    let run = fails(&model);
    assert_eq!(run.code, code, "{run:?}");
    for word in words {
        assert!(run.stderr.contains(word), "no `{word}` in {run:?}");
    }
}

#[test]
fn archives_cut_short() {
    let whole = fs::read(mlp()).unwrap();
    for i in 0..50 {
        fails_with(&whole[..whole.len() * i / 50], 3, &["model.pt2"]);
    }
}

#[test]
fn no_archive() {
    for (content, word) in [
        (&b"just some text, long enough to be looked at"[..], "plain text"),
        (b"", "empty"),
        (&zip([("hello.txt", &b"hello"[..])]), "hello.txt"),
        (&zip([]), ""),
        (&zip([("model/data.pkl", &b"."[..]), ("model/version", b"3")]), "torch.save"),
    ] {
        fails_with(content, 3, &["not a .pt2 archive", word, "torch.export.save"]);
    }
}

#[test]
fn damaged_programs() {
    let json = "models/model.json";
    let cut = edited(
        &mlp(),
        |name, bytes| {
            if name == json { bytes[..bytes.len() / 2].to_vec() } else { bytes }
        },
    );
    fails_with(&cut, 3, &["models/model.json", "help: "]);
    for content in ["", "{}", "[1, 2]", "{\"graph_module\": 1}", "\u{fffd}"] {
        let archive =
            edited(&mlp(), |name, bytes| if name == json { content.into() } else { bytes });
        fails_with(&archive, 3, &["models/model.json"]);
    }
    let short = edited(&mlp(), |name, bytes| match name {
        "data/weights/weight_0" => bytes[..40].to_vec(),
        _ => bytes,
    });
    fails_with(&short, 3, &["fc0.weight"]);
}

#[test]
fn a_schema_of_the_future() {
    let archive =
        with_json(&mlp(), r#""schema_version": {"major": 8"#, r#""schema_version": {"major": 9"#);
    fails_with(
        &archive,
        3,
        &["schema 9.", "reads up to 8.x", "torch 2.15", "help: use a newer pt2onnx"],
    );
}

#[test]
fn unknown_ops_are_all_listed() {
    let archive =
        with_json(&mlp(), "torch.ops.aten.sigmoid.default", "torch.ops.mylib.foo.default");
    let places = [
        "4 nodes",
        "mylib.foo.default (node `sigmoid`",
        "(node `sigmoid_3`",
        "seedcase.py:",
        "--op-functions FILE.onnxtxt",
    ];
    fails_with(&archive, 4, &places);
}

#[test]
fn missing_input() {
    let folder = tempdir().unwrap();
    let run = fails(&folder.path().join("none.pt2"));
    assert!(run.code == 3 && run.stderr.contains("none.pt2"), "{run:?}");
    let run = fails(folder.path());
    assert_eq!(run.code, 3, "{run:?}");
}

#[test]
fn unwritable_outputs() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("file"), "content").unwrap();
    let before = files(folder.path());
    for (output, word) in [("none/m.onnx", "none"), ("file/m.onnx", "file"), ("file/", "folder")] {
        let run = convert(&mlp(), &folder.path().join(output));
        one_error(&run);
        assert!(run.code == 5 && run.stderr.contains(word), "{run:?}");
    }
    assert!(files(folder.path()) == before);
}

#[test]
fn the_archive_is_not_overwritten() {
    let folder = tempdir().unwrap();
    for (name, output) in [("m.pt2", "m.pt2"), ("m.pt2", "./m.pt2"), ("m.onnx.data", "m.onnx")] {
        let model = folder.path().join(name);
        fs::copy(mlp(), &model).unwrap();
        let run = convert(&model, &folder.path().join(output));
        one_error(&run);
        assert!(run.code == 2 && run.stderr.contains("overwrite"), "{run:?}");
        assert!(fs::read(&model).unwrap() == fs::read(mlp()).unwrap());
    }
}

#[test]
fn wrong_usage() {
    let model = mlp();
    let model = model.to_str().unwrap();
    for args in [
        &[][..],
        &[model],
        &[model, "-o", "m.onnx", "--opset", "6"],
        &[model, "-o", "m.onnx", "--opset", "27"],
        &[model, "-o", "m.onnx", "--weights", "nowhere"],
        &["inspect"],
    ] {
        let run = pt2onnx(args);
        assert!(
            run.code == 2 && run.stdout.is_empty() && !run.stderr.is_empty(),
            "{args:?}: {run:?}"
        );
    }
}

#[test]
fn inspecting_what_is_no_archive() {
    let run = pt2onnx(["inspect", env!("CARGO_BIN_EXE_pt2onnx")]);
    one_error(&run);
    assert_eq!(run.code, 3);
}

#[test]
fn names_and_dimensions_that_cannot_be() {
    let folder = tempdir().unwrap();
    let output = folder.path().join("m.onnx");
    for (args, expected) in [
        (
            &["--input-names", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"][..],
            "16 input names are given, but these are all inputs of the program: tensor_x, input_dict_tensor_x, input_list_0; it has 10 parameters and buffers besides",
        ),
        (
            &["--output-names", "a,b"],
            "2 output names are given, but these are all outputs of the program: linear_4",
        ),
        (&["--input-names", "a,a"], "the name `a` is given to two values"),
        (&["--input-names", "a,,c"], "`input_dict_tensor_x` is given an empty name"),
        (
            &["--input-names", "a", "--rename", "tensor_x=b"],
            "`tensor_x` is given two names, `a` and `b`",
        ),
        (
            &["--output-names", "tensor_x"],
            "`linear_4` cannot be called `tensor_x`, which is the name of another input",
        ),
        (
            &["--rename", "nope=x"],
            "there is no value `nope` to rename: the program has none of that name, or the optimiser removed it",
        ),
        (
            &["--rename-dim", "s77=n"],
            "`s77` is not a dynamic dimension: give one of `s18`, or an axis of an input, such as `tensor_x.0`",
        ),
        (&["--rename-dim", "tensor_x.2=n"], "`tensor_x` has 2 axes, so there is no axis 2"),
        (
            &["--rename-dim", "tensor_x.1=n"],
            "dimension 1 of `tensor_x` is 8, fixed at export: export with `dynamic_shapes` to make it dynamic",
        ),
        (
            &["--rename-dim", "s18=a", "--rename-dim", "tensor_x.0=b"],
            "the dimension `s18` is given two names, `a` and `b`",
        ),
        (
            &["--rename-dim", "s18=?"],
            "`?` cannot be the name of a dimension: give one that is not empty and does not start with `?`",
        ),
        (
            &["--dynamic-axes", r#"{"y": [0]}"#],
            "the dynamic axes name `y`, which is neither an input nor an output of the model",
        ),
        (&["--fix-dim", "s18=-1"], "`s18` cannot be -1: the program allows 0 and more"),
    ] {
        let model = mlp();
        let paths = [model.as_path(), Path::new("-o"), &output];
        let run = pt2onnx(paths.into_iter().chain(args.iter().map(Path::new)));
        assert_eq!((run.code, &*run.stderr), (2, &*format!("error: {expected}\n")), "{args:?}");
        assert!(!output.exists());
    }
}
