//! `regen-options`: generates documentation and Python's keywords from the declaration of options.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use xtask::options::{page, python};

use crate::generate::{publish, root};

/// Writes the tables of docs/options.md, and python/pt2onnx/_options.py.
pub fn regen(check: bool) -> Result<()> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "pt2onnx", "--example", "option_table"])
        .current_dir(root())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    ensure!(output.status.success(), "option_table: {}", output.status);
    let options: Vec<_> = serde_json::from_slice(&output.stdout)?;
    let old = fs::read_to_string(root().join("docs/options.md"))?;
    let files = [
        ("docs/options.md", page(&old, &options)?),
        ("python/pt2onnx/_options.py", python(&options)),
    ];
    publish(&files.map(|(path, text)| (PathBuf::from(path), text)).into(), None, check)
}
