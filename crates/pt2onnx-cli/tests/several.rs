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
    let args =
        args.iter().map(|arg| if arg.starts_with('-') { (*arg).to_owned() } else { path(arg) });
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

/// The command's output on a terminal.
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

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn one_report_has_all() {
    let folder = archives();
    let at = |name: &str| folder.path().join(name);
    let option = |name: &str| format!("--report={}", at(name).display());
    let reports = ["all.md", "all.json", "all.html"].map(option);
    let args: Vec<&str> =
        ["a.pt2", "b.pt2", "c.pt2"].into_iter().chain(reports.iter().map(String::as_str)).collect();
    let run = convert(folder.path(), &args);
    assert_eq!(run.code, 4, "{run:?}");
    assert!(run.stderr.ends_with("  mylib::foo: 4 nodes in 1 archive\n"), "{run:?}");
    let all = json(&at("all.json"));
    assert_eq!((&all["archives"], &all["converted"]), (&3.into(), &2.into()));
    let blocker = serde_json::json!({"op": "mylib::foo", "nodes": 4, "archives": 1});
    assert_eq!(all["blockers"], serde_json::json!([blocker]));
    let rows = all["reports"].as_array().unwrap();
    let good: Vec<bool> = rows.iter().map(|r| r["report"]["success"].as_bool().unwrap()).collect();
    assert_eq!(good, [true, false, true]);
    // Each is the report of a conversion: with the file that was written.
    let written = fs::metadata(at("models/c.onnx")).unwrap().len();
    assert_eq!(rows[2]["report"]["model"]["files"][0]["bytes"], written);
    let markdown = fs::read_to_string(at("all.md")).unwrap();
    let (a, b) = (at("a.pt2"), at("b.pt2"));
    for line in [
        "**2 of 3 converted.**",
        &format!("| `{}` | done | 20 | 10 | 1296 | 0 |", a.display()),
        "| `mylib::foo` | 4 | 1 |",
        &format!("## Export of `{}` to ONNX", b.display()),
        "### What prevents conversion: 4",
    ] {
        assert!(markdown.lines().any(|l| l == line), "no {line}: {markdown}");
    }
    let failed = format!("| `{}` | **failed**: `mylib::foo` | | | | |", b.display());
    assert!(markdown.contains(&failed), "{markdown}");
    assert!(!markdown.contains("Text of the"), "{markdown}");
    let page = fs::read_to_string(at("all.html")).unwrap();
    assert!(page.contains("\"kind\":\"reports\""));
    // `check` says the same of each, and writes no model.
    let paths = [a.clone(), b, at("c.pt2")];
    let checked = [Path::new("check"), &paths[0], &paths[1], &paths[2]];
    let report = option("checked.json");
    let run = pt2onnx(checked.iter().map(|p| p.to_str().unwrap()).chain([&*report]));
    assert_eq!(run.code, 4, "{run:?}");
    let checked = json(&at("checked.json"));
    assert_eq!(checked["blockers"], all["blockers"]);
    assert_eq!(checked["reports"][0]["report"]["success"], true);
    assert_eq!(checked["reports"][0]["report"]["model"]["files"], serde_json::json!([]));
}

#[test]
fn a_folder_of_reports_has_those_of_each() {
    let folder = archives();
    let at = |name: &str| folder.path().join(name);
    let reports = format!("--report={}", at("new/reports/").display());
    let run = convert(folder.path(), &["a.pt2", "b.pt2", &reports]);
    assert_eq!(run.code, 4, "{run:?}");
    let names = |folder: &str| files(&at(folder)).into_keys().collect::<Vec<_>>();
    assert_eq!(names("new/reports"), ["a.html", "a.json", "b.html", "b.json"]);
    assert_eq!(json(&at("new/reports/a.json"))["success"], true);
    assert_eq!(json(&at("new/reports/b.json"))["failures"].as_array().unwrap().len(), 4);
    // One archive, and one file: the report of that archive.
    let (a, alone) = (at("a.pt2"), at("alone.json"));
    let run = convert(folder.path(), &["a.pt2", &format!("--report={}", alone.display())]);
    assert_eq!((run.code, &json(&alone)["success"]), (0, &true.into()), "{run:?}");
    let (to, a) = (at("one/m.onnx"), a.to_str().unwrap().to_owned());
    fs::create_dir(at("one")).unwrap();
    let run = pt2onnx([&*a, "-o", to.to_str().unwrap(), "--report", at("one").to_str().unwrap()]);
    assert_eq!(
        (run.code, names("one")),
        (0, ["m.html", "m.json", "m.onnx"].map(Into::into).into())
    );
    let run = pt2onnx(["check", &*a, at("b.pt2").to_str().unwrap(), &reports]);
    assert_eq!((run.code, names("new/reports").len()), (4, 4), "{run:?}");
    assert_eq!(json(&at("new/reports/a.json"))["model"]["files"], serde_json::json!([]));
}

#[test]
fn a_report_for_all_that_cannot_be_written() {
    let folder = archives();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for report in ["none/all.json", "a.pt2/"] {
        let option = format!("--report={}", path(report));
        let run = convert(folder.path(), &["a.pt2", "c.pt2", &option]);
        assert_eq!((run.code, files(folder.path()).len()), (5, 3), "{run:?}");
        let run = pt2onnx(["check", &path("a.pt2"), &path("c.pt2"), &option]);
        assert_eq!((run.code, &*run.stdout), (5, ""), "{run:?}");
    }
    // Nor may it be an archive, or have the name of another report.
    let taken = path("taken.json");
    fs::copy(mlp(), &taken).unwrap();
    let run = pt2onnx(["check", &path("a.pt2"), &taken, "--report", &taken]);
    assert_eq!((run.code, fs::read(&taken).unwrap() == fs::read(mlp()).unwrap()), (2, true));
    fs::create_dir(path("other")).unwrap();
    fs::copy(mlp(), path("other/a.pt2")).unwrap();
    let run = pt2onnx(["check", &path("a.pt2"), &path("other/a.pt2"), "--report", &path("r/")]);
    assert_eq!(
        (run.code, run.stderr.contains("two archives would both have")),
        (2, true),
        "{run:?}"
    );
}

#[test]
fn folders_that_stay_empty_are_removed() {
    let folder = archives();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(at("there")).unwrap();
    for (to, code) in [("new/of/models/", 4), ("there/new/", 4), ("there/", 4)] {
        let run = pt2onnx([&*at("b.pt2"), "-o", &at(to)]);
        assert_eq!(run.code, code, "{run:?}");
    }
    let used = pt2onnx([
        &*at("a.pt2"),
        "-o",
        &at("new/x/"),
        "--weights-file",
        "w",
        "--report",
        &at("r/s/"),
    ]);
    assert_eq!(used.code, 2, "{used:?}");
    let names: Vec<String> = files(folder.path()).into_keys().collect();
    assert_eq!(names, ["a.pt2", "b.pt2", "c.pt2", "there"]);
    assert!(files(Path::new(&at("there"))).is_empty());
}

#[test]
fn no_more_threads_than_archives() {
    let folder = archives();
    let path = folder.path().join("a.pt2");
    // So many threads cannot be started.
    let run = pt2onnx(["check", path.to_str().unwrap(), "--jobs", "4000000000"]);
    assert_eq!((run.code, &*run.stderr), (0, ""), "{run:?}");
}

#[test]
fn the_help_for_an_archive_does_not_overwrite_it() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    fs::copy(mlp(), &path).unwrap();
    let run = pt2onnx(["show", "--types", path.to_str().unwrap()]);
    assert_eq!(run.code, 2, "{run:?}");
    let run = pt2onnx(["run", path.to_str().unwrap()]);
    assert!(run.code == 3 && run.stderr.contains("model.onnx -o OUT.onnx`"), "{run:?}");
}
