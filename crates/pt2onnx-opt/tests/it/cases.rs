//! Files of cases: `## title` or `## title: argument`, the input, `---->`, the expected output.

use std::fmt::Write;

/// Runs every case of a file through `f`, given input and argument, and compares.
pub fn run(file: &str, f: impl Fn(&str, &str) -> String) {
    let path = format!("{}/tests/it/cases/{file}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut written = String::new();
    let mut failed = Vec::new();
    let mut parts = text.split("\n## ");
    written.push_str(parts.next().unwrap().trim_end());
    let mut count = 0;
    for case in parts {
        let (title, body) = case.split_once('\n').unwrap();
        let (input, expected) = body.split_once("---->\n").unwrap_or((body, ""));
        let argument = title.rsplit_once(": ").map_or("", |(_, a)| a);
        let actual = f(input, argument);
        if actual.trim() != expected.trim() {
            failed.push(format!(
                "## {title}\n{input}----> expected\n{expected}\n----> actual\n{actual}"
            ));
        }
        write!(written, "\n\n## {title}\n{}\n---->\n{}", input.trim(), actual.trim()).unwrap();
        count += 1;
    }
    written.push('\n');
    assert!(count > 0, "no cases in {file}");
    if std::env::var_os("UPDATE_CASES").is_some() {
        std::fs::write(path, written).unwrap();
    } else {
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }
}
