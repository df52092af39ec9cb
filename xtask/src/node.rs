//! `node`: runs folders of pt2onnx.hf in Node with the package @huggingface/transformers.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::generate::{root, target};
use crate::package;
use crate::python::{output, run};

/// The package that npm installs.
const PACKAGE: &str = "@huggingface/transformers@4.3.2";

/// The task. Folders are those of xtask/python/transformers_js.py, or all.
pub fn node(folders: &[String]) -> Result<()> {
    for program in ["node", "npm"] {
        if output(Command::new(program).arg("--version")).is_err() {
            println!("skipped: {program} is missing, which runs transformers.js: install Node 20");
            return Ok(());
        }
    }
    let python = env::var_os("PT2ONNX_TORCH_PYTHON").context("PT2ONNX_TORCH_PYTHON is not set")?;
    let modules = target().join("node");
    install(&modules)?;
    package::build(&[])?;
    let mut command = Command::new(python);
    command.env("PYTHONPATH", root().join("python")).env("OMP_NUM_THREADS", "1");
    command.arg(root().join("xtask/python/transformers_js.py")).arg(&modules);
    run(command.args(folders))
}

/// Installs the package. Its scripts, which download more, do not run: it has the binaries.
fn install(modules: &Path) -> Result<()> {
    std::fs::create_dir_all(modules)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
    run(npm.arg(modules).arg(PACKAGE)).context("npm cannot install the package")
}
