//! Conformance cases out of the bundles `testdata/cases/*.tar.zst`: an archive, inputs and PyTorch's outputs each.

use crate::compare::Standard;
use pt2onnx_tensor::{DType, Tensor};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::{collections::BTreeMap, fs, io::Read, io::Write, path::Path};
use tempfile::NamedTempFile;

/// A case.
pub struct Case {
    /// Bundle, suite and name: `first/transformers/bert`.
    pub name: String,
    /// The `.pt2`.
    pub archive: NamedTempFile,
    /// One sample, or two with different sizes.
    pub samples: Vec<Sample>,
    /// What counts as equal.
    pub standard: Standard,
}

/// Inputs and what PyTorch gave for them.
pub struct Sample {
    /// Empty, or `alt.` for the second.
    pub label: &'static str,
    pub inputs: Vec<Tensor>,
    pub outputs: Vec<Tensor>,
}

/// All cases of all bundles, by name.
pub fn read_all(testdata: &Path) -> Vec<Case> {
    let folder = fs::read_dir(testdata.join("cases")).expect("testdata/cases");
    let mut bundles: Vec<_> = folder
        .map(|entry| entry.expect("a bundle").path())
        .collect();
    bundles.sort();
    bundles
        .iter()
        .flat_map(|bundle| read_bundle(bundle))
        .collect()
}

fn read_bundle(path: &Path) -> Vec<Case> {
    let bundle = path
        .file_name()
        .and_then(|n| n.to_str())
        .and_then(|n| n.strip_suffix(".tar.zst"));
    let bundle = bundle.unwrap_or_else(|| panic!("{} is no .tar.zst", path.display()));
    let cases = unpack(path).into_iter();
    cases
        .map(|(name, files)| case(format!("{bundle}/{name}"), &files))
        .collect()
}

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The folders of a bundle, by name.
pub fn unpack(path: &Path) -> BTreeMap<String, Files> {
    let file = fs::File::open(path).expect("the bundle opens");
    let unpacked = ruzstd::decoding::StreamingDecoder::new(file).expect("zstd");
    let mut files: BTreeMap<String, Files> = BTreeMap::new();
    for entry in tar::Archive::new(unpacked).entries().expect("tar") {
        let mut entry = entry.expect("an entry");
        let path = entry
            .path()
            .expect("a path")
            .to_str()
            .expect("UTF-8")
            .trim_start_matches("./")
            .to_owned();
        if let Some((case, file)) = path.rsplit_once('/').filter(|(_, file)| !file.is_empty()) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("its bytes");
            files
                .entry(case.to_owned())
                .or_default()
                .insert(file.to_owned(), bytes);
        }
    }
    files
}

fn case(name: String, files: &Files) -> Case {
    let file = |n: &str| files.get(n).unwrap_or_else(|| panic!("{name} has no {n}"));
    let about: serde_json::Value = serde_json::from_slice(file("case.json")).expect("case.json");
    let io = SafeTensors::deserialize(file("io.safetensors")).expect("io.safetensors");
    let archive = temporary(file("model.pt2"));
    let samples = ["", "alt."].into_iter().map(|label| Sample {
        label,
        inputs: numbered(&io, &format!("{label}input.")),
        outputs: numbered(&io, &format!("{label}output.")),
    });
    let number = |key: &str| {
        about
            .get(key)
            .and_then(serde_json::Value::as_f64)
            .unwrap_or(0.0)
    };
    Case {
        samples: samples
            .filter(|s| !s.inputs.is_empty() || !s.outputs.is_empty())
            .collect(),
        standard: Standard {
            values: about.get("compare").and_then(|c| c.as_str()) != Some("shape"),
            rtol: number("rtol"),
            atol: number("atol"),
        },
        archive,
        name,
    }
}

/// An archive as a file: the exporter maps files.
pub fn temporary(archive: &[u8]) -> NamedTempFile {
    let mut file = tempfile::Builder::new()
        .suffix(".pt2")
        .tempfile()
        .expect("a temporary file");
    file.write_all(archive).expect("written");
    file
}

/// `PREFIX0`, `PREFIX1`, ... as far as they go.
pub fn numbered(io: &SafeTensors, prefix: &str) -> Vec<Tensor> {
    (0..)
        .map_while(|i| io.tensor(&format!("{prefix}{i}")).ok())
        .map(|view| tensor(&view))
        .collect()
}

/// A stored tensor.
pub fn tensor(view: &TensorView) -> Tensor {
    let bytes = view.data().to_vec();
    Tensor::new(dtype(view.dtype()), view.shape().to_vec(), bytes).expect("a whole tensor")
}

fn dtype(dtype: Dtype) -> DType {
    match dtype {
        Dtype::F64 => DType::F64,
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::I64 => DType::I64,
        Dtype::I32 => DType::I32,
        Dtype::I16 => DType::I16,
        Dtype::I8 => DType::I8,
        Dtype::U64 => DType::U64,
        Dtype::U32 => DType::U32,
        Dtype::U16 => DType::U16,
        Dtype::U8 => DType::U8,
        Dtype::BOOL => DType::Bool,
        other => panic!("no cases of type {other:?}"),
    }
}
