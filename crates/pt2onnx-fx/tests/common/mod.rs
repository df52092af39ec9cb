//! Archives of `tests/data` for all tests.

#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use std::{
    io::{Cursor, Read},
    path::{Path, PathBuf},
};
use zip::ZipArchive;

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// All records of an archive, names with the folder.
pub fn records(name: &str) -> Vec<(String, Vec<u8>)> {
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
