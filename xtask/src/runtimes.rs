//! `runtimes`: converts networks for other runtimes, runs them there, and compares.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::generate::{root, target};
use crate::python::run;

/// The task. Runtimes are those of xtask/python/runtimes.py, or all.
pub fn runtimes(corpus: &Path, every: usize, graphs: bool, names: &[String]) -> Result<()> {
    let python = env::var_os("PT2ONNX_TORCH_PYTHON").context("PT2ONNX_TORCH_PYTHON is not set")?;
    let cargo = || Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    run(cargo().args(["build", "-p", "pt2onnx-cli"]).current_dir(root()))?;
    let work = target().join("runtimes");
    let rten = work.join("rten");
    if names.is_empty() || names.iter().any(|name| name == "rten") {
        let manifest = root().join("runtimes/rten/Cargo.toml");
        let mut build = cargo();
        build.args(["build", "--manifest-path"]).arg(manifest).arg("--target-dir").arg(&rten);
        run(&mut build)?;
    }
    let mut command = Command::new(python);
    command.arg(root().join("xtask/python/runtimes.py")).arg(&work).arg(corpus);
    command.arg(target().join("debug/pt2onnx")).arg(rten.join("debug/pt2onnx-rten"));
    command.args(names).args(["--every", &every.to_string()]);
    run(command.args(graphs.then_some("--graphs")))
}
