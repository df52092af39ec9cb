//! Conversions that end in the middle of writing: nothing is left behind, and what was there is as
//! it was.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[expect(dead_code, reason = "what other tests need")]
mod common;

use common::{files, mlp};
use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, Output},
};
use tempfile::tempdir;

/// Converts with data file and model file of more than a kilobyte each, behind a line of shell.
fn convert(line: &str, output: &Path) -> Output {
    let script = format!("{line}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_pt2onnx")]);
    command.arg(mlp()).arg("-o").arg(output);
    command.args(["--weights", "external", "--external-threshold", "1"]);
    command.output().unwrap()
}

/// Into an empty folder, and over an earlier export.
fn changes_nothing(attempt: impl Fn(&Path)) {
    let folder = tempdir().unwrap();
    let output = folder.path().join("m.onnx");
    attempt(&output);
    assert!(files(folder.path()).is_empty());
    fs::write(&output, "a model").unwrap();
    fs::write(folder.path().join("m.onnx.data"), "its weights").unwrap();
    let before = files(folder.path());
    attempt(&output);
    assert!(files(folder.path()) == before);
}

/// No file may have more than a kilobyte, and the signal is ignored: writing fails.
#[test]
fn writing_fails() {
    changes_nothing(|output| {
        let ended = convert("trap '' XFSZ; ulimit -f 2", output);
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(5), "{stderr}");
        let error = "error: cannot write: File too large (os error 27)\n";
        assert!(stderr.starts_with(error), "{stderr}");
    });
}

/// The same, and the signal is not ignored: the process is killed in the middle of writing.
#[test]
fn killed_while_writing() {
    changes_nothing(|output| {
        let ended = convert("ulimit -c 0; ulimit -f 2", output);
        assert_eq!(ended.status.signal(), Some(25), "{ended:?}");
    });
}

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
