//! `cases`: runs the graphs of the optimiser's text cases in ONNX Runtime, before and after.

use std::process::Command;

use anyhow::Result;

use crate::generate::root;
use crate::python::{interpreter, run};

/// The task.
pub fn cases() -> Result<()> {
    let script = root().join("crates/pt2onnx-opt/tests/it/cases/check.py");
    run(Command::new(interpreter()?).arg(script))
}
