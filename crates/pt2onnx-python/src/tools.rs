//! Reading ONNX models, inspecting archives, and the command itself.

use crate::{
    errors,
    interrupt::detached,
    memory::{self, Lent},
    options,
    program::Program,
};
use pt2onnx::{Exporter, OnnxProgram, Registry, Report};
use pyo3::{exceptions::PyValueError, prelude::*, pybacked::PyBackedBytes};
use std::path::PathBuf;

/// Reads the ONNX model at a path.
#[pyfunction]
pub fn open_model(py: Python<'_>, path: PathBuf) -> PyResult<Program> {
    let opened = detached(py, || OnnxProgram::open(path))?;
    opened.map(Program::from).map_err(|e| errors::error(py, e))
}

/// Reads an ONNX model in memory, with its external data by location.
#[pyfunction]
pub fn open_parts(
    py: Python<'_>,
    model: PyBackedBytes,
    data: Vec<(String, Lent)>,
) -> PyResult<Program> {
    let data: Vec<_> = data.into_iter().map(|(name, bytes)| (name, memory::lent(bytes))).collect();
    let bytes = bytes::Bytes::from_owner(model);
    let opened = detached(py, || OnnxProgram::from_bytes(bytes, data))?;
    opened.map(Program::from).map_err(|e| errors::error(py, e))
}

/// The report about the archive at a path, as JSON: what it holds, and whether the options allow to
/// convert it.
#[pyfunction]
pub fn inspect(py: Python<'_>, path: PathBuf, options: &str) -> PyResult<String> {
    let exporter = Exporter::with_options(options::read(options)?);
    let exporter = exporter.map_err(|e| PyValueError::new_err(e.to_string()))?;
    let report = detached(py, || report(&exporter, path))?;
    Ok(report.to_json())
}

fn report(exporter: &Exporter, path: PathBuf) -> Report {
    match exporter.attempt(path) {
        Ok(program) => {
            let mut report = program.report().clone();
            if let Err(error) = program.check() {
                report.failed(&error);
            }
            report
        }
        Err(failed) => *failed.report,
    }
}

/// Names of the ops that have a translation.
#[pyfunction]
pub fn supported_ops() -> Vec<String> {
    Registry::default().ops().iter().map(|op| op.name().to_owned()).collect()
}

/// Loads the library of ONNX Runtime at a path, for all that runs models afterwards. It has no
/// effect if one was loaded before.
#[pyfunction]
pub fn load_ort(py: Python<'_>, library: PathBuf) -> PyResult<()> {
    let loaded = py.detach(|| pt2onnx::load_ort(library));
    loaded.map(drop).map_err(|e| errors::error(py, e.into()))
}

/// Runs the command `pt2onnx` with these words, the program's name first. Returns its exit code.
#[pyfunction]
pub fn command(py: Python<'_>, words: Vec<String>) -> PyResult<u8> {
    detached(py, || pt2onnx_cli::main(words, pt2onnx_cli::Process::Shared))
}
