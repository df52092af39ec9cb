//! Archives of the conformance cases.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

/// The archive of a case of `testdata/cases/models.tar.zst`, written into the folder.
pub fn case(name: &str, folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cases");
    let packed = File::open(root.join("models.tar.zst")).unwrap();
    let unpacked = ruzstd::decoding::StreamingDecoder::new(packed).unwrap();
    let wanted = format!("{name}/model.pt2");
    let mut all = tar::Archive::new(unpacked);
    let mut entries = all.entries().unwrap().map(Result::unwrap);
    let mut entry = entries.find(|e| e.path().unwrap().ends_with(&wanted)).unwrap();
    let path = folder.join("case.pt2");
    entry.unpack(&path).unwrap();
    path
}
