//! Helpers of the tests: running the command, and archives made from `testdata/models/mlp.pt2`.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::{Cursor, Read, Write},
    path::{Path, PathBuf},
    process::Command,
};
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

/// The result of a run of the command.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The command, to be run.
pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pt2onnx"))
}

pub fn pt2onnx<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    let output = command().args(args).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub fn convert(model: &Path, output: &Path) -> Run {
    pt2onnx([model, Path::new("-o"), output])
}

pub fn mlp() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/mlp.pt2")
}

/// The records of an archive, by their whole names.
pub fn records(archive: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive = ZipArchive::new(Cursor::new(fs::read(archive).unwrap())).unwrap();
    let count = archive.len();
    let record = |i| {
        let (mut record, mut bytes) = (archive.by_index(i).unwrap(), Vec::new());
        record.read_to_end(&mut bytes).unwrap();
        (record.name().unwrap().into_owned(), bytes)
    };
    (0..count).map(record).collect()
}

/// The archive with every record changed by `edit`, which gets the name without the archive's
/// folder.
pub fn edited(archive: &Path, edit: impl Fn(&str, Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let edit = |(name, bytes): (String, Vec<u8>)| {
        let bytes = edit(name.split_once('/').map_or(&*name, |(_, rest)| rest), bytes);
        (name, bytes)
    };
    let records: Vec<_> = records(archive).into_iter().map(edit).collect();
    zip(records.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
}

/// A zip file of the records, stored as PyTorch stores them.
pub fn zip<'a>(records: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in records {
        zip.start_file(
            name,
            SimpleFileOptions::default().compression_method(CompressionMethod::Stored),
        )
        .unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The archive with `from` replaced by `to` in the program's JSON.
pub fn with_json(archive: &Path, from: &str, to: &str) -> Vec<u8> {
    edited(archive, |name, bytes| match name {
        "models/model.json" => {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains(from), "no {from} in the JSON");
            text.replace(from, to).into_bytes()
        }
        _ => bytes,
    })
}

/// Name and content of everything in a folder, hidden files too.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let paths = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    paths
        .map(|p| {
            (p.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&p).unwrap_or_default())
        })
        .collect()
}
