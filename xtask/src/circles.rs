//! `circles`: prints the files of a crate, or of the Python package, that use each other's items in
//! a circle.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use xtask::modules::Graph;

use crate::generate::root;

/// The task, for one crate, the package `pt2onnx` of Python by its folder, or all.
pub fn circles(package: Option<&str>) -> Result<()> {
    let mut folders = vec![root().join("xtask")];
    for entry in fs::read_dir(root().join("crates"))? {
        folders.push(entry?.path());
    }
    folders.push(root().join("python/pt2onnx"));
    folders.sort();
    if let Some(package) = package {
        // The folder may be in another worktree.
        if Path::new(package).is_dir() {
            folders = vec![package.into()];
        }
        folders.retain(|folder| folder.ends_with(package));
        ensure!(!folders.is_empty(), "the workspace has no crate `{package}`");
    }
    let mut count = 0;
    for folder in folders {
        let name =
            folder.file_name().context("the folder of a crate has no name")?.to_string_lossy();
        let is_crate = folder.join("Cargo.toml").exists();
        let graph = if is_crate { Graph::of_crate(&folder) } else { Graph::of_python(&folder) };
        for circle in graph?.circles() {
            println!("{name}: a circle of {} files", circle.files().len());
            println!("{circle}");
            count += 1;
        }
    }
    ensure!(
        count == 0,
        "found {count} circles; move the items that both sides use into a file of their own"
    );
    Ok(())
}
