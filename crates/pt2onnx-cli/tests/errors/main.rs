//! Tests of docs/errors.md: every error that it lists is provoked, and has the text and the exit
//! code that it says.
//!
//! The texts in the sources are all listed. `cases.txt` has the cases with their exact output;
//! `UPDATE_CASES=1` updates it.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[expect(dead_code, reason = "other tests need the rest")]
#[path = "../common/mod.rs"]
mod common;
mod inputs;

use common::{convert, files, pt2onnx};
use inputs::input;
use std::{
    collections::BTreeSet,
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};
use tempfile::tempdir;

/// A run that fails.
struct Case<'a> {
    /// The lines before it.
    comments: Vec<&'a str>,
    /// The name of the input `MODEL`.
    input: &'a str,
    /// Arguments; `MODEL`, `OUT` and `FOLDER` stand for paths in a folder that has nothing else but
    /// a file called `file`, `HERE` for the folder of these cases.
    args: &'a str,
}

/// The plain conversion.
const CONVERT: &str = "MODEL -o OUT";

/// The cases of `cases.txt`: a line `[INPUT] pt2onnx ARGS`, and what the command prints.
fn cases(text: &str) -> Vec<Case<'_>> {
    let (mut cases, mut comments) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let case = line.strip_prefix('[').and_then(|rest| rest.split_once("] pt2onnx "));
        if let Some((input, args)) = case {
            cases.push(Case { comments: std::mem::take(&mut comments), input, args });
        } else if line.starts_with("# ") {
            comments.push(line);
        }
    }
    cases
}

/// A line of one of the tables.
struct Row {
    template: String,
    /// Not of reasons.
    code: Option<i32>,
    /// Whether it can be provoked from outside.
    provoked: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Rows are those that begin with a text between double backticks; the last column is the exit
/// code, if there is one.
fn rows() -> Vec<Row> {
    let page = fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let mut rows = Vec::new();
    for line in page.lines() {
        let Some((template, rest)) = line.strip_prefix("| `` ").and_then(|l| l.split_once(" `` |"))
        else {
            continue;
        };
        let last = rest.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        rows.push(Row {
            template: template.replace("\\|", "|"),
            code: last.trim().trim_end_matches('*').parse().ok(),
            provoked: !last.ends_with('*'),
        });
    }
    rows
}

/// The parts of a template between its placeholders, `{like this}`.
fn parts(template: &str) -> Vec<String> {
    let (mut parts, mut rest) = (vec![String::new()], template);
    while let Some(at) = rest.find('{') {
        let (before, after) = rest.split_at(at);
        let name = after[1..].split('}').next().unwrap();
        let placeholder = after.contains('}')
            && !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || " _-.".contains(c));
        parts.last_mut().unwrap().push_str(before);
        if placeholder {
            parts.push(String::new())
        } else {
            parts.last_mut().unwrap().push('{')
        }
        rest = if placeholder { &after[name.len() + 2..] } else { &after[1..] };
    }
    parts.last_mut().unwrap().push_str(rest);
    parts
}

/// Whether a text is of that form.
fn fits(template: &str, text: &str) -> bool {
    let parts = parts(template);
    let [first, between @ ..] = parts.as_slice() else {
        return false;
    };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else {
        return false;
    };
    let Some((last, between)) = between.split_last() else {
        return rest.is_empty();
    };
    for part in between {
        match rest.find(part.as_str()) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() > last.len() && rest.ends_with(last.as_str())
}

/// The exit code and output of a case, with nothing of this machine in it.
fn run(case: &Case<'_>) -> (i32, String) {
    let folder = tempdir().unwrap();
    let place = folder.path().to_str().unwrap().to_owned();
    let model = folder.path().join("m.pt2");
    if let Some(bytes) = input(case.input) {
        fs::write(&model, bytes).unwrap();
    }
    fs::write(folder.path().join("file"), "content").unwrap();
    let before = files(folder.path());
    let output = folder.path().join("m.onnx");
    let here = format!("{}/tests/errors", env!("CARGO_MANIFEST_DIR"));
    let args = case.args.split_whitespace();
    // The folder last: its random name may have any of these words in it.
    let args = args.map(|a| {
        a.replace("MODEL", "FOLDER/m.pt2")
            .replace("OUT", "FOLDER/m.onnx")
            .replace("HERE", &here)
            .replace("FOLDER", &place)
    });
    let run = match case.args {
        CONVERT => convert(&model, &output),
        _ => pt2onnx(args),
    };
    assert!(files(folder.path()) == before, "{}: {run:?}", case.args);
    assert!(run.stdout.is_empty(), "{run:?}");
    (run.code, run.stderr.replace(&place, "FOLDER").replace(&here, "HERE"))
}

/// The text behind `error: `, up to what follows in other lines; the reasons given for nodes and
/// the like.
fn said(stderr: &str) -> (&str, Vec<&str>) {
    let mut lines = stderr.lines();
    let first = lines.next().unwrap_or_default();
    let reasons = lines.filter(|l| l.starts_with("  ") && !l.starts_with("  help: "));
    // Lines of the user's may have `): ` too.
    let behind = |l: &str| l.match_indices("): ").map(|(at, _)| at + 3).collect::<Vec<_>>();
    let reasons = reasons.flat_map(|l| {
        let starts = behind(l).into_iter().chain([l.len() - l.trim_start().len()]);
        starts.map(|at| &l[at..]).collect::<Vec<_>>()
    });
    let error = first.strip_prefix("error: ").unwrap_or(first);
    // The first line shows what is wrong within an archive.
    let within = error.match_indices(": ").map(|(at, _)| &error[at + 2..]);
    let record = error.match_indices("` ").map(|(at, _)| &error[at + 2..]);
    (error, reasons.chain(within).chain(record).collect())
}

#[test]
fn the_table_is_what_the_command_says() {
    let rows = rows();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors/cases.txt");
    let expected = fs::read_to_string(&file).unwrap();
    let (mut seen, mut all, mut wrong) = (BTreeSet::new(), String::new(), String::new());
    for case in cases(&expected) {
        let (code, stderr) = run(&case);
        case.comments.iter().for_each(|line| writeln!(all, "{line}").unwrap());
        writeln!(all, "[{}] pt2onnx {}\nexit code {code}\n{stderr}", case.input, case.args)
            .unwrap();
        let (error, reasons) = said(&stderr);
        // If several fit, the one that says most.
        let of = |text: &str, codes: bool| {
            let fitting = rows.iter().enumerate();
            let fitting =
                fitting.filter(|(_, r)| r.code.is_some() == codes && fits(&r.template, text));
            let most = fitting.max_by_key(|(_, r)| parts(&r.template).concat().len());
            most.map(|(i, _)| i)
        };
        match of(error, true) {
            Some(row) if rows[row].code == Some(code) => {
                seen.insert(row);
            }
            Some(row) => {
                writeln!(wrong, "exits with {code}, not as listed: {}", rows[row].template).unwrap()
            }
            None => writeln!(wrong, "not listed: {code} {error}").unwrap(),
        }
        seen.extend(reasons.iter().filter_map(|reason| of(reason, false)));
    }
    for (i, row) in rows.iter().enumerate() {
        if row.provoked != seen.contains(&i) {
            let but = if row.provoked { "no case gives" } else { "a case gives" };
            writeln!(wrong, "{but}: {}", row.template).unwrap();
        }
    }
    if env::var_os("UPDATE_CASES").is_some() {
        fs::write(file, &all).unwrap();
    } else {
        let mut lines = all.lines().zip(expected.lines());
        let first = lines.find(|(line, expected)| line != expected);
        assert!(all == expected, "cases.txt has other output, first: {first:#?}");
    }
    assert!(wrong.is_empty(), "docs/errors.md:\n{wrong}");
}

/// Files with error types, and where in them those begin whose texts the command prints unchanged.
const SOURCES: &[(&str, &str)] = &[
    ("pt2onnx-fx/src/error.rs", "pub enum NotAnArchive"),
    ("pt2onnx-lowering/src/error.rs", "thiserror::Error"),
    ("pt2onnx/src/dims/error.rs", "pub enum DimError"),
    ("pt2onnx/src/options/error.rs", "pub enum OptionError"),
    ("pt2onnx-compress/src/error.rs", "pub enum Error"),
    ("pt2onnx/src/options/dynamic_axes.rs", "thiserror::Error"),
    ("pt2onnx/src/domains.rs", "thiserror::Error"),
    ("pt2onnx/src/naming/error.rs", "pub enum NameError"),
    ("pt2onnx-writer/src/read/error.rs", "pub enum Invalid"),
];

#[test]
fn every_text_of_the_sources_is_listed() {
    let page = fs::read_to_string(root().join("docs/errors.md")).unwrap();
    // The library names options by their keys.
    let page = page.replace("the option `--", "the option `");
    let crates = root().join("crates");
    let mut missing = String::new();
    let mut look = |file: &str, rest: &str| {
        let text = rest.strip_prefix('"').and_then(literal);
        if let Some(text) = text.as_ref().filter(|text| !listed(&page, text)) {
            writeln!(missing, "{file}: {text}").unwrap();
        }
        text.is_some()
    };
    for (file, start) in SOURCES {
        let source = fs::read_to_string(crates.join(file)).unwrap();
        let from = source.find(start).unwrap();
        let attributes = source[from..].split("#[error(").skip(1);
        let texts = attributes.filter(|rest| look(file, rest.trim_start())).count();
        assert!(texts > 0, "{file}");
    }
    // The command's own texts.
    let mut texts = 0;
    for path in sources(&crates.join("pt2onnx-cli/src")) {
        let source = fs::read_to_string(&path).unwrap();
        let file = path.file_name().unwrap().to_str().unwrap();
        for call in ["CommandError::new(", "input(", "output("] {
            for rest in source.split(call).skip(1) {
                let code = rest.trim_start().strip_prefix("Code::");
                let rest = code.and_then(|c| c.split_once(',')).map_or(rest, |(_, r)| r);
                let rest = rest.trim_start();
                let rest = rest.strip_prefix("format!(").unwrap_or(rest);
                texts += usize::from(look(file, rest.trim_start()));
            }
        }
    }
    assert!(texts > 10);
    assert!(missing.is_empty(), "not in docs/errors.md:\n{missing}");
}

/// The Rust files in a folder and below.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

/// Whether a line of the page has a text's parts between placeholders, in order; short ones are but
/// punctuation.
fn listed(page: &str, text: &str) -> bool {
    let parts = parts(&text.replace(":?}", "}").replace("{}", "{what}"));
    let parts: Vec<&str> = { parts.iter().map(|p| p.trim()) }.filter(|p| p.len() > 3).collect();
    page.lines().any(|line| {
        let mut rest = line;
        parts.iter().all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    })
}

/// The text of a string literal whose opening quote is gone.
fn literal(rest: &str) -> Option<String> {
    let (mut text, mut chars) = (String::new(), rest.chars().peekable());
    loop {
        match chars.next()? {
            '"' => return Some(text.replace("{{", "{").replace("}}", "}")),
            '\\' => match chars.next()? {
                '\n' => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                c => text.push(c),
            },
            c => text.push(c),
        }
    }
}
