//! Items that all `regen-*` tasks share: the path of the workspace, formatting, and writing or
//! comparing files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail, ensure};

/// Generated files: the path relative to the workspace root, and the content.
pub type Files = BTreeMap<PathBuf, String>;

/// The workspace root.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The folder for downloads and builds, which are never committed.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Formats `source` as `cargo fmt` does, so that `cargo fmt --check` and `--check` agree.
pub fn rustfmt(source: String) -> Result<String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting rustfmt")?;
    let mut stdin = child.stdin.take().context("rustfmt has no standard input")?;
    let writer = thread::spawn(move || stdin.write_all(source.as_bytes()));
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "rustfmt: {}", output.status);
    if !matches!(writer.join(), Ok(Ok(()))) {
        bail!("rustfmt did not read all of its input");
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Writes `files`. With `check`, compares them with the committed files instead. `owned` is a
/// folder that has no other files: any others are removed, or reported with `check`.
pub fn publish(files: &Files, owned: Option<&Path>, check: bool) -> Result<()> {
    let mut differences = Vec::new();
    for (path, content) in files {
        let full = root().join(path);
        let old = fs::read_to_string(&full).ok();
        if old.as_deref() == Some(content) {
            continue;
        }
        if check {
            differences.push(difference(path, old.as_deref(), content));
        } else {
            if let Some(parent) = full.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&full, content).with_context(|| format!("writing {}", full.display()))?;
            println!("wrote {}", path.display());
        }
    }
    for path in owned.map(listing).transpose()?.unwrap_or_default() {
        if files.contains_key(&path) {
            continue;
        }
        if check {
            differences.push(format!("{}: is no longer generated", path.display()));
        } else {
            fs::remove_file(root().join(&path))?;
            println!("removed {}", path.display());
        }
    }
    ensure!(
        differences.is_empty(),
        "these files are out of date (run the task without --check):\n{}",
        differences.join("\n")
    );
    Ok(())
}

/// Describes the first differing line of a file.
fn difference(path: &Path, old: Option<&str>, new: &str) -> String {
    let path = path.display();
    let Some(old) = old else {
        return format!("{path}: missing");
    };
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(end of file)").to_owned();
    format!("{path}:{}:\n  committed: {}\n  generated: {}", same + 1, line(old), line(new))
}

/// All files below `folder`, as paths relative to the workspace root.
fn listing(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
