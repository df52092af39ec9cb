//! Text cases: sessions of a shell, and what they print.
//!
//! Each `*.txt` below this folder is one test. Its commands run one after another in a new folder:
//!
//! ```text
//! # A comment.
//! == onnx m.onnx
//! <ir_version: 9, opset_import: ["" : 20]> g (float[2] x) => (float[2] y) { y = Relu (x) }
//!
//! $ pt2onnx show m.onnx | grep Relu
//!   y = Relu (x)
//! $ pt2onnx show none.onnx
//! exit code 3
//! ! error: ...
//! ```
//!
//! - `== KIND NAME` writes a file, see [`inputs`].
//! - `$ ` begins a line of `sh`, `> ` continues it. `$MLP` is `testdata/models/mlp.pt2`, `$ROOT`
//!   the repository, `$FX` and `$TS` the archives of the tests of `pt2onnx-fx` and
//!   `pt2onnx-torchscript`, `$DATA` the folder `data` beside this file. `at POINTER..` prints
//!   values of the JSON on standard input, `page FILE` the JSON in a page.
//! - Then stand the exit code if it is not 0, standard output, and standard error behind `! `.
//!   A line `...` stands for any lines, `[..]` for any text in a line. A line of standard output
//!   that looks as if it began something else has a backslash before it.
//!
//! The sessions in documentation run as well: the blocks `console` of README.md, `docs` and
//! `testdata/seeds`. `UPDATE_CASES=1` writes what comes out into the case files.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail so")]

#[expect(dead_code, reason = "what other tests need")]
#[path = "../common/mod.rs"]
mod common;
mod errors;
mod inputs;
mod session;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use session::Folder;
use std::{
    env, fs,
    io::{Read, Write, stdin, stdout},
    path::{Path, PathBuf},
};

/// The paths in a folder and below that have this ending.
fn below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(below(&entry, ending));
        } else if entry.extension().is_some_and(|e| e == ending) {
            found.push(entry);
        }
    }
    found.sort();
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Runs a case file. Those of errors leave no file behind, and print nothing to standard output.
fn case(file: &Path) -> Result<(), Failed> {
    let expected = fs::read_to_string(file).unwrap();
    let errors = file.parent().unwrap().ends_with("errors");
    let folder = Folder::new();
    let (mut made, mut wrong) = (String::new(), String::new());
    for part in session::parts(&expected) {
        let mut output = part.body.to_owned();
        if let Some(head) = part.head.strip_prefix("== ") {
            inputs::write(head.trim_end(), part.body, folder.path());
        } else if let Some(command) = part.command() {
            let before = errors.then(|| common::files(folder.path()));
            let ran = folder.run(&command);
            if let Some(before) = before.filter(|_| ran.code != 0) {
                assert!(common::files(folder.path()) == before, "{command} changed files");
                assert!(ran.stdout.is_empty(), "{command} prints {}", ran.stdout);
            }
            let printed = ran.printed();
            if !session::fits(&output, &printed) {
                wrong += &format!("$ {command}\n{printed}--- expected\n{output}\n");
                output = printed;
            }
        }
        made += &format!("{}{output}{}", part.head, part.tail);
    }
    if wrong.is_empty() {
        return Ok(());
    }
    if env::var_os("UPDATE_CASES").is_some() {
        return Ok(fs::write(file, made)?);
    }
    Err(format!("{}:\n{wrong}", file.display()).into())
}

/// Replays the sessions of a page in a new folder with these files, under these names. Both outputs
/// are shown there, and no exit code.
fn replay(page: &Path, files: &[(PathBuf, &str)]) -> Result<(), Failed> {
    let folder = Folder::new();
    for (file, name) in files {
        fs::copy(file, folder.path().join(name)).unwrap();
    }
    let mut wrong = String::new();
    for (command, output) in session::blocks(&fs::read_to_string(page).unwrap()) {
        let ran = folder.run(&command);
        let printed = ran.stdout + &ran.stderr;
        if !session::fits(&output, &printed) {
            wrong += &format!("$ {command}\n{printed}--- expected\n{output}\n");
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{}:\n{wrong}", page.display()).into()) }
}

fn trials() -> Vec<Trial> {
    let root = root();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let named = |path: &Path, folder: &Path| {
        path.strip_prefix(folder).unwrap().with_extension("").display().to_string()
    };
    let mut trials: Vec<Trial> = below(&own, "txt")
        .into_iter()
        .map(|file| Trial::test(named(&file, &own), move || case(&file)))
        .collect();
    let sessions = |page: &PathBuf| fs::read_to_string(page).unwrap().contains("```console\n$ ");
    let mut page = |page: PathBuf, files: Vec<(PathBuf, &'static str)>| {
        trials.push(Trial::test(named(&page, &root), move || replay(&page, &files)));
    };
    let examples = [
        (root.join("testdata/models/mlp.pt2"), "model.pt2"),
        (root.join("crates/pt2onnx-fx/tests/data/checks.pt2"), "checks.pt2"),
    ];
    let docs = below(&root.join("docs"), "md").into_iter().chain([root.join("README.md")]);
    for path in docs.filter(sessions) {
        page(path, examples.to_vec());
    }
    for path in below(&root.join("testdata/seeds"), "md").into_iter().filter(sessions) {
        page(path, inputs::seeds());
    }
    trials.extend(errors::trials());
    trials.push(Trial::test("other_output_is_found", session::other_output_is_found));
    trials
}

/// Prints the values at these pointers of the JSON on standard input.
fn at(pointers: impl Iterator<Item = String>) {
    let mut text = String::new();
    stdin().read_to_string(&mut text).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let value = |pointer: String| json.pointer(&pointer).map_or("nothing".into(), Value::to_string);
    let values: String = pointers.map(|pointer| value(pointer) + "\n").collect();
    stdout().write_all(values.as_bytes()).unwrap();
}

fn main() {
    let mut args = env::args().skip(1).peekable();
    if args.next_if_eq("at").is_some() {
        return at(args);
    }
    libtest_mimic::run(&Arguments::from_args(), trials()).exit();
}
