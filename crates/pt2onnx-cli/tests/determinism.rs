//! The same archive and options give the same bytes: in another process, with one thread and with
//! many.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::tempdir;

/// In `testdata/cases/models.tar.zst`: small and large, with state, of halves, with sequences.
const MODELS: &[&str] =
    &["bert.Model.fp16", "dac", "gpt2.past", "llama.past.eager", "longt5", "mixtral"];

const OPTIONS: &[&str] =
    &["--weights embed --opset 23", "--weights external --opset 18 --target ort-cpu"];

/// Archives of each version of PyTorch, and models out of the bundle, unpacked into the folder.
fn archives(folder: &Path) -> Vec<PathBuf> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let all = fs::read_dir(testdata.join("archives")).unwrap();
    let mut archives: Vec<PathBuf> = all.map(|entry| entry.unwrap().path()).collect();
    archives.retain(|path| path.extension().is_some_and(|e| e == "pt2"));
    let bundle = File::open(testdata.join("cases/models.tar.zst")).unwrap();
    let stream = ruzstd::decoding::StreamingDecoder::new(bundle).unwrap();
    for entry in tar::Archive::new(stream).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().into_owned();
        let model = path.parent().and_then(|p| p.file_name()?.to_str().map(str::to_owned));
        let model = model.filter(|model| MODELS.contains(&model.as_str()));
        if let (Some(model), true) = (model, path.ends_with("model.pt2")) {
            let unpacked = folder.join(model).with_added_extension("pt2");
            entry.unpack(&unpacked).unwrap();
            archives.push(unpacked);
        }
    }
    assert_eq!(archives.len(), 15 + MODELS.len());
    archives
}

/// The files that a conversion leaves.
fn convert(archive: &Path, options: &str, threads: &str) -> BTreeMap<OsString, Vec<u8>> {
    let folder = tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_pt2onnx"))
        .arg(archive)
        .arg("-o")
        .arg(folder.path().join("m.onnx"))
        .args(options.split(' '))
        .env("RAYON_NUM_THREADS", threads)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}: {run:?}", archive.display());
    let files = fs::read_dir(folder.path()).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name(), fs::read(entry.path()).unwrap())
    });
    files.collect()
}

#[test]
fn bytes_depend_on_archive_and_options_alone() {
    let folder = tempdir().unwrap();
    let mut apart = 0;
    for archive in archives(folder.path()) {
        for options in OPTIONS {
            let once = convert(&archive, options, "1");
            let again = convert(&archive, options, "8");
            assert!(once == again, "{} {options}", archive.display());
            apart += usize::from(once.len() > 1);
        }
    }
    assert!(apart >= MODELS.len(), "no external weights");
}
