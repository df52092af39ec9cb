//! Outputs: complete or not there, never a file that is read, standard output and devices, and text
//! that a terminal is safe from.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[expect(dead_code, reason = "what other tests need")]
mod common;

use common::{Run, command, files, mlp, pt2onnx, with_json};
use pt2onnx::{
    ir::Model,
    read_weights,
    writer::{self, SaveOptions, Weights},
};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
};
use tempfile::{TempDir, tempdir};

/// A model with a weight of so many elements, in `in.onnx` and `in.bin`.
fn model(folder: &TempDir, elements: usize) {
    let values = vec!["0.5"; elements].join(", ");
    let text = format!(
        r#"<ir_version: 9, opset_import: ["" : 20]>
        g (float[{elements}] x) => (float[{elements}] y) <float[{elements}] w = {{{values}}}> {{ y = Add (x, w) }}"#
    );
    let mut model: Model = text.parse().unwrap();
    model.assign_names();
    let options =
        SaveOptions { data_file: Some("in.bin".into()), threshold: 1, ..Weights::External.into() };
    writer::save(&model, folder.path().join("in.onnx"), options).unwrap();
}

/// Runs the command in a folder; words are separated by spaces.
fn run(folder: &TempDir, args: &str) -> Run {
    let output = command().args(args.split(' ')).current_dir(folder.path()).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the command where no file may have more bytes than this.
fn limited(folder: &TempDir, bytes: usize, args: &str) -> Option<i32> {
    let line = format!("trap '' XFSZ; exec prlimit --fsize={bytes}:{bytes} \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &line, env!("CARGO_BIN_EXE_pt2onnx")]).args(args.split(' '));
    command.current_dir(folder.path()).output().unwrap().status.code()
}

/// Wherever writing fails, the command fails, no new file is there, and old ones are as they were.
#[test]
fn writing_that_fails_at_any_byte() {
    let folder = tempdir().unwrap();
    fs::copy(mlp(), folder.path().join("a.pt2")).unwrap();
    model(&folder, 8);
    for (args, outputs, step) in [
        ("optimize in.onnx -o out.onnx", &["out.onnx"][..], 1),
        (
            "optimize in.onnx -o out.onnx --weights external --external-threshold 1",
            &["out.onnx", "out.onnx.data"],
            1,
        ),
        (
            "a.pt2 -o out.onnx --weights external --external-threshold 1 --report r.md --report r.json",
            &["out.onnx", "out.onnx.data", "r.md", "r.json"],
            211,
        ),
        // The report is larger than the model.
        ("a.pt2 -o out.onnx --provenance none --report r.json", &["out.onnx", "r.json"], 211),
        ("apply-weights hollow.onnx --weights a.pt2 -o out.onnx", &["out.onnx"], 307),
    ] {
        assert_eq!(run(&folder, "a.pt2 -o hollow.onnx --weights none").code, 0);
        assert_eq!(run(&folder, args).code, 0);
        let sizes =
            outputs.iter().map(|name| fs::metadata(folder.path().join(name)).unwrap().len());
        let most = usize::try_from(sizes.max().unwrap()).unwrap();
        for name in outputs {
            fs::remove_file(folder.path().join(name)).unwrap();
        }
        let empty = files(folder.path());
        for old in [false, true] {
            if old {
                outputs.iter().for_each(|name| fs::write(folder.path().join(name), name).unwrap());
            }
            let mut before = files(folder.path());
            before.retain(|name, _| !name.starts_with("r."));
            // Reports have times, so that their sizes differ a little.
            let last = if args.contains("--report") { most - 20 } else { most - 1 };
            for bytes in (0..last.min(3000)).step_by(step).chain([most - most / 10, last]) {
                assert_eq!(limited(&folder, bytes, args), Some(5), "{bytes} bytes: {args}");
                let mut after = files(folder.path());
                // There is a report of a failure, too, where it has space.
                after.retain(|name, _| !name.starts_with("r."));
                assert!(after == before, "{bytes} bytes: {args}: {:?}", after.keys());
            }
        }
        assert_eq!(run(&folder, args).code, 0);
        for name in outputs {
            fs::remove_file(folder.path().join(name)).unwrap();
        }
        assert!(files(folder.path()) == empty, "{args}");
    }
}

/// A file that is read at several places cannot be a pipe; opening one would wait for ever.
#[test]
fn pipes_are_no_files() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    model(&folder, 8);
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    for args in [
        "pipe -o out.onnx",
        "inspect pipe",
        "check pipe",
        "show pipe",
        "diff pipe in.onnx",
        "optimize pipe -o out.onnx",
        "apply-weights in.onnx --weights pipe",
        "run pipe",
        "run in.onnx --inputs pipe",
    ] {
        let run = run(&folder, args);
        assert_eq!(run.code, 3, "{args}: {run:?}");
        assert!(
            run.stderr.contains("this is not a file") || run.stdout.contains("this is not a file"),
            "{args}: {run:?}"
        );
    }
    // Texts are read once.
    fs::copy(mlp(), at("a.pt2")).unwrap();
    let words = "printf 'opset = 18' | \"$0\" a.pt2 -o out.onnx --options /dev/stdin";
    let piped = Command::new("sh")
        .args(["-c", words, env!("CARGO_BIN_EXE_pt2onnx")])
        .current_dir(folder.path())
        .status();
    assert!(piped.unwrap().success());
    let endless = run(&folder, "a.pt2 -o out.onnx --options /dev/zero");
    assert!(endless.code == 3 && endless.stderr.contains("it has more than 64 MiB"), "{endless:?}");
}

/// Data that are read or linked are of use, whatever they are called.
#[test]
fn data_of_an_earlier_export_are_told_of() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    model(&folder, 300);
    assert_eq!(run(&folder, "optimize in.onnx -o out.onnx --weights external").code, 0);
    let of_use = run(&folder, "optimize out.onnx -o out.onnx --weights embed");
    assert_eq!((of_use.code, &*of_use.stderr), (0, ""));
    let left = run(&folder, "optimize in.onnx -o out.onnx");
    assert!(left.stderr.contains("out.onnx.data is of an earlier export"), "{left:?}");
    fs::copy(mlp(), at("m.onnx.data")).unwrap();
    let linked = run(&folder, "m.onnx.data -o m.onnx --weights link --external-threshold 0");
    assert_eq!((linked.code, &*linked.stderr), (0, ""));
}

#[test]
fn no_report_no_model() {
    let folder = tempdir().unwrap();
    symlink("/dev/full", folder.path().join("r.md")).unwrap();
    let out = folder.path().join("m.onnx");
    let report = folder.path().join("r.md");
    let model = mlp();
    let args = [&*model, Path::new("-o"), &out, Path::new("--report"), &report];
    let failed = pt2onnx(args);
    assert!(failed.code == 5 && !out.exists(), "{failed:?}");
    fs::write(&out, "old").unwrap();
    assert_eq!(pt2onnx(args).code, 5);
    assert_eq!(fs::read(&out).unwrap(), b"old");
}

#[test]
fn files_that_are_read_stay() {
    let folder = tempdir().unwrap();
    model(&folder, 500);
    let at = |name: &str| folder.path().join(name);
    fs::copy(mlp(), at("a.pt2")).unwrap();
    let hollow = run(&folder, "a.pt2 -o hollow.onnx --weights none");
    assert_eq!(hollow.code, 0, "{hollow:?}");
    fs::write(at("o.toml"), "opset = 20\n").unwrap();
    for (name, link) in
        [("in.bin", "bin"), ("in.onnx", "onnx"), ("a.pt2", "pt2"), ("o.toml", "toml")]
    {
        fs::hard_link(at(name), at(&format!("hard.{link}"))).unwrap();
        symlink(name, at(&format!("soft.{link}"))).unwrap();
    }
    symlink("a.pt2", at("a.md")).unwrap();
    symlink("in.onnx", at("in.md")).unwrap();
    let before = files(folder.path());
    for args in [
        "optimize in.onnx -o out.onnx --weights external --weights-file in.bin",
        "optimize in.onnx -o out.onnx --weights external --weights-file hard.bin",
        "optimize in.onnx -o out.onnx --weights external --weights-file soft.bin",
        "optimize in.onnx -o in.bin",
        "optimize in.onnx -o hard.bin",
        "optimize in.onnx -o soft.bin",
        "optimize in.onnx -o hard.onnx",
        "a.pt2 -o a.pt2",
        "a.pt2 -o hard.pt2",
        "a.pt2 -o soft.pt2",
        "a.pt2 -o m.onnx --weights external --weights-file hard.pt2",
        "a.pt2 -o m.onnx --report a.md",
        "a.pt2 -o m.onnx --options o.toml --report hard.md",
        "a.pt2 -o hard.toml --options o.toml",
        "a.pt2 -o x.md --report x.md",
        "a.pt2 -o in.onnx --report in.md",
        "apply-weights hollow.onnx --weights a.pt2 -o a.pt2",
        "apply-weights hollow.onnx --weights a.pt2 -o hard.pt2",
        "apply-weights hollow.onnx --weights a.pt2 -o x --to external --external-threshold 1 --weights-file soft.pt2",
    ] {
        if args.ends_with("hard.md") {
            fs::hard_link(at("o.toml"), at("hard.md")).unwrap();
        }
        let refused = run(&folder, args);
        let _ = fs::remove_file(at("hard.md"));
        assert!(
            refused.code == 2 && refused.stderr.contains("would overwrite"),
            "{args}: {refused:?}"
        );
        assert!(
            refused.stderr.contains("help: give another name with --")
                || refused.stderr.contains("with -o")
        );
        assert!(files(folder.path()) == before, "{args}");
    }
    // An ONNX model may take its own place, also by a link to it.
    assert_eq!(run(&folder, "optimize soft.onnx -o in.onnx").code, 0);
    assert_eq!(run(&folder, "apply-weights hollow.onnx --weights a.pt2").code, 0);
    assert!(fs::read(at("hard.onnx")).unwrap() == before["in.onnx"]);
}

#[test]
fn standard_output_and_devices() {
    let folder = tempdir().unwrap();
    fs::copy(mlp(), folder.path().join("a.pt2")).unwrap();
    assert_eq!(run(&folder, "a.pt2 -o m.onnx").code, 0);
    let expected = fs::read(folder.path().join("m.onnx")).unwrap();
    for args in ["a.pt2 -o -", "a.pt2 -o /dev/stdout", "optimize m.onnx -o - --optimize 0"] {
        let mut command = command();
        let output = command.args(args.split(' ')).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert!(args.contains("optimize") || output.stdout == expected, "{args}");
        writer::from_bytes(output.stdout).unwrap();
        // To a file, behind what it has.
        let log = folder.path().join("log");
        fs::write(&log, "before").unwrap();
        let file = fs::File::options().append(true).open(&log).unwrap();
        let mut command = common::command();
        let status = command.args(args.split(' ')).current_dir(folder.path()).stdout(file).status();
        assert!(status.unwrap().success());
        assert!(fs::read(&log).unwrap().starts_with(b"before"));
        assert!(fs::read(&log).unwrap().len() > 1000);
        fs::remove_file(&log).unwrap();
        // A full disk, and a reader that goes away: the model was not delivered.
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        for stdout in [Stdio::from(full), Stdio::from(writer)] {
            let mut command = common::command();
            let output = command
                .args(args.split(' '))
                .current_dir(folder.path())
                .stdout(stdout)
                .output()
                .unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(5), "{stderr}");
            assert!(stderr.contains("  standard output\n"), "{stderr}");
        }
    }
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
    assert_eq!(run(&folder, "a.pt2 -o /dev/null --report r.md").code, 0);
    assert!(!fs::metadata("/dev/null").unwrap().is_file() && folder.path().join("r.md").exists());
    for more in ["--weights external", "--weights link", "--weights-file w", "--shard-size 1MB"] {
        let refused = run(&folder, &format!("a.pt2 -o - {more}"));
        assert!(refused.code == 2 && refused.stdout.is_empty(), "{more}: {refused:?}");
        assert!(refused.stderr.contains("help: "), "{refused:?}");
    }
    // A report that cannot be written: no model either.
    let refused = run(&folder, "a.pt2 -o - --report none/r.md");
    assert!(refused.code == 5 && refused.stdout.is_empty(), "{refused:?}");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    assert_eq!(command().arg("--help").stdout(full).output().unwrap().status.code(), Some(5));
}

#[test]
fn links_and_modes_stay() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::copy(mlp(), at("a.pt2")).unwrap();
    fs::write(at("real.onnx"), "old").unwrap();
    fs::set_permissions(at("real.onnx"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("real.onnx", at("link.onnx")).unwrap();
    assert_eq!(run(&folder, "a.pt2 -o link.onnx").code, 0);
    assert!(fs::symlink_metadata(at("link.onnx")).unwrap().is_symlink());
    let real = fs::metadata(at("real.onnx")).unwrap();
    assert!(real.len() > 1000 && real.permissions().mode() & 0o777 == 0o600);
    fs::set_permissions(at("real.onnx"), fs::Permissions::from_mode(0o400)).unwrap();
    let before = files(folder.path());
    let refused = run(&folder, "a.pt2 -o link.onnx --opset 18");
    assert!(refused.code == 5 && refused.stderr.contains("read-only"), "{refused:?}");
    assert!(files(folder.path()) == before);
}

/// Names with escape sequences, in archives and in models, in whatever the command prints.
#[test]
fn terminals_are_safe_from_names() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // As JSON has them: an input's name, an unknown op, a line of the user's.
    let evil = r"\u001b]0;owned\u0007\u009b2J\u202e\n";
    let text = with_json(&mlp(), "tensor_x", &format!("tensor_x{evil}"));
    fs::write(at("name.pt2"), text).unwrap();
    let op = "torch.ops.aten.sigmoid.default";
    fs::write(at("op.pt2"), with_json(&mlp(), op, &format!("torch.ops.my.foo{evil}.default")))
        .unwrap();
    let mut model: Model = "<ir_version: 9, opset_import: [\"\" : 20, \"d\" : 1]> g (float[2] x) => (float[2] y) { z = d.Strange (x) y = Relu (z) }"
        .parse()
        .unwrap();
    let evil = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}";
    for value in model.inputs().to_vec() {
        model[value].name = Some(format!("x{evil}").into());
    }
    model.assign_names();
    writer::save(&model, at("m.onnx"), Weights::Auto).unwrap();
    fs::write(at("n.onnx"), writer::to_bytes(&"<ir_version: 9, opset_import: [\"\" : 20]> g (float[2] x) => (float[2] y) { y = Relu (x) }".parse().unwrap()).unwrap()).unwrap();
    let mut seen = 0;
    for args in [
        "inspect name.pt2",
        "inspect --json name.pt2",
        "inspect op.pt2",
        "check op.pt2",
        "check --json op.pt2",
        "op.pt2 -o o.onnx --report r.md --report r.json",
        "name.pt2 -o o.onnx -v --input-names a,b,c,d --report r.md",
        "show m.onnx",
        "show --dot m.onnx",
        "diff m.onnx n.onnx",
        "diff --json m.onnx n.onnx",
        "optimize m.onnx -o o.onnx -v",
        "apply-weights m.onnx --weights name.pt2",
    ] {
        let run = run(&folder, args);
        let mut all = run.stdout.clone() + &run.stderr;
        for report in ["r.md", "r.json"] {
            all += &fs::read_to_string(at(report)).unwrap_or_default();
        }
        let bad = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
        assert_eq!(all.chars().find(bad), None, "{args}: {all:?}");
        seen += usize::from(all.contains("owned"));
    }
    assert!(seen >= 10, "{seen}");
    // The output of `show` is still the same model.
    let shown: Model = run(&folder, "show m.onnx").stdout.parse().unwrap();
    assert_eq!(shown.to_string(), model.to_string());
}

#[test]
fn long_names_are_cut_in_messages() {
    let folder = tempdir().unwrap();
    let long = "x".repeat(5000);
    let archive = with_json(
        &mlp(),
        "torch.ops.aten.sigmoid.default",
        &format!("torch.ops.my.{long}.default"),
    );
    fs::write(folder.path().join("a.pt2"), archive).unwrap();
    let run = run(&folder, "a.pt2 -o m.onnx");
    assert!(run.code == 4 && run.stderr.contains(" characters cut)..."), "{run:?}");
    assert!(!run.stderr.contains(&"x".repeat(300)));
}

/// The output of `show` and `diff` for people is cut, and that for programs is whole.
#[test]
fn long_names_are_cut_in_models() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let long = "x".repeat(5000);
    let text = "<ir_version: 9, opset_import: [\"\" : 20]> g (float[2] x) => (float[2] y) { y = Relu (x) }";
    let mut model: Model = text.parse().unwrap();
    writer::save(&model, at("n.onnx"), Weights::Auto).unwrap();
    let input = model.inputs()[0];
    model[input].name = Some(long.as_str().into());
    writer::save(&model, at("m.onnx"), Weights::Auto).unwrap();
    for args in ["show m.onnx", "show --types m.onnx", "show --dot m.onnx", "diff m.onnx n.onnx"] {
        let shown = run(&folder, args).stdout;
        assert!(shown.contains("x...(4"), "{args}: {shown}");
        assert!(!shown.contains(&"x".repeat(257)), "{args}: {shown}");
    }
    for args in [
        "show --no-truncate m.onnx",
        "show --no-truncate --dot m.onnx",
        "diff --json m.onnx n.onnx",
    ] {
        assert!(run(&folder, args).stdout.contains(&long), "{args}");
    }
    let whole: Model = run(&folder, "show --no-truncate m.onnx").stdout.parse().unwrap();
    assert_eq!(whole.to_string(), model.to_string());
}

/// Errors, warnings and texts have the same escapes.
#[test]
fn escapes_are_the_same_everywhere() {
    let folder = tempdir().unwrap();
    let mut model: Model = "<ir_version: 9, opset_import: [\"\" : 20]> g (float[2] x) => (float[2] y) { y = Relu (x) }"
        .parse()
        .unwrap();
    let input = model.inputs()[0];
    model[input].name = Some("x\u{1b}\n".into());
    model.assign_names();
    writer::save(&model, folder.path().join("m\u{1b}.onnx"), Weights::Auto).unwrap();
    fs::write(folder.path().join("n\u{1b}.onnx.data"), "").unwrap();
    let of = |args| run(&folder, args);
    assert!(of("show m\u{1b}.onnx").stdout.contains(r#"float[2] "x\u{1b}\u{a}""#));
    let warned = of("optimize m\u{1b}.onnx -o n\u{1b}.onnx").stderr;
    assert!(warned.starts_with(r"warning: n\u{1b}.onnx.data is of an earlier export"), "{warned}");
    let failed = of("show o\u{1b}.onnx").stderr;
    assert!(failed.contains(r"  o\u{1b}.onnx"), "{failed}");
}

#[test]
fn an_optimiser_that_changed_nothing_says_so() {
    let folder = tempdir().unwrap();
    model(&folder, 8);
    let told = run(&folder, "optimize in.onnx -o out.onnx --explain");
    assert_eq!((told.code, &*told.stderr), (0, "no pass changed anything\n"));
}

/// One of several archives is named once.
#[test]
fn an_error_names_the_archive_once() {
    let folder = tempdir().unwrap();
    let failed = run(&folder, "a.pt2 b.pt2 -o models/").stderr;
    assert_eq!(failed.matches("a.pt2").count(), 1, "{failed}");
}

#[test]
fn weights_that_the_model_does_not_use() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::copy(mlp(), at("a.pt2")).unwrap();
    let extra = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors/weights/bias.safetensors");
    fs::copy(extra, at("bias.safetensors")).unwrap();
    let name = read_weights(at("bias.safetensors")).unwrap().keys().next().unwrap().clone();
    model(&folder, 8);
    let before = files(folder.path());
    let refused = run(&folder, "apply-weights in.onnx --weights bias.safetensors");
    assert!(
        refused.code == 4 && refused.stderr.contains(&format!("weight `{name}`: ")),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("--allow-unused") && files(folder.path()) == before);
    let done = run(
        &folder,
        "apply-weights in.onnx --weights bias.safetensors --allow-unused -v -o out.onnx",
    );
    assert!(done.code == 0 && done.stderr.contains(&name), "{done:?}");
    // The archive's own weights are right for the model that was made from it.
    assert_eq!(run(&folder, "a.pt2 -o h.onnx --weights none").code, 0);
    assert_eq!(run(&folder, "apply-weights h.onnx --weights a.pt2 -o f.onnx").code, 0);
    assert_eq!(run(&folder, "apply-weights f.onnx --weights a.pt2 -o g.onnx").code, 0);
}

#[test]
fn a_name_that_is_too_long_is_one_error() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let report = path(&("x".repeat(260) + ".json"));
    let model = mlp();
    let run = pt2onnx([model.to_str().unwrap(), "-o", &path("m.onnx"), "--report", &report]);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.starts_with("error: ") && !run.stderr.contains("warning"), "{run:?}");
    assert!(files(folder.path()).is_empty());
}
