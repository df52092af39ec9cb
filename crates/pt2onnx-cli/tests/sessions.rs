//! The terminal sessions of README.md and the pages are replayed.
//!
//! A session is a block `console`: lines that begin with `$ ` are commands, the others what they print. A line `...` stands for any
//! lines, `[..]` for any text in a line. The sessions of a page run one after another in one folder, which has `model.pt2`,
//! a copy of `testdata/models/mlp.pt2`. After `$ echo $?` stands the exit code of the command before it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail so")]

#[expect(dead_code, reason = "what other tests need")]
mod common;

use common::{command, mlp};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::tempdir;

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

/// What a command prints, and its exit code.
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

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

#[test]
fn sessions_print_what_the_pages_show() {
    let mut wrong = String::new();
    let mut count = 0;
    for page in pages() {
        let folder = tempdir().unwrap();
        fs::copy(mlp(), folder.path().join("model.pt2")).unwrap();
        let mut code = 0;
        for Step { line, expected } in steps(&fs::read_to_string(&page).unwrap()) {
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
    assert!(count >= 8, "sessions are not found: {count}");
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
