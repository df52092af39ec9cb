//! Files that tests read and make.

use std::{
    io::{Cursor, Read, Write},
    path::{Path, PathBuf},
};
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Names of records, with the folder, and their bytes.
pub type Records = Vec<(String, Vec<u8>)>;

/// All records of an archive of `tests/data`.
pub fn records(name: &str) -> Records {
    let bytes = std::fs::read(data(name)).unwrap();
    let mut zip = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut records = Vec::new();
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        records.push((entry.name().unwrap().into_owned(), bytes));
    }
    records
}

/// An archive of these records.
pub fn archive<N: AsRef<str>, B: AsRef<[u8]>>(records: &[(N, B)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in records {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        zip.start_file(name.as_ref(), options).unwrap();
        zip.write_all(bytes.as_ref()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A file that is there as long as the returned folder is.
pub fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

/// The result of reading a file of these bytes, or the error's text, where the path is `FILE`.
pub fn read_file<T, E: ToString>(
    bytes: &[u8],
    read: impl Fn(&Path) -> Result<T, E>,
) -> Result<T, String> {
    let (_folder, path) = file(bytes);
    read(&path).map_err(|error| error.to_string().replace(&path.display().to_string(), "FILE"))
}
