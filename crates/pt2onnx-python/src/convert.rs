//! Conversion: of archives, and of programs that are in memory.

use crate::{
    errors,
    interrupt::detached,
    memory::{self, Lent, Row},
    options,
    program::Program,
    translate::{self, Translation},
};
use pt2onnx::{
    Error, Exporter, Failed, OnnxProgram, Source,
    fx::{Constant, archive},
    tensor::Storage,
};
use pyo3::{exceptions::PyValueError, prelude::*, pybacked::PyBackedBytes, types::PyList};
use std::path::PathBuf;

/// Converts the archive at a path.
#[pyfunction]
pub fn convert_path(
    py: Python<'_>,
    path: PathBuf,
    options: &str,
    translations: Vec<Translation>,
) -> PyResult<Program> {
    let exporter = exporter(options, translations)?;
    program(py, || exporter.attempt(path))
}

/// Converts an archive in memory. Weights are views of the bytes.
#[pyfunction]
pub fn convert_bytes(
    py: Python<'_>,
    archive: PyBackedBytes,
    options: &str,
    translations: Vec<Translation>,
) -> PyResult<Program> {
    let exporter = exporter(options, translations)?;
    let bytes = bytes::Bytes::from_owner(archive);
    program(py, || exporter.attempt(bytes))
}

/// Converts a module that torch.package's serialiser wrote, without the storages that are lent, by
/// the names of their records.
#[pyfunction]
pub fn convert_module(
    py: Python<'_>,
    package: PyBackedBytes,
    storages: Vec<(String, Lent)>,
    options: &str,
    translations: Vec<Translation>,
) -> PyResult<Program> {
    let exporter = exporter(options, translations)?;
    let records = archive::Records::from_bytes(bytes::Bytes::from_owner(package));
    let records = records.map_err(|error| errors::error(py, Error::Archive(error)))?;
    let lent = storages.into_iter().map(|(name, lent)| (name, Storage::new(memory::lent(lent))));
    let records = records.of_package(lent);
    program(py, || exporter.attempt(Source::Records(records)))
}

/// Converts a program: its JSON, as archives hold it, and its tensors, which are views of
/// `storages`. The JSON is taken out of a list, so that its memory is free when it has been read.
#[pyfunction]
pub fn convert_program(
    py: Python<'_>,
    json: &Bound<'_, PyList>,
    storages: Vec<Lent>,
    state: Vec<Row>,
    constants: Vec<Row>,
    options: &str,
    translations: Vec<Translation>,
) -> PyResult<Program> {
    let exporter = exporter(options, translations)?;
    let storages = memory::storages(storages)?;
    let state = memory::tensors(state, &storages)?;
    let constants = memory::tensors(constants, &storages)?.into_iter();
    let constants = constants.map(|(name, tensor)| (name, Constant::Tensor(tensor))).collect();
    let text: PyBackedBytes = json.call_method0("pop")?.extract()?;
    let read = archive::from_json(&text, state, constants);
    drop(text);
    let read = read.map_err(|error| errors::error(py, Error::Archive(error)))?;
    program(py, || exporter.attempt(read))
}

fn exporter(options: &str, translations: Vec<Translation>) -> PyResult<Exporter> {
    let mut options = options::read(options)?;
    // Calls of the functions become their nodes.
    options.inline |= translations.iter().any(|t| matches!(t, Translation::Library(_)));
    let exporter = Exporter::with_options(options);
    let mut exporter = exporter.map_err(|e| PyValueError::new_err(e.to_string()))?;
    translate::register(exporter.registry_mut(), translations)?;
    Ok(exporter)
}

/// Runs a conversion, while other Python threads continue.
fn program(
    py: Python<'_>,
    convert: impl FnOnce() -> Result<OnnxProgram, Failed> + Send,
) -> PyResult<Program> {
    let made = detached(py, convert)?;
    made.map(Program::from).map_err(|failed| errors::failed(py, failed))
}
