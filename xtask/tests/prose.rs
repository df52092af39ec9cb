//! Comments, docstrings and pages avoid the sentence forms that `cargo xtask prose` lists.

use std::collections::BTreeMap;
use std::path::Path;

use xtask::prose;

/// The most findings of folders that were not gone through yet. New ones are errors.
const LEFT: &[(&str, usize)] = &[("crates/pt2onnx-opt", 85)];

#[test]
fn texts_are_plain() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (files, findings) = prose::workspace(root).unwrap();
    assert!(files > 1000, "the sources are not found");
    let mut counts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for finding in &findings {
        let depth = if finding.starts_with("crates/") { 2 } else { 1 };
        let end = finding.match_indices('/').nth(depth - 1).map_or(0, |(end, _)| end);
        counts.entry(&finding[..end]).or_default().push(finding);
    }
    let left: BTreeMap<_, _> = LEFT.iter().copied().collect();
    for (folder, found) in counts {
        let most = left.get(folder).copied().unwrap_or(0);
        assert!(
            found.len() <= most,
            "{folder}: {} findings, {most} at most:\n{}",
            found.len(),
            found.join("\n")
        );
    }
}
