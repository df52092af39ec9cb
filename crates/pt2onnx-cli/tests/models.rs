//! The commands for ONNX models, whatever made them.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[expect(dead_code, reason = "what other tests need")]
mod common;

use common::pt2onnx;
use pt2onnx::{
    ir::{Attribute, Model},
    writer::{self, Weights},
};
use std::{fs, path::PathBuf};
use tempfile::{TempDir, tempdir};

/// Bodies, a function that is called with an attribute, another domain, a sequence, words about the
/// model.
const FOREIGN: &str = r#"<ir_version: 9, opset_import: ["" : 18, "my.domain" : 2, "local" : 1]>
    other_graph (float[N,4] x, bool flag) => (float[N,4] y, seq(float[N,4]) all)
    <float[4] bias = {1.0, 2.0, 3.0, 4.0}, float[4,128] weight = {WEIGHT}> {
        same = Identity (x)
        chosen = If (flag) <
            then_branch = yes () => (float[N,4] a) { a = Add (same, bias) },
            else_branch = no () => (float[N,4] b) { b = my.domain.Thing <how = "well"> (same) }
        >
        wide = MatMul (chosen, weight)
        narrow = Slice (wide, zero, four, one)
        scaled = local.Scaled <by = 2.0> (narrow)
        y = Identity (scaled)
        all = SequenceConstruct (scaled)
    }
    <domain: "local", opset_import: ["" : 18]>
    Scaled <by> (x) => (y) {
        factor = Constant <value_float: float = @by> ()
        y = Mul (x, factor)
    }"#;

/// The model with its one large weight.
fn foreign() -> Model {
    let weight = vec!["0.5"; 512].join(", ");
    let constants = "int64[1] zero = {0}, int64[1] four = {4}, int64[1] one = {1}, float[4] bias";
    let text = FOREIGN.replace("WEIGHT", &weight);
    text.replace("float[4] bias", constants).parse().unwrap()
}

fn save(folder: &TempDir, name: &str, model: &Model, weights: Weights) -> PathBuf {
    let path = folder.path().join(name);
    let mut model = model.clone();
    model.assign_names();
    writer::save(&model, &path, weights).unwrap();
    path
}

#[test]
fn show() {
    let folder = tempdir().unwrap();
    let model = save(&folder, "m.onnx", &foreign(), Weights::External);
    // The text has no elements of large weights.
    fs::remove_file(folder.path().join("m.onnx.data")).unwrap();
    let run = pt2onnx(["show", model.to_str().unwrap()]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    insta::assert_snapshot!(run.stdout);
    let run = pt2onnx(["show", "--dot", model.to_str().unwrap()]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    assert!(run.stdout.starts_with("digraph {\n    0 [ label = \"input "), "{}", run.stdout);
}

#[test]
fn optimize() {
    let folder = tempdir().unwrap();
    let model = save(&folder, "m.onnx", &foreign(), Weights::External);
    let output = folder.path().join("n.onnx");
    let (from, to) = (model.to_str().unwrap(), output.to_str().unwrap());
    let run = pt2onnx(["optimize", from, "-o", to]);
    assert_eq!((run.code, &*run.stdout, &*run.stderr), (0, "", ""));
    let shown = pt2onnx(["show", to]).stdout;
    insta::assert_snapshot!(shown);
    // In place, and nothing is left to do.
    let first = fs::read(&output).unwrap();
    assert_eq!(pt2onnx(["optimize", to, "-o", to]).code, 0);
    assert!(fs::read(&output).unwrap() == first);
    let levels = pt2onnx(["optimize", from, "-o", to, "--optimize", "0", "-v"]);
    assert!(levels.stderr.contains("11 nodes became 11"), "{levels:?}");
}

/// A model with a named and an unnamed dimension.
const DYNAMIC: &str = r#"<ir_version: 9, opset_import: ["" : 18]>
    g (float[N,K] x, float[?,4] z) => (float[N,M] y, int64[2] size, float[P,4] double)
    <float[4,3] weight = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> {
        middle = MatMul (x, weight)
        y = Relu (middle)
        size = Shape (middle)
        double = Add (z, z)
    }"#;

#[test]
fn optimize_with_names_and_sizes() {
    let folder = tempdir().unwrap();
    let model = save(&folder, "m.onnx", &DYNAMIC.parse().unwrap(), Weights::Embed);
    let output = folder.path().join("n.onnx");
    let (from, to) = (model.to_str().unwrap(), output.to_str().unwrap());
    let optimized = |more: &[&str]| {
        let run = pt2onnx([&["optimize", from, "-o", to], more].concat());
        assert_eq!((run.code, &*run.stdout, &*run.stderr), (0, "", ""), "{more:?}");
        pt2onnx(["show", to]).stdout
    };
    let renamed = optimized(&[
        "--rename-dim",
        "N=batch",
        "--rename-dim",
        "x.1=width",
        "--rename-dim",
        "z.0=rows",
        "--input-names",
        "a,b",
        "--output-names",
        "out",
        "--rename",
        "middle=hidden",
        "--rename",
        "weight=w",
    ]);
    for part in [
        "(float[batch,width] a, float[rows,4] b) => (float[batch,M] out, int64[2] size, float[P,4] double)",
        "hidden = MatMul (a, w)",
        "out = Relu (hidden)",
    ] {
        assert!(renamed.contains(part), "no {part}: {renamed}");
    }
    let fixed = optimized(&[
        "--fix-dim",
        "N=5",
        "--fix-dim",
        "z.0=2",
        "--dynamic-axes",
        r#"{"x": {"1": "width"}}"#,
    ]);
    assert!(fixed.contains("(float[5,width] x, float[2,4] z) => (float[5,M] y,"), "{fixed}");
    assert!(fixed.contains("{5, 3}") && !fixed.contains("Shape"), "{fixed}");
    // Also with no pass at all.
    let off = optimized(&["--fix-dim", "K=4", "--no-optimize"]);
    assert!(off.contains("(float[N,4] x,") && off.contains("Shape (middle)"), "{off}");
}

/// A value that is input and output gets a name as each; one that is not there has none, whatever
/// has the new one.
#[test]
fn optimize_renames_what_was_meant() {
    let folder = tempdir().unwrap();
    let text = "g (float[2] x) => (float[2] x, float[2] y) { t = Exp (x) y = Neg (t) }";
    let model = save(&folder, "m.onnx", &text.parse().unwrap(), Weights::Embed);
    let output = folder.path().join("n.onnx");
    let (from, to) = (model.to_str().unwrap(), output.to_str().unwrap());
    let optimized = |more: &[&str]| pt2onnx([&["optimize", from, "-o", to], more].concat());
    let run = optimized(&["--output-names", "a,b"]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let shown = pt2onnx(["show", to]).stdout;
    assert!(shown.contains("(float[2] x) => (float[2] a, float[2] b)"), "{shown}");
    for new in ["x", "y", "t", "z"] {
        let run = optimized(&["--rename", &format!("none={new}")]);
        assert!(run.code == 2 && run.stderr.contains("no value `none`"), "{run:?}");
    }
}

/// Neither part of a model is replaced by the whole, functions are replaced before, and names of
/// all are kept apart.
#[test]
fn merge() {
    let folder = tempdir().unwrap();
    let function = |op: &str| {
        format!(r#"<domain: "l", opset_import: ["" : 17]> f (x) => (a) {{ a = {op} (x) }}"#)
    };
    let model = |name: &str, ends: &str, op: &str| {
        let text =
            format!(r#"<ir_version: 9, opset_import: ["" : 17, "l" : 1]> {ends} {}"#, function(op));
        save(&folder, name, &text.parse().unwrap(), Weights::Embed)
    };
    let a = model("a.onnx", "g (float[2] x) => (float[2] y) { y = l.f (x) }", "Exp");
    let b = model("b.onnx", "g (float[2] y) => (float[2] z) { z = l.f (y) }", "Neg");
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let both = format!("{a}:{b}");
    for output in [a, b] {
        let before = fs::read(output).unwrap();
        let run = pt2onnx(["optimize", "--merge", &both, "--inline", "-o", output]);
        assert!(run.code != 0 && fs::read(output).unwrap() == before, "{run:?}");
    }
    let output = folder.path().join("ab.onnx");
    let run = pt2onnx(["optimize", "--merge", &both, "--inline", "-o", output.to_str().unwrap()]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let shown = pt2onnx(["show", output.to_str().unwrap()]).stdout;
    assert!(shown.contains("y = Exp (x)") && shown.contains("z = Neg (y)"), "{shown}");
}

#[test]
fn optimize_with_names_and_sizes_that_do_not_fit() {
    let folder = tempdir().unwrap();
    let model = save(&folder, "m.onnx", &DYNAMIC.parse().unwrap(), Weights::Embed);
    let output = folder.path().join("n.onnx");
    for (args, message) in [
        (
            &["--rename-dim", "Q=batch"][..],
            "`Q` is not a dynamic dimension: give one of `K`, `M`, `N`, `P`, or an axis of an input, such as `x.0`",
        ),
        (
            &["--rename-dim", "q.0=batch"],
            "`q.0` is an axis of `q`, and the model has no such value; its inputs: x, z",
        ),
        (&["--rename-dim", "z.1=batch"], "dimension 1 of `z` is 4, fixed at export"),
        (
            &["--rename-dim", "N=K"],
            "`N` cannot be called `K`, which is the name of another dimension",
        ),
        (&["--fix-dim", "x.7=1"], "`x` has 2 axes, so there is no axis 7"),
        (&["--fix-dim", "N=-1"], "`N` cannot be -1: the program allows 0 and more"),
        (&["--fix-dim", "z.1=5"], "`z.1` cannot be 5"),
        (&["--rename", "nothing=a"], "there is no value `nothing` to rename"),
        (&["--rename", "x=y"], "`x` cannot be called `y`, which is the name of another output"),
        (
            &["--input-names", "a,b,c"],
            "3 input names are given, but these are all inputs of the program: x, z",
        ),
        (&["--input-names", "a,a"], "the name `a` is given to two values"),
        (&["--output-names", "from-tree"], "the outputs cannot be named from the tree"),
    ] {
        let fixed = ["optimize", model.to_str().unwrap(), "-o", output.to_str().unwrap()];
        let run = pt2onnx([&fixed[..], args].concat());
        assert!(run.code == 2 && run.stderr.contains(message), "{args:?}: {run:?}");
        assert!(!output.exists());
    }
}

/// A value that the optimiser folds away cannot be renamed, as in a conversion.
#[test]
fn optimize_says_which_renamed_value_is_gone() {
    let folder = tempdir().unwrap();
    let text = r#"<ir_version: 9, opset_import: ["" : 18]>
        g (float[2] x) => (float[2] y) { copy = Identity (x) z = Relu (copy) y = Neg (z) }"#;
    let model = save(&folder, "m.onnx", &text.parse().unwrap(), Weights::Embed);
    let output = folder.path().join("n.onnx");
    let args = ["optimize", model.to_str().unwrap(), "-o", output.to_str().unwrap(), "--rename"];
    let run = pt2onnx([&args[..], &["copy=other"]].concat());
    assert!(run.code == 2 && run.stderr.contains("or the optimiser removed it"), "{run:?}");
    assert!(!output.exists());
    assert_eq!(pt2onnx([&args[..], &["z=other"]].concat()).code, 0);
    assert_eq!(pt2onnx([&args[..], &["copy=other", "--no-optimize"]].concat()).code, 0);
}

#[test]
fn optimize_warns_of_what_it_leaves_alone() {
    let folder = tempdir().unwrap();
    let old: Model = r#"<ir_version: 3, opset_import: ["" : 6]>
        g (float[2] x) => (float[2] y) { a = Identity (x) y = Identity (a) }"#
        .parse()
        .unwrap();
    let model = save(&folder, "m.onnx", &old, Weights::Auto);
    let output = folder.path().join("n.onnx");
    let args = ["optimize", model.to_str().unwrap(), "-o"];
    let args = [&args[..], &[output.to_str().unwrap()]].concat();
    let strict = pt2onnx([&args[..], &["--warnings-as-errors"]].concat());
    assert!(strict.code == 4 && !output.exists(), "{strict:?}");
    let run = pt2onnx(&args);
    let warning = "warning: the model is of opset 6, and only graphs of opsets 7 to 28 are \
                   optimised: `--opset` rewrites it for one of them\n";
    assert_eq!((run.code, &*run.stderr), (0, warning));
    assert!(output.exists());
    let converted = pt2onnx([&args[..], &["--opset", "7"]].concat());
    assert_eq!((converted.code, &*converted.stderr), (0, ""));
    assert_eq!(writer::read(&output).unwrap().opset, 7);
}

/// ONNX Runtime has no kernel for `RoiAlign` of opset 22, and none for `Conv` of float64.
#[test]
fn optimize_fits_the_model_to_a_runtime() {
    let folder = tempdir().unwrap();
    let old: Model = r#"<ir_version: 8, opset_import: ["" : 16]>
        g (float[1,3,8,8] x, float[2,4] rois, int64[2] batch, double[1,3,8,8] d, double[3,3,2,2] w)
            => (float[2,3,1,1] y, double[1,3,7,7] z) {
            y = RoiAlign (x, rois, batch)
            z = Conv (d, w)
        }"#
    .parse()
    .unwrap();
    let model = save(&folder, "m.onnx", &old, Weights::Auto);
    let output = folder.path().join("n.onnx");
    let run = |more: &[&str]| {
        let args = ["optimize", model.to_str().unwrap(), "-o", output.to_str().unwrap()];
        pt2onnx([&args[..], more].concat())
    };
    let operators = || {
        let made = writer::read(&output).unwrap();
        made.nodes(Model::MAIN).map(|id| made[id].op().to_owned()).collect::<Vec<_>>()
    };

    let plain = run(&[]);
    assert_eq!((plain.code, &*plain.stderr), (0, ""));
    assert_eq!(operators(), ["RoiAlign", "Conv"]);
    let converted = run(&["--opset", "22"]);
    assert_eq!(converted.code, 0);
    let lacks = |what: &str| format!("warning: ONNX Runtime has no CPU kernel for {what}\n");
    let (casts, newer) = (
        lacks("Conv of float64; the target `ort-cpu` inserts casts"),
        lacks("RoiAlign of opset 22; give an older opset"),
    );
    assert_eq!(converted.stderr, casts + &newer);

    let fitted = run(&["--target", "ort-cpu"]);
    assert_eq!(fitted.code, 0);
    let narrower = lacks("Conv of float64 (computed in float32): the results are less exact");
    assert_eq!(fitted.stderr, narrower);
    assert_eq!(operators(), ["RoiAlign", "Cast", "Cast", "Conv", "Cast"]);

    fs::remove_file(&output).unwrap();
    for (more, code, error) in [
        (
            &["--target", "ort-cpu", "--opset", "22"][..],
            4,
            "no CPU kernel for RoiAlign of opset 22",
        ),
        (&["--target", "tensorrt"], 4, "Conv of float64 is not supported"),
        (
            &["--target", "ort-cpu", "--warnings-as-errors"],
            4,
            "Conv of float64 (computed in float32)",
        ),
    ] {
        let refused = run(more);
        assert!(refused.code == code && refused.stderr.contains(error), "{refused:?}");
        assert!(!output.exists());
    }
}

/// Contradictions that the types of inner values would show; files need not declare these types.
#[test]
fn optimize_refuses_what_contradicts_itself() {
    let folder = tempdir().unwrap();
    for (nodes, what) in [
        ("a = Shape (x) b = Cast <to = 7> (x) y = MatMul (x, b)", "`node_MatMul_2`"),
        (
            "a = Shape (x) y = Abs (a)",
            "output `y`: the graph says that it is float32, its node makes int64",
        ),
        ("p = MaxPool <kernel_shape = [2, 2]> (x) y = Relu (p)", ""),
    ] {
        let text = format!(
            r#"<ir_version: 9, opset_import: ["" : 20]>
            g (float[1,1,8] x) => (float[n] y) {{ {nodes} }}"#
        );
        let mut model: Model = text.parse().unwrap();
        let made = model.nodes(Model::MAIN).flat_map(|n| model[n].outputs().to_vec());
        for value in made.collect::<Vec<_>>() {
            if !model.output_values().any(|v| v == value) {
                model[value].ty = None;
            }
        }
        let model = save(&folder, "m.onnx", &model, Weights::Auto);
        let output = folder.path().join("n.onnx");
        let run = pt2onnx(["optimize", model.to_str().unwrap(), "-o", output.to_str().unwrap()]);
        match what {
            // Wrong sizes are the runtime's business.
            "" => assert_eq!(run.code, 0, "{run:?}"),
            what => assert!(run.code == 3 && run.stderr.contains(what), "{run:?}"),
        }
    }
}

#[test]
fn diff() {
    let folder = tempdir().unwrap();
    let a = save(&folder, "a.onnx", &foreign(), Weights::External);
    let text =
        foreign().to_string().replace("{...}", &format!("{{{}}}", vec!["0.5"; 512].join(", ")));
    let changes = [
        (r#""" : 18"#, r#""" : 20"#),
        ("bool flag)", "bool flag, float unused)"),
        ("float[N,4] y,", "float[M,4] y,"),
        ("{1.0, 2.0, 3.0, 4.0}", "{1.0, 2.0, 3.0, 5.0}"),
        ("float[4,128] weight = {0.5", "float[4,128] weight = {0.25"),
        ("a = Add (same, bias)", "a = Sub (same, bias)"),
        ("by: float = 2.0", "by: float = 3.0"),
    ];
    let changed = changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    let mut changed: Model = changed.parse().unwrap();
    changed.doc_string = Some("some words".to_owned());
    let b = save(&folder, "b.onnx", &changed, Weights::External);
    let diff = |more: &[&str]| {
        let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
        pt2onnx([&["diff", a, b], more].concat())
    };
    let run = diff(&[]);
    assert_eq!((run.code, &*run.stderr), (6, ""));
    insta::assert_snapshot!(run.stdout);
    let with_metadata = diff(&["--metadata"]).stdout;
    let words = "metadata:\n  the model, doc_string: - | some words\n";
    assert!(with_metadata.contains(words), "{with_metadata}");
    let json = diff(&["--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let first = json.pointer("/sections/0/changes/0").unwrap();
    assert_eq!(first.to_string(), r#"{"what":"ai.onnx","a":"18","b":"20"}"#);
    // Without weights they need not be there, and are of the same types.
    fs::remove_file(folder.path().join("a.onnx.data")).unwrap();
    assert_eq!(diff(&[]).code, 3);
    let run = diff(&["--no-weights"]);
    assert!(run.code == 6 && !run.stdout.contains("weights:"), "{run:?}");
    let same = pt2onnx(["diff", b.to_str().unwrap(), b.to_str().unwrap(), "--metadata"]);
    assert_eq!((same.code, &*same.stdout, &*same.stderr), (0, "", ""));
}

/// Strings that are no text.
#[test]
fn diff_of_bytes() {
    let folder = tempdir().unwrap();
    let with = |name: &str, byte: u8| {
        let text = r#"<ir_version: 8, opset_import: ["" : 17, "l" : 1]> g (float[2] x) => (float[2] y) { y = l.f (x) }"#;
        let mut model: Model = text.parse().unwrap();
        let node = model.nodes(Model::MAIN).next().unwrap();
        model[node].attributes.push(("a".into(), Attribute::Bytes(vec![0xFF, byte])));
        save(&folder, name, &model, Weights::Embed)
    };
    let (a, b) = (with("a.onnx", 0xFF), with("b.onnx", 0xFE));
    let run = pt2onnx(["diff", a.to_str().unwrap(), b.to_str().unwrap()]);
    assert!(run.code == 6 && run.stdout.contains("a of y: bytes "), "{run:?}");
}
