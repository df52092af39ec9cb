//! docs/errors.md lists every text of the sources, and the cases below `errors` provoke each with
//! the exit code that it has there.

use crate::{below, root, session};
use libtest_mimic::{Failed, Trial};
use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

pub fn trials() -> [Trial; 2] {
    [
        Trial::test("errors::each_is_provoked", each_is_provoked),
        Trial::test("errors::each_text_of_the_sources_is_listed", each_text_is_listed),
    ]
}

/// A line of one of the tables.
struct Row {
    template: String,
    /// Not of reasons.
    code: Option<i32>,
    /// Whether it can be provoked from outside.
    provoked: bool,
}

/// Rows are those that begin with a text between double backticks; the last column is the exit
/// code, if there is one.
fn rows() -> Vec<Row> {
    let page = fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let row = |line: &str| {
        let (template, rest) = line.strip_prefix("| `` ")?.split_once(" `` |")?;
        let last = rest.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        Some(Row {
            template: template.replace("\\|", "|"),
            code: last.trim().trim_end_matches('*').parse().ok(),
            provoked: !last.ends_with('*'),
        })
    };
    page.lines().filter_map(row).collect()
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

/// The rest of a text behind these parts, which may have anything between them.
fn behind<'a>(text: &'a str, parts: &[impl AsRef<str>]) -> Option<&'a str> {
    parts.iter().try_fold(text, |rest, part| rest.split_once(part.as_ref()).map(|(_, rest)| rest))
}

/// Whether a text is of that form.
fn fits(template: &str, text: &str) -> bool {
    let parts = parts(template);
    let [first, between @ .., last] = parts.as_slice() else {
        return text == parts[0];
    };
    let rest = text.strip_prefix(first.as_str()).and_then(|rest| behind(rest, between));
    rest.is_some_and(|rest| rest.len() > last.len() && rest.ends_with(last.as_str()))
}

/// The text behind `error: `, up to what follows in other lines; the reasons given for nodes and
/// the like.
fn said(stderr: &str) -> (&str, Vec<&str>) {
    let mut lines = stderr.lines().map(|line| line.strip_prefix("! ").unwrap_or(line));
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
    let within = [": ", "` "].into_iter().flat_map(|mark| error.match_indices(mark));
    let within = within.map(|(at, _)| &error[at + 2..]);
    (error, reasons.chain(within).collect())
}

fn each_is_provoked() -> Result<(), Failed> {
    let rows = rows();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/errors");
    let (mut seen, mut wrong) = (BTreeSet::new(), String::new());
    // If several fit, the longest.
    let of = |text: &str, codes: bool| {
        let fitting = rows.iter().enumerate();
        let fitting = fitting.filter(|(_, r)| r.code.is_some() == codes && fits(&r.template, text));
        fitting.max_by_key(|(_, r)| parts(&r.template).concat().len()).map(|(i, _)| i)
    };
    for file in below(&folder, "txt") {
        for part in session::parts(&fs::read_to_string(file).unwrap()) {
            let Some(output) = part.body.strip_prefix("exit code ") else { continue };
            let (code, stderr) = output.split_once('\n').unwrap();
            let (error, reasons) = said(stderr);
            match of(error, true) {
                Some(row) if rows[row].code == code.parse().ok() => {
                    seen.insert(row);
                }
                Some(row) => writeln!(wrong, "exits with {code}: {}", rows[row].template)?,
                None => writeln!(wrong, "not listed: {code} {error}")?,
            }
            seen.extend(reasons.iter().filter_map(|reason| of(reason, false)));
        }
    }
    for (i, row) in rows.iter().enumerate() {
        if row.provoked != seen.contains(&i) {
            let but = if row.provoked { "no case gives" } else { "a case gives" };
            writeln!(wrong, "{but}: {}", row.template)?;
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("docs/errors.md:\n{wrong}").into()) }
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

fn each_text_is_listed() -> Result<(), Failed> {
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
    for path in below(&crates.join("pt2onnx-cli/src"), "rs") {
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
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("not in docs/errors.md:\n{missing}").into())
    }
}

/// Whether a line of the page has a text's parts between placeholders, in order; short ones are but
/// punctuation.
fn listed(page: &str, text: &str) -> bool {
    let parts = parts(&text.replace(":?}", "}").replace("{}", "{what}"));
    let parts: Vec<&str> = { parts.iter().map(|p| p.trim()) }.filter(|p| p.len() > 3).collect();
    page.lines().any(|line| behind(line, &parts).is_some())
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
