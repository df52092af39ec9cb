//! The documentation pages: links have targets, the book contains all of `docs/`, the README's
//! figures are measured ones.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The prefix of links to files of the repository.
const REPOSITORY: &str = "https://github.com/pt2onnx/pt2onnx/blob/main/";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The Markdown files of a folder, as paths relative to the root.
fn pages_in(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages = names.filter(|name| name.ends_with(".md"));
    pages.map(|name| format!("{folder}/{name}")).collect()
}

/// All pages.
fn pages() -> Vec<String> {
    let of_root = ["CHANGELOG", "CODE_OF_CONDUCT", "CONTRIBUTING", "README", "SECURITY"];
    let mut pages = of_root.map(|name| format!("{name}.md")).to_vec();
    pages.extend(pages_in("docs"));
    pages.extend(["fuzz", "testdata/archives"].into_iter().flat_map(pages_in));
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        pages.extend(pages_in(&format!("crates/{name}")));
    }
    pages.sort();
    pages
}

fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// The targets of the links and pictures of a page.
fn links(text: &str) -> Vec<String> {
    parse(text)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some(dest_url.into_string())
            }
            _ => None,
        })
        .collect()
}

/// The anchors that GitHub and mdBook make from the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut anchors, mut heading) = (BTreeSet::new(), None::<String>);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for event in parse(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
                let text = heading.take().unwrap().to_lowercase();
                let anchor = text.chars().filter(kept).collect::<String>().replace(' ', "-");
                let before = seen.entry(anchor.clone()).or_default();
                anchors.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
                *before += 1;
            }
            _ => {}
        }
    }
    anchors
}

/// Describes what is wrong with a link of `page`, if anything.
fn problem(page: &str, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path.strip_prefix(REPOSITORY) {
        Some(path) => root().join(path),
        None if path.contains("://") || path.starts_with("mailto:") => return None,
        None if path.is_empty() => root().join(page),
        None => root().join(page).parent().unwrap().join(path),
    };
    let Ok(target) = target.canonicalize() else { return Some("leads nowhere".into()) };
    let book = root().join("docs").canonicalize().unwrap();
    let relative = !path.contains("://");
    if page.starts_with("docs/") && relative && !target.starts_with(book) {
        return Some("leaves docs/, which is all that the book has".into());
    }
    if !anchor.is_empty() && !anchors(&fs::read_to_string(target).unwrap()).contains(anchor) {
        return Some("there is no such heading".into());
    }
    None
}

#[test]
fn links_lead_somewhere() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages() {
        for link in links(&read(&page)) {
            count += 1;
            wrong.extend(problem(&page, &link).map(|problem| format!("{page}: {link} {problem}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 50, "links are not found");
}

#[test]
fn wrong_links_are_found() {
    for link in ["none.md", "errors.md#none", "#none", "../README.md", "benchmarks/none.svg"] {
        assert!(problem("docs/weights.md", link).is_some(), "{link}");
    }
    assert!(problem("README.md", &format!("{REPOSITORY}none.md")).is_some());
    for link in ["errors.md#usage", "#data-files", "benchmarks/layers.svg", "https://pytorch.org"] {
        assert_eq!(problem("docs/weights.md", link), None, "{link}");
    }
    let page = "# A `b`: c_d, (e)\n## Twice\n## Twice\n";
    assert_eq!(anchors(page), ["a-b-c_d-e", "twice", "twice-1"].map(String::from).into());
}

/// Pages that name files of the sources, with the constants in them: `MAX_SIZE`,
/// `pt2onnx-symbolic/src/expr.rs`.
#[test]
fn files_of_the_sources_are_there() {
    let mut problems = Vec::new();
    for page in pages_in("docs") {
        let text = read(&page);
        for line in text.lines() {
            let codes: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
            let mut constants = Vec::new();
            for code in codes {
                let constant = |c: char| c.is_ascii_uppercase() || c == '_';
                if code.len() > 3 && code.contains('_') && code.chars().all(constant) {
                    constants.push(code);
                } else if code.starts_with("pt2onnx") && code.ends_with(".rs") {
                    let source = fs::read_to_string(root().join("crates").join(code));
                    let source = source.unwrap_or_default();
                    let missing = constants.iter().find(|name| !source.contains(**name));
                    if source.is_empty() || missing.is_some() {
                        problems.push(format!("{page}: {code} {missing:?}"));
                    }
                    constants.clear();
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// docs/adding-a-builtin.md, tried literally: its row and its function are in the sources, and its
/// case passes there.
#[test]
fn the_builtin_of_the_page_is_one_of_the_sources() {
    let page = read("docs/adding-a-builtin.md");
    let crates = "crates/pt2onnx-torchscript";
    let files = ["src/builtins/table.rs", "src/builtins/str.rs", "tests/data/texts.txt"];
    let sources = files.map(|file| read(&format!("{crates}/{file}")));
    let blocks: Vec<&str> = page.split("\n```").skip(1).step_by(2).collect();
    assert_eq!(blocks.len(), sources.len());
    for (block, source) in blocks.iter().zip(&sources) {
        let (_, lines) = block.split_once('\n').unwrap();
        assert!(source.contains(&format!("\n{lines}\n")), "{lines}");
    }
}

#[test]
fn the_book_has_every_page() {
    let listed: BTreeSet<String> =
        links(&read("docs/SUMMARY.md")).into_iter().map(|link| format!("docs/{link}")).collect();
    let pages = pages_in("docs").into_iter().filter(|page| page != "docs/SUMMARY.md");
    assert_eq!(listed, pages.collect());
}

/// The README shows the two commands to start with, and the figures of its table are in
/// docs/benchmarks.md.
#[test]
fn the_readme_says_what_holds() {
    let readme = read("README.md");
    for command in
        ["cargo run --release -- testdata/models/mlp.pt2 -o mlp.onnx ", "cargo xtask test "]
    {
        assert!(readme.contains(&format!("\n{command}")), "{command}");
    }
    let figures = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| c.is_whitespace() || c == '|');
        words.filter(|word| word.parse::<f64>().is_ok()).map(str::to_owned).collect()
    };
    let measured = figures(&read("docs/benchmarks.md"));
    let rows = readme.lines().filter(|line| line.starts_with("| ") && line.contains(" | "));
    let cells: Vec<_> = rows.flat_map(|row| row.split(" | ").skip(1)).collect();
    assert!(cells.len() >= 10, "{cells:?}");
    for figure in cells.into_iter().flat_map(figures) {
        assert!(measured.contains(&figure), "{figure} is not in docs/benchmarks.md");
    }
}
