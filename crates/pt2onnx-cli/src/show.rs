//! `pt2onnx show`: an ONNX model as text.

use crate::report::{self, Report};
use pt2onnx::writer::{ExternalData, read_with};
use std::path::Path;

/// The model in ONNX's textual syntax, as its file has it.
pub fn show(path: &Path) -> Result<String, Report> {
    let reading = read_with(path, ExternalData::Ignored);
    let reading = reading.map_err(|e| report::model(path, &e))?;
    Ok(reading.model.to_string())
}
