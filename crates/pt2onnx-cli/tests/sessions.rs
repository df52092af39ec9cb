//! The terminal sessions of README.md and the pages are replayed.
//!
//! A session is a block `console`: lines that begin with `$ ` are commands, the others what they
//! print. A line `...` stands for any lines, `[..]` for any text in a line. The sessions of a page
//! run one after another in one folder, which has `model.pt2`, a copy of `testdata/models/mlp.pt2`;
//! those of `testdata/seeds` have the archives beside them. After `$ echo $?` stands the exit code
//! of the command before it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail so")]

#[expect(dead_code, reason = "what other tests need")]
mod common;

use common::{command, mlp};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};
use tempfile::{TempDir, tempdir};

/// A command, and the lines that it shall print.
struct Step {
    line: String,
    expected: Vec<String>,
}

/// The commands of a page's sessions.
fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut inside): (Vec<Step>, bool) = (Vec::new(), false);
    for line in page.lines() {
        match (line.trim_end(), inside) {
            ("```console", _) => inside = true,
            ("```", true) => inside = false,
            (text, true) => match (text.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => {
                    steps.push(Step { line: command.to_owned(), expected: Vec::new() });
                }
                (None, Some(step)) => step.expected.push(text.to_owned()),
                (None, None) => panic!("a session begins without a command: {text}"),
            },
            _ => {}
        }
    }
    steps
}

/// Whether lines are the expected ones.
fn fits(expected: &[String], lines: &[&str]) -> bool {
    match (expected.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "..." => {
            (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..]))
        }
        (Some((first, rest)), Some((line, lines))) => fits_line(first, line) && fits(rest, lines),
        _ => false,
    }
}

fn fits_line(expected: &str, line: &str) -> bool {
    match expected.split_once("[..]") {
        None => expected == line,
        Some((start, rest)) => line.strip_prefix(start).is_some_and(|line| {
            let mut ends = line.char_indices().map(|(i, _)| i).chain([line.len()]);
            ends.any(|end| fits_line(rest, &line[end..]))
        }),
    }
}

/// The output of a command, and its exit code.
fn run(line: &str, folder: &Path) -> (String, i32) {
    let words = shlex(line);
    let Some(("pt2onnx", args)) = words.split_first().map(|(first, rest)| (&**first, rest)) else {
        panic!("only pt2onnx can be replayed: {line}");
    };
    let output = command().args(args).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout) + &text(output.stderr), output.status.code().unwrap())
}

/// Words as a shell splits them; quotes of both kinds.
fn shlex(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (_, Some(q)) if c == q => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The pages in a folder of the repository.
fn pages(folder: &str) -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join(folder)).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.sort();
    pages
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Replays pages, each in a separate folder. Returns how many commands there are; fails with all
/// that print something else.
fn replay(pages: &[PathBuf], new_folder: impl Fn() -> TempDir) -> usize {
    let (mut wrong, mut count) = (String::new(), 0);
    for page in pages {
        let folder = new_folder();
        let mut code = 0;
        for Step { line, expected } in steps(&fs::read_to_string(page).unwrap()) {
            count += 1;
            let printed = match &*line {
                "echo $?" => code.to_string(),
                _ => {
                    let (printed, ended) = run(&line, folder.path());
                    code = ended;
                    printed
                }
            };
            let lines: Vec<&str> = printed.lines().map(str::trim_end).collect();
            if !fits(&expected, &lines) {
                wrong += &format!("{}: `{line}` prints\n{printed}\n", page.display());
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    count
}

#[test]
fn sessions_print_what_the_pages_show() {
    let mut pages = pages("docs");
    pages.push(root().join("README.md"));
    let count = replay(&pages, || {
        let folder = tempdir().unwrap();
        fs::copy(mlp(), folder.path().join("model.pt2")).unwrap();
        let checks = root().join("crates/pt2onnx-fx/tests/data/checks.pt2");
        fs::copy(checks, folder.path().join("checks.pt2")).unwrap();
        folder
    });
    assert!(count >= 8, "sessions are not found: {count}");
}

/// The archives of `testdata/seeds`, unpacked.
fn seeds() -> TempDir {
    let archives = tempdir().unwrap();
    let bundle = File::open(root().join("testdata/seeds/archives.tar.zst")).unwrap();
    let stream = ruzstd::decoding::StreamingDecoder::new(bundle).unwrap();
    tar::Archive::new(stream).unpack(archives.path()).unwrap();
    archives
}

#[test]
fn the_examples_of_the_seeds() {
    let archives = seeds();
    let count = replay(&pages("testdata/seeds"), || {
        let folder = tempdir().unwrap();
        for entry in fs::read_dir(archives.path()).unwrap() {
            let path = entry.unwrap().path();
            fs::hard_link(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
        folder
    });
    assert!(count >= 50, "sessions are not found: {count}");
}

/// Statements of the section "Metadata" of the first page about nodes, models, inputs and outputs.
#[test]
fn the_metadata_of_the_first_seed() {
    let archives = seeds();
    for (archive, properties) in [
        (
            "simple_add",
            &[
                ("namespace", "__main__.SimpleAddModel/add: aten.add.Tensor"),
                (
                    "pkg.torch.onnx.class_hierarchy",
                    "['__main__.SimpleAddModel', 'aten.add.Tensor']",
                ),
                ("pkg.torch.onnx.name_scopes", "['', 'add']"),
                ("pkg.torch.onnx.stack_trace", "in forward\n    return torch.add(x, y)"),
            ][..],
        ),
        (
            "mlp",
            &[
                (
                    "pkg.torch.onnx.fx_node",
                    "%cat : [num_users=1] = call_function[target=torch.ops.aten.cat.default](args = \
                     ([%tensor_x, %input_dict_tensor_x, %input_list_0], 1), kwargs = {})",
                ),
                (
                    "pkg.torch.export.ExportedProgram.graph_signature",
                    "PARAMETER target='fc1.weight'",
                ),
                ("pkg.torch.export.ExportedProgram.range_constraints", "VR[0, int_oo]"),
                ("pkg.torch.export.graph_signature.InputSpec.kind", "USER_INPUT"),
                ("pkg.torch.export.graph_signature.InputSpec.kind", "PARAMETER"),
                ("pkg.torch.export.graph_signature.OutputSpec.kind", "USER_OUTPUT"),
                ("pkg.torch.onnx.original_node_name", "fc1.weight"),
            ],
        ),
    ] {
        let model = archives.path().join("model.onnx");
        let run = common::convert(&archives.path().join(archive).with_extension("pt2"), &model);
        assert_eq!(run.code, 0, "{run:?}");
        let model = fs::read(model).unwrap();
        let text = String::from_utf8_lossy(&model);
        for (key, value) in properties {
            // In the file, a value stands behind its key.
            let values = text.split(key).skip(1).map(|rest| rest.chars().take(6000).collect());
            assert!(values.into_iter().any(|rest: String| rest.contains(value)), "{key}: {value}");
        }
    }
}

#[test]
fn other_output_is_found() {
    let page =
        "a\n```console\n$ pt2onnx a 'b c'\none\n...\nlast [..] of [..]\n$ echo $?\n6\n```\nb\n";
    let steps = steps(page);
    assert_eq!(steps.iter().map(|s| &*s.line).collect::<Vec<_>>(), ["pt2onnx a 'b c'", "echo $?"]);
    assert_eq!(shlex(&steps[0].line), ["pt2onnx", "a", "b c"]);
    for (lines, same) in [
        (&["one", "last 1 of 2"][..], true),
        (&["one", "two", "three", "last 1 of 2"], true),
        (&["one", "two"], false),
        (&["two", "last 1 of 2"], false),
        (&["one", "last 1 of 2", "more"], false),
        (&["one", "last 1"], false),
        (&[], false),
    ] {
        assert_eq!(fits(&steps[0].expected, lines), same, "{lines:?}");
    }
}
