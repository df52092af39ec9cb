//! `pt2onnx show`: an ONNX model as text or as a drawing.

use crate::error::{self, CommandError};
use pt2onnx::writer::{ExternalData, read_with};
use std::path::Path;

/// The model in ONNX's textual syntax, as its file has it; with `dot` in the DOT language.
pub fn show(path: &Path, dot: bool) -> Result<String, CommandError> {
    let reading = read_with(path, ExternalData::Ignored);
    let reading = reading.map_err(|e| error::model(path, &e))?;
    Ok(match dot {
        true => pt2onnx::ir::dot(&reading.model),
        false => reading.model.to_string(),
    })
}
