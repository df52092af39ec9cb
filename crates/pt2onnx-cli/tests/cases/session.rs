//! Sessions of a shell: their text, and how they run.

use crate::{common::Run, root};
use libtest_mimic::Failed;
use std::{cell::Cell, env, fs, path::Path, process::Command};
use tempfile::{TempDir, tempdir};

/// A comment, a file or a command of a case file.
pub struct Part<'a> {
    /// The first line; of a command, with those that continue it.
    pub head: &'a str,
    /// The content of a file, or what a command shall print.
    pub body: &'a str,
    /// Blank lines.
    pub tail: &'a str,
}

impl Part<'_> {
    /// The line of shell, if this is a command.
    pub fn command(&self) -> Option<String> {
        let command = self.head.trim_end().strip_prefix("$ ")?;
        Some(command.replace("\n> ", "\n"))
    }
}

fn begins_part(line: &str) -> bool {
    ["$ ", "== ", "# "].iter().any(|start| line.starts_with(start))
}

/// The parts of a case file, which are the whole of it.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let lines = text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((*end - line.len(), line))
    });
    let starts: Vec<usize> =
        lines.filter(|(_, line)| begins_part(line)).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let part = |(start, end): (&usize, usize)| {
        let all = &text[*start..end];
        let mut lines = all.split_inclusive('\n');
        let first = lines.next().unwrap_or_default().len();
        let head = first + lines.take_while(|l| l.starts_with("> ")).map(str::len).sum::<usize>();
        let (head, rest) = all.split_at(head);
        let body = rest.trim_end_matches('\n').len();
        let (body, tail) = rest.split_at(if body > 0 { body + 1 } else { 0 });
        Part { head, body, tail }
    };
    starts.iter().zip(ends).map(part).collect()
}

/// The commands in the blocks `console` of a page, and their output.
pub fn blocks(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let steps = blocks.flat_map(|block| block.strip_prefix("$ ").unwrap().split("\n$ "));
    let step = |step: &str| {
        let (command, output) = step.split_once('\n').unwrap_or((step, ""));
        (command.to_owned(), output.to_owned())
    };
    steps.map(step).collect()
}

/// A folder in which commands run, and the exit code of the last one.
pub struct Folder(TempDir, Cell<i32>);

impl Folder {
    pub fn new() -> Self {
        Self(tempdir().unwrap(), Cell::new(0))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs a line of shell.
    pub fn run(&self, line: &str) -> Run {
        let bin = Path::new(env!("CARGO_BIN_EXE_pt2onnx")).parent().unwrap().to_owned();
        let others = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([bin].into_iter().chain(env::split_paths(&others))).unwrap();
        let root = root();
        let data = root.join("crates/pt2onnx-cli/tests/cases/data");
        let script = format!(
            "at() {{ \"$CASES\" at \"$@\"; }}
             page() {{ sed -n 's|</script>.*||; s|.*id=\"data\">||p' \"$@\"; }}
             (exit {}); {line}",
            self.1.get()
        );
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(self.path())
            .env("PATH", path)
            .env("LC_ALL", "C")
            .env("CASES", env::current_exe().unwrap())
            .env("ROOT", &root)
            .env("MLP", root.join("testdata/models/mlp.pt2"))
            .env("FX", root.join("crates/pt2onnx-fx/tests/data"))
            .env("TS", root.join("crates/pt2onnx-torchscript/tests/data"))
            .env("DATA", &data)
            .output()
            .unwrap();
        let folder = fs::canonicalize(self.path()).unwrap();
        let text = |bytes: Vec<u8>| {
            String::from_utf8_lossy(&bytes)
                .replace(folder.to_str().unwrap(), "FOLDER")
                .replace(data.to_str().unwrap(), "DATA")
                .replace(root.to_str().unwrap(), "ROOT")
        };
        let code = output.status.code().unwrap_or(-1);
        self.1.set(code);
        Run { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Run {
    /// The exit code and both outputs as case files have them.
    pub fn printed(&self) -> String {
        let mut all = String::new();
        if self.code != 0 {
            all += &format!("exit code {}\n", self.code);
        }
        for line in self.stdout.lines() {
            let mark = if begins_part(line) { "\\" } else { "" };
            all += &format!("{mark}{}\n", line.trim_end());
        }
        for line in self.stderr.lines() {
            all += format!("! {line}").trim_end();
            all += "\n";
        }
        all
    }
}

/// Whether the lines are the expected ones.
pub fn fits(expected: &str, printed: &str) -> bool {
    let lines = |text: &str| {
        text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
    };
    fits_lines(&lines(expected), &lines(printed))
}

fn fits_lines(expected: &[String], lines: &[String]) -> bool {
    match (expected.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "..." => {
            (0..=lines.len()).any(|skipped| fits_lines(rest, &lines[skipped..]))
        }
        (Some((first, rest)), Some((line, lines))) => {
            fits_line(first, line) && fits_lines(rest, lines)
        }
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

pub fn other_output_is_found() -> Result<(), Failed> {
    let page =
        "a\n```console\n$ pt2onnx a 'b c'\none\n...\nlast [..] of [..]\n$ echo $?\n6\n```\nb\n";
    let steps = blocks(page);
    let commands: Vec<&str> = steps.iter().map(|(command, _)| &**command).collect();
    assert_eq!(commands, ["pt2onnx a 'b c'", "echo $?"]);
    for (printed, same) in [
        ("one\nlast 1 of 2", true),
        ("one\ntwo\nthree\nlast 1 of 2\n", true),
        ("one\ntwo", false),
        ("two\nlast 1 of 2", false),
        ("one\nlast 1 of 2\nmore", false),
        ("one\nlast 1", false),
        ("", false),
    ] {
        assert_eq!(fits(&steps[0].1, printed), same, "{printed}");
    }
    let text = "# words\n\n== file a\nb\n\n$ c \\\n> d\ne\n\nf\n\n$ g\n";
    let parts = parts(text);
    let shown: Vec<_> = parts.iter().map(|p| (p.head, p.body, p.tail.len())).collect();
    let expected = [
        ("# words\n", "", 1),
        ("== file a\n", "b\n", 1),
        ("$ c \\\n> d\n", "e\n\nf\n", 1),
        ("$ g\n", "", 0),
    ];
    assert_eq!(shown, expected);
    assert_eq!(parts[2].command().as_deref(), Some("c \\\nd"));
    Ok(())
}
