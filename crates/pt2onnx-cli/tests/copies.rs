//! Weights are copied in the kernel, from file to file.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[expect(dead_code, reason = "what other tests need")]
#[path = "common/bundle.rs"]
mod bundle;
#[expect(dead_code, reason = "what other tests need")]
mod common;

use bundle::unpacked;
use common::pt2onnx;
use pt2onnx::{ir::Model, writer};
use std::{
    fs::{self, File},
    path::Path,
};
use tempfile::tempdir;

/// Smaller weights are not worth a call.
const IN_KERNEL: usize = 64 << 10;

/// Whether the kernel copies between files of a folder.
fn kernel_copies(folder: &Path) -> bool {
    let (from, to) = (folder.join("from"), folder.join("to"));
    fs::write(&from, [1; 1 << 10]).unwrap();
    let (from, to) = (File::open(from).unwrap(), File::create(to).unwrap());
    rustix::fs::copy_file_range(from, None, to, None, 1 << 10) == Ok(1 << 10)
}

/// The bytes that the kernel copied, as `-vv` reports.
fn copied(stderr: &str) -> usize {
    let line = stderr.lines().find(|line| line.ends_with(" were copied in the kernel")).unwrap();
    line.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn embedded_weights_as_external_ones() {
    let folder = tempdir().unwrap();
    if !kernel_copies(folder.path()) {
        return;
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let archive = unpacked("seeds/archives.tar.zst", "alexnet.pt", folder.path().join("a.pt"));
    let archive = archive.to_str().unwrap();
    let (made, again) = (path("embed.onnx"), path("again.onnx"));
    for args in [
        &[archive, "-o", &made, "--weights", "embed"][..],
        &[archive, "-o", &path("external.onnx"), "--weights", "external"],
        &["optimize", &made, "-o", &again, "--weights", "embed"],
        &["optimize", &path("external.onnx"), "-o", &again, "--weights", "embed"],
    ] {
        let run = pt2onnx([args, &["-vv"]].concat());
        assert_eq!(run.code, 0, "{run:?}");
        let model: Model = writer::read(Path::new(&made)).unwrap();
        let constants = model.values().filter_map(|(_, data)| data.constant());
        let sizes = constants.map(|tensor| tensor.nbytes()).filter(|bytes| *bytes >= IN_KERNEL);
        let large: usize = sizes.sum();
        assert!(large > IN_KERNEL, "{large}");
        assert_eq!(copied(&run.stderr), large, "{args:?}");
    }
}
