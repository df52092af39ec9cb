//! An error says everything in its own text, or is transparent: what prints the chain of sources
//! must not say the same twice.

mod sources;

use std::fs;
use std::path::Path;

/// The lines of a file that give an error a source although its text holds what the source says.
fn said_twice(text: &str) -> Vec<&str> {
    let mut transparent = false;
    let twice = |line: &&str| {
        if line.contains("#[error(") {
            transparent = line.contains("#[error(transparent)]");
        }
        let source = line.contains("#[source]") || line.contains("#[from]");
        line.contains("{source}") || source && !transparent
    };
    text.lines().filter(twice).collect()
}

#[test]
fn nothing_is_said_twice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut errors = 0;
    for path in sources::rust_files(&root.join("crates")) {
        let text = fs::read_to_string(&path).unwrap();
        if text.contains("thiserror::Error") {
            errors += 1;
            assert_eq!(said_twice(&text), [""; 0], "{}", path.display());
        }
    }
    assert!(errors > 20, "the errors are not found");
}

#[test]
fn sources_are_found() {
    let shown = "#[error(\"{path}: {source}\")]\nIo { path: String, source: io::Error },";
    assert_eq!(said_twice(shown), ["#[error(\"{path}: {source}\")]"]);
    assert_eq!(said_twice("#[error(\"{0}\")]\nIo(#[from] io::Error),"), ["Io(#[from] io::Error),"]);
    assert!(said_twice("#[error(transparent)]\nIo(#[from] io::Error),").is_empty());
}
