//! The functions of ONNX Runtime in a build without it.

use crate::{
    error::Error,
    options::{OptionError, Options},
    runtime::RunError,
};
use pt2onnx_compress::Ranges;
use pt2onnx_ir::Model;

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {}
    }
}

/// Always an error.
pub(crate) fn activation_ranges(
    _: &Model,
    _: &pt2onnx_compress::Options,
    options: &Options,
) -> Result<Ranges, Error> {
    Err(OptionError::NoRuntime(options.spelling.text("{calibration-data}")).into())
}
