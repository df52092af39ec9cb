//! Several archives, and what a terminal shows.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]
mod common;

use common::{Run, command, files, mlp, pt2onnx, with_json};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};
use tempfile::{TempDir, tempdir};

/// A folder with two archives that can be converted, and one that cannot.
fn archives() -> TempDir {
    let folder = tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::copy(mlp(), file("a.pt2")).unwrap();
    fs::copy(mlp(), file("c.pt2")).unwrap();
    let unknown =
        with_json(&mlp(), "torch.ops.aten.sigmoid.default", "torch.ops.mylib.foo.default");
    fs::write(file("b.pt2"), unknown).unwrap();
    folder
}

fn models(folder: &Path) -> Vec<String> {
    files(&folder.join("models")).into_keys().collect()
}

fn convert(folder: &Path, args: &[&str]) -> Run {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let args = args.iter().map(|arg| match arg.starts_with('-') {
        true => (*arg).to_owned(),
        false => path(arg),
    });
    pt2onnx(args.chain(["-o".to_owned(), path("models/")]))
}

#[test]
fn one_that_fails_does_not_stop_the_others() {
    let folder = archives();
    let run = convert(folder.path(), &["a.pt2", "b.pt2", "c.pt2"]);
    assert_eq!((run.code, &*run.stdout), (4, ""), "{run:?}");
    assert_eq!(models(folder.path()), ["a.onnx", "c.onnx"]);
    assert!(run.stderr.contains("b.pt2: 4 nodes of the program cannot be translated"), "{run:?}");
    let end = "2 of 3 archives converted\n  mylib::foo: 4 nodes in 1 archive\n";
    assert!(run.stderr.ends_with(end), "{run:?}");
}

#[test]
fn patterns_and_json() {
    let folder = archives();
    let run = convert(folder.path(), &["*.pt2", "--json", "--quiet", "--jobs=1"]);
    assert_eq!(run.code, 4, "{run:?}");
    let all: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let converted: Vec<bool> =
        all.as_array().unwrap().iter().map(|v| v["converts"].as_bool().unwrap()).collect();
    assert_eq!(converted, [true, false, true]);
}

#[test]
fn all_well_is_quiet() {
    let folder = archives();
    let run = convert(folder.path(), &["a.pt2", "c.pt2"]);
    assert_eq!((run.code, &*run.stdout, &*run.stderr), (0, "", ""));
    assert_eq!(models(folder.path()), ["a.onnx", "c.onnx"]);
    let one = fs::read(folder.path().join("models/a.onnx")).unwrap();
    let alone = folder.path().join("alone.onnx");
    common::convert(&folder.path().join("a.pt2"), &alone);
    assert!(one == fs::read(alone).unwrap());
}

#[test]
fn check_sums_up() {
    let folder = archives();
    let run = pt2onnx(["check".as_ref(), folder.path().join("*.pt2").as_os_str()]);
    let end = "2 of 3 archives can be converted\n  mylib::foo: 4 nodes in 1 archive\n";
    assert_eq!(run.code, 4);
    assert!(run.stdout.ends_with(end), "{run:?}");
}

#[test]
fn alone_it_prints_its_help() {
    let run = pt2onnx([""; 0]);
    assert_eq!((run.code, &*run.stdout), (2, ""));
    assert!(run.stderr.contains("Usage: pt2onnx [OPTIONS] MODEL.pt2 -o OUT.onnx"), "{run:?}");
}

/// What the command prints to a terminal.
fn on_terminal(args: &[&str]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let status = command().args(args).stderr(open()).status().unwrap();
    assert!(status.success());
    let (mut shown, mut bytes) = (Vec::new(), [0; 4096]);
    let mut terminal = File::from(terminal);
    // The end of a terminal that nobody has open is an error.
    while let Ok(read @ 1..) = terminal.read(&mut bytes) {
        shown.extend_from_slice(&bytes[..read]);
    }
    String::from_utf8(shown).unwrap()
}

#[test]
fn a_terminal_shows_one_line() {
    let folder = tempdir().unwrap();
    let (model, output) = (mlp(), folder.path().join("m.onnx"));
    let args = [model.to_str().unwrap(), "-o", output.to_str().unwrap()];
    let shown = on_terminal(&args);
    let line = shown.trim_end().strip_prefix(output.to_str().unwrap()).unwrap();
    let parts: Vec<&str> = line.split(", ").collect();
    assert_eq!((parts.len(), parts[0], parts[2]), (4, ": 10 nodes", "opset 20"), "{shown}");
    assert!(parts[1].ends_with("KiB") && parts[3].ends_with(" s"), "{shown}");
    assert_eq!(on_terminal(&[args[0], args[1], args[2], "-q"]), "");
}
