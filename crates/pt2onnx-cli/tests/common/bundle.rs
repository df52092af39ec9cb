//! Archives of the conformance cases.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

/// The archive of a case of `testdata/cases/models.tar.zst`, written into the folder.
pub fn case(name: &str, folder: &Path) -> PathBuf {
    unpacked("cases/models.tar.zst", &format!("{name}/model.pt2"), folder.join("case.pt2"))
}

/// A file of a bundle of `testdata/`, written to a path.
pub fn unpacked(bundle: &str, file: &str, path: PathBuf) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let packed = File::open(root.join(bundle)).unwrap();
    let stream = ruzstd::decoding::StreamingDecoder::new(packed).unwrap();
    let mut all = tar::Archive::new(stream);
    let mut entries = all.entries().unwrap().map(Result::unwrap);
    let mut entry = entries.find(|e| e.path().unwrap().ends_with(file)).unwrap();
    entry.unpack(&path).unwrap();
    path
}
