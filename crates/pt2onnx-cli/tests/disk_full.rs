//! A conversion to a full disk leaves what was there.
#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "what other tests need")]
mod common;

use common::mlp;
use std::process::Command;
use tempfile::tempdir;

/// A file system of some kilobytes, where one may be mounted.
#[test]
fn the_disk_is_full() {
    let folder = tempdir().unwrap();
    let inner = |script: &str| {
        let mount =
            format!("mount -t tmpfs -o size=16k none {} && cd $_ && ", folder.path().display());
        let mut command = Command::new("unshare");
        command.args(["-rm", "bash", "-c", &(mount + script)]);
        command.arg(env!("CARGO_BIN_EXE_pt2onnx")).arg(mlp());
        command.output().unwrap()
    };
    if !inner("true").status.success() {
        eprintln!("no file system can be mounted");
        return;
    }
    let script = "echo old > m.onnx; \"$0\" $1 -o m.onnx --weights external --external-threshold 1; echo $?; ls -A; cat m.onnx";
    let ended = inner(script);
    let stderr = String::from_utf8(ended.stderr).unwrap();
    let error = "error: cannot write: No space left on device (os error 28)\n";
    assert!(stderr.starts_with(error), "{stderr}");
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), "5\nm.onnx\nold\n");
}
