//! `pt2onnx show`: an ONNX model as text.

use crate::error::{self, CommandError};
use pt2onnx::writer::{ExternalData, read_with};
use std::path::Path;

/// The model of a file in ONNX's textual syntax.
pub fn show(path: &Path) -> Result<String, CommandError> {
    let reading = read_with(path, ExternalData::Ignored);
    let reading = reading.map_err(|e| error::model(path, &e))?;
    Ok(reading.model.to_string())
}
