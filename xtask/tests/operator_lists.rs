//! Lists of ONNX operators are columns of ir's table of traits, or are listed here with a reason.

mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Files below `crates/` with such lists, how many, and why.
const EXCEPTIONS: &[(&str, usize, &str)] = &[
    ("pt2onnx-lowering/src/math/complex/mod.rs", 1, "how ONNX Runtime moves transposes"),
    ("pt2onnx-opt/src/fuse/attention.rs", 1, "operators that the pass's measure counts"),
    ("pt2onnx-opt/src/fuse/conv1d_to_conv2d.rs", 1, "what ONNX Runtime fuses into a convolution"),
    ("pt2onnx-opt/src/fuse/fold_scale_into_weight.rs", 1, "what moves a layer's channels"),
    ("pt2onnx-opt/src/fuse/grid.rs", 1, "operators that the pass's measure counts"),
    (
        "pt2onnx-opt/src/fuse/group_query_attention.rs",
        1,
        "operators that the pass's measure counts",
    ),
    ("pt2onnx-opt/src/fuse/packed_qkv.rs", 1, "what stands between a layer and its attention"),
    ("pt2onnx-opt/src/fuse/pad.rs", 1, "operators with the attribute `pads` that one fusion edits"),
    ("pt2onnx-opt/src/fuse/softmax_before_transpose.rs", 1, "operators with the same axis"),
    ("pt2onnx-opt/src/ort_reserved.rs", 1, "a step of a pattern"),
    ("pt2onnx-opt/src/target/cubic.rs", 1, "how ONNX Runtime moves transposes"),
];

/// The names of operators that the table has.
fn operators(table: &str) -> BTreeSet<&str> {
    let rows = table.split_once("\noperators! {\n").and_then(|(_, rest)| rest.split_once("\n}"));
    let rows =
        rows.map_or("", |(rows, _)| rows).split(';').filter_map(|row| Some(row.split_once(':')?.0));
    rows.flat_map(str::split_whitespace).collect()
}

/// The number of arrays of strings that name two or more operators, tests apart.
fn lists(text: &str, operators: &BTreeSet<&str>) -> usize {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let arrays = code.split('[').skip(1).filter_map(|rest| Some(rest.split_once(']')?.0));
    let named = |array: &str| {
        let items = array.split(',').map(str::trim).filter(|item| !item.is_empty());
        let names = items.map(|item| item.strip_prefix('"')?.strip_suffix('"'));
        let names: Option<Vec<&str>> = names.collect();
        names.is_some_and(|names| names.iter().filter(|name| operators.contains(*name)).count() > 1)
    };
    arrays.filter(|array| named(array)).count()
}

#[test]
fn lists_of_operators_are_traits() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
    let table = fs::read_to_string(crates.join("pt2onnx-ir/src/traits.rs")).unwrap();
    let operators = operators(&table);
    assert!(operators.len() > 200, "the table is not found");
    let mut found = BTreeMap::new();
    for file in sources::rust_files(&crates) {
        let name = file.strip_prefix(&crates).unwrap().to_str().unwrap().replace('\\', "/");
        // The schemas are ONNX's own list.
        if name.contains("/src/")
            && !name.contains("/generated/")
            && !name.contains("ir/src/schema/")
        {
            let count = lists(&fs::read_to_string(&file).unwrap(), &operators);
            if count > 0 {
                found.insert(name, count);
            }
        }
    }
    let listed = EXCEPTIONS.iter().map(|(name, count, _)| ((*name).to_owned(), *count));
    assert_eq!(found, listed.collect());
}

#[test]
fn lists_are_found() {
    let operators = BTreeSet::from(["Add", "Mul"]);
    assert_eq!(lists(r#"const A: &[&str] = &["Add", "Mul"];"#, &operators), 1);
    assert_eq!(lists(r#"f(["Add", "sub"], [x, y], ["a", "b"])"#, &operators), 0);
    assert_eq!(lists(r#"#[cfg(test)] const A: &[&str] = &["Add", "Mul"];"#, &operators), 0);
}
