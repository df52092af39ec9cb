//! The output on a terminal.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[expect(dead_code, reason = "what other tests need")]
mod common;

use common::{command, mlp};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{fs::File, io::Read};
use tempfile::tempdir;

/// The command's output on a terminal.
fn on_terminal(args: &[&str]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let status = command().args(args).stderr(open()).status().unwrap();
    assert!(status.success());
    let (mut shown, mut bytes) = (Vec::new(), [0; 4096]);
    let mut terminal = File::from(terminal);
    // The end of a terminal that nobody has open is an error.
    while let Ok(read @ 1..) = terminal.read(&mut bytes) {
        shown.extend_from_slice(&bytes[..read]);
    }
    String::from_utf8(shown).unwrap()
}

#[test]
fn a_terminal_shows_one_line() {
    let folder = tempdir().unwrap();
    let (model, output) = (mlp(), folder.path().join("m.onnx"));
    let args = [model.to_str().unwrap(), "-o", output.to_str().unwrap()];
    let shown = on_terminal(&args);
    let line = shown.trim_end().strip_prefix(output.to_str().unwrap()).unwrap();
    let parts: Vec<&str> = line.split(", ").collect();
    assert_eq!((parts.len(), parts[0], parts[2]), (4, ": 10 nodes", "opset 20"), "{shown}");
    assert!(parts[1].ends_with("KiB") && parts[3].ends_with(" s"), "{shown}");
    assert_eq!(on_terminal(&[args[0], args[1], args[2], "-q"]), "");
}
