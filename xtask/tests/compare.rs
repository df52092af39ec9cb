//! Tests `compare` with two shell scripts as commands.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use xtask::compare::{Counts, compare};

/// Different content of a file, an additional file, and a different exit code are differences.
/// Nothing else is.
#[test]
fn differences_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("below")).unwrap();
    for archive in ["same.pt", "below/bytes.pt2", "more.pt2", "code.pt2", "not.zip"] {
        fs::write(path(archive), archive).unwrap();
    }
    let command = |name: &str, rest: &str| {
        let script = format!("#!/bin/sh\ncp \"$1\" \"$3\" || exit 9\n{rest}\n");
        fs::write(path(name), script).unwrap();
        fs::set_permissions(path(name), Permissions::from_mode(0o755)).unwrap();
        path(name)
    };
    let old = command("old", "");
    let new = command(
        "new",
        "case $1 in *bytes*) echo $4 >> $3 ;; *more*) touch $3.data ;; *code*) exit 3 ;; esac",
    );
    let counts = |new, sample| {
        let args = ["--args".into()];
        compare(&old, new, folder.path(), sample, &args).unwrap()
    };
    assert_eq!(counts(&new, None), Counts { archives: 4, converted: 3, differ: 3 });
    assert_eq!(counts(&old, None), Counts { archives: 4, converted: 4, differ: 0 });
    assert_eq!(counts(&old, Some(2)), Counts { archives: 2, converted: 2, differ: 0 });
    assert!(compare(&old, &new, &path("below/none"), None, &[]).is_err());
}
