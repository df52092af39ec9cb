//! The bundles of `testdata/`: folders of files, packed.

#![allow(dead_code, reason = "no test uses all of it")]

use pt2onnx::tensor::{DType, Tensor};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The folder.
pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// The folders of a bundle, by name; files of none are in the folder "".
pub fn unpack(path: &Path) -> BTreeMap<String, Files> {
    let file = fs::File::open(path).expect("the bundle opens");
    let unpacked = ruzstd::decoding::StreamingDecoder::new(file).expect("zstd");
    let mut files: BTreeMap<String, Files> = BTreeMap::new();
    for entry in tar::Archive::new(unpacked).entries().expect("tar") {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path");
        let path = path.to_str().expect("UTF-8").trim_start_matches("./");
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let (folder, file) = (folder.to_owned(), file.to_owned());
        if !file.is_empty() {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("its bytes");
            files.entry(folder).or_default().insert(file, bytes);
        }
    }
    files
}

/// An archive as a file: the exporter maps files.
pub fn temporary(archive: &[u8]) -> NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".pt2").tempfile().expect("a temporary file");
    file.write_all(archive).expect("written");
    file
}

/// `PREFIX0`, `PREFIX1`, ... as far as they go.
pub fn numbered(io: &SafeTensors, prefix: &str) -> Vec<Tensor> {
    (0..).map_while(|i| io.tensor(&format!("{prefix}{i}")).ok()).map(|view| tensor(&view)).collect()
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
        Dtype::F8_E4M3 => DType::F8E4M3FN,
        other => panic!("no cases of type {other:?}"),
    }
}
