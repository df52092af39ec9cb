//! An archive of each version of PyTorch (`testdata/archives`, the same model in each): what is
//! read is the same.

#![expect(clippy::panic, reason = "a test may fail so")]

use pt2onnx_fx::{
    Constant, ExportedProgram,
    archive::{Archive, read, state_dict},
    passes,
};
use pt2onnx_tensor::{DType, Tensor};
use std::path::PathBuf;

/// Minor version of PyTorch and the schema it writes.
const VERSIONS: &[(u32, (u32, u32))] = &[
    (1, (1, 0)),
    (2, (2, 0)),
    (3, (5, 1)),
    (4, (5, 3)),
    (5, (7, 3)),
    (6, (8, 2)),
    (7, (8, 7)),
    (8, (8, 8)),
    (9, (8, 14)),
    (10, (8, 15)),
    (11, (8, 17)),
    (12, (8, 20)),
    (13, (8, 20)),
    (14, (8, 20)),
    (15, (8, 20)),
];

fn path(minor: u32) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/archives");
    folder.join(format!("torch-2.{minor}.pt2"))
}

/// A weight or buffer; torch 2.1 put `L__self___` before its name.
fn state<'a>(program: &'a ExportedProgram, name: &str) -> &'a Tensor {
    let old = format!("L__self___{name}");
    let tensor = program.state.get(name).or_else(|| program.state.get(&old));
    tensor.unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn every_version_is_read() {
    let newest = read(path(15)).unwrap();
    for &(minor, schema) in VERSIONS {
        let mut program = read(path(minor)).unwrap();
        assert_eq!(program.schema_version, schema, "2.{minor}");
        for name in ["first.weight", "first.bias", "second.weight", "turned", "calls", "short"] {
            let (tensor, expected) = (state(&program, name), state(&newest, name));
            assert_eq!(tensor.dtype(), expected.dtype(), "2.{minor}: {name}");
            assert_eq!(tensor.shape(), expected.shape(), "2.{minor}: {name}");
            assert_eq!(tensor.strides(), expected.strides(), "2.{minor}: {name}");
            assert_eq!(tensor.to_bytes(), expected.to_bytes(), "2.{minor}: {name}");
        }
        assert_eq!(state(&program, "short").dtype(), DType::BF16);
        assert_eq!(*state(&program, "turned").strides(), [1, 2]);
        let (first, second) = (state(&program, "first.weight"), state(&program, "second.weight"));
        assert!(first.same(second), "2.{minor}: the shared weight is there twice");
        let constants: Vec<_> = program.constants.values().collect();
        let [Constant::Tensor(constant)] = constants.as_slice() else {
            panic!("2.{minor}: {constants:?}");
        };
        assert_eq!(constant.shape(), [2]);
        let range = program.range_constraints.first().unwrap().1;
        assert_eq!((range.min, range.max), (Some(3), Some(15)), "2.{minor}");
        passes::prepare(&mut program).unwrap();
        assert_eq!(program.mutations.len(), 1, "2.{minor}: `calls` is written");
    }
}

/// Weights stay where they are, in zips within zips too.
#[test]
fn weights_are_mapped() {
    for &(minor, _) in VERSIONS {
        let file = std::fs::read(path(minor)).unwrap();
        let program = read(path(minor)).unwrap();
        for (name, tensor) in &program.state {
            let storage = tensor.storage().unwrap();
            let source = storage.source().unwrap();
            let start = usize::try_from(source.offset).unwrap();
            let there = &file[start..start + storage.bytes().len()];
            assert_eq!(there, &**storage.bytes(), "2.{minor}: {name}");
        }
    }
}

#[test]
fn state_dicts_are_read() {
    let weights = Archive::open(path(5)).unwrap().record("serialized_state_dict.pt").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights.pt");
    std::fs::write(&file, weights.bytes()).unwrap();
    let tensors = state_dict(&file).unwrap();
    let names: Vec<&str> = tensors.keys().map(String::as_str).collect();
    assert_eq!(names, ["short", "turned", "calls", "first.weight", "first.bias", "second.weight"]);
    let program = read(path(5)).unwrap();
    for (name, tensor) in &tensors {
        assert_eq!(tensor.to_bytes(), state(&program, name).to_bytes());
    }
}
