//! Cases of programs in text, in files of `tests/data`.

#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use std::{env, fs, path::Path};

/// Compares what `of` makes of programs with what a file says. A case is its name behind `# `, a
/// program, `=>`, and the result. `UPDATE=1` writes the results.
pub fn compare(file: &str, of: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    let cases = fs::read_to_string(&path).unwrap();
    let mut written = String::new();
    for case in cases.split("\n\n").map(str::trim).filter(|c| !c.is_empty()) {
        let (before, expected) = case.split_once("\n=>").unwrap_or((case, ""));
        let (title, program) = before.split_once('\n').unwrap();
        let found = of(program);
        written += &format!("{before}\n=>\n{found}\n\n");
        if env::var_os("UPDATE").is_none() {
            assert_eq!(found, expected.trim(), "{title}");
        }
    }
    if env::var_os("UPDATE").is_some() {
        fs::write(path, written.trim_end().to_owned() + "\n").unwrap();
    }
}
