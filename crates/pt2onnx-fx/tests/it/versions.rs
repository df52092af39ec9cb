//! An archive of each version of PyTorch (`testdata/archives`, the same model in each): what is
//! read is the same.

use pt2onnx_fx::{
    Constant, ExportedProgram,
    archive::{Archive, read, state_dict},
    passes,
};
use pt2onnx_tensor::{DType, Tensor};
use std::path::PathBuf;

/// The schemas that PyTorch 2.1, 2.2, ... write.
const SCHEMAS: &str = "1.0 2.0 5.1 5.3 7.3 8.2 8.7 8.8 8.14 8.15 8.17 8.20 8.20 8.20 8.20";

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
    for (minor, schema) in (1..).zip(SCHEMAS.split(' ')) {
        let mut program = read(path(minor)).unwrap();
        let (major, minor_version) = program.schema_version;
        assert_eq!(format!("{major}.{minor_version}"), schema, "2.{minor}");
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
    for minor in 1..=15 {
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
