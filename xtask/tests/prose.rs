//! Comments, docstrings and pages avoid the sentence forms that `cargo xtask prose` lists.

use std::path::Path;

use xtask::prose;

#[test]
fn texts_are_plain() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (files, findings) = prose::workspace(root).unwrap();
    assert!(files > 1000, "the sources are not found");
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
