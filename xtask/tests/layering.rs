//! The layers of the workspace (docs/architecture.md): a crate depends only on crates of lower
//! layers.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Each crate, from the bottom up.
const LAYERS: &[&[&str]] = &[
    &["pt2onnx-cancel", "pt2onnx-symbolic", "pt2onnx-tensor", "pt2onnx-proto", "pt2onnx-schemas"],
    &["pt2onnx-fx", "pt2onnx-ir"],
    &["pt2onnx-torchscript-archive", "pt2onnx-lowering"],
    &["pt2onnx-torchscript", "pt2onnx-aten", "pt2onnx-opt", "pt2onnx-compress", "pt2onnx-writer"],
    &["pt2onnx-report", "pt2onnx-ort"],
    &["pt2onnx"],
    &["pt2onnx-cli"],
    &["pt2onnx-python"],
];

/// Dependencies on lower layers that are forbidden too: two crates know both PyTorch and ONNX, and
/// only one knows protobuf.
const FORBIDDEN: &[(&str, &str)] = &[
    ("pt2onnx-fx", "pt2onnx-proto"),
    ("pt2onnx-ir", "pt2onnx-proto"),
    ("pt2onnx-torchscript-archive", "pt2onnx-ir"),
    ("pt2onnx-torchscript-archive", "pt2onnx-proto"),
    ("pt2onnx-torchscript", "pt2onnx-proto"),
    ("pt2onnx-torchscript", "pt2onnx-ir"),
    ("pt2onnx-lowering", "pt2onnx-proto"),
    ("pt2onnx-aten", "pt2onnx-proto"),
    ("pt2onnx-opt", "pt2onnx-proto"),
    ("pt2onnx-torchscript", "pt2onnx-lowering"),
    ("pt2onnx-opt", "pt2onnx-fx"),
    ("pt2onnx-opt", "pt2onnx-lowering"),
    ("pt2onnx-compress", "pt2onnx-proto"),
    ("pt2onnx-compress", "pt2onnx-fx"),
    ("pt2onnx-writer", "pt2onnx-fx"),
    ("pt2onnx-report", "pt2onnx-proto"),
    ("pt2onnx-report", "pt2onnx-opt"),
    ("pt2onnx-report", "pt2onnx-torchscript"),
    ("pt2onnx-ort", "pt2onnx-proto"),
    ("pt2onnx-ort", "pt2onnx-aten"),
    ("pt2onnx-ort", "pt2onnx-torchscript"),
    ("pt2onnx", "pt2onnx-proto"),
    ("pt2onnx-cli", "pt2onnx-proto"),
    ("pt2onnx-python", "pt2onnx-proto"),
];

#[test]
fn arrows_go_down() {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let layers: BTreeMap<&str, usize> = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(layer, crates)| crates.iter().map(move |name| (*name, layer)))
        .collect();

    let mut wrong = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        if name == "xtask" {
            continue;
        }
        let Some(layer) = layers.get(name) else {
            wrong.push(format!("{name} is in no layer"));
            continue;
        };
        // Tests may depend on higher layers.
        let shipped = package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development);
        for target in shipped.map(|d| d.name.as_str()) {
            let below = layers.get(target).is_none_or(|lower| lower < layer);
            if !below || FORBIDDEN.contains(&(name, target)) {
                wrong.push(format!("{name} -> {target}"));
            }
        }
    }
    assert!(wrong.is_empty(), "against the layers: {wrong:#?}");
}

/// A misspelt crate name in the tables would check nothing.
#[test]
fn tables_name_crates_that_exist() {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let exists = |name: &str| metadata.packages.iter().any(|p| p.name == name);
    let forbidden = FORBIDDEN.iter().flat_map(|&(from, to)| [from, to]);
    for name in LAYERS.iter().copied().flatten().copied().chain(forbidden) {
        assert!(exists(name), "no crate {name}");
    }
}
