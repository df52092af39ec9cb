//! The functions of ONNX Runtime in a build without it.

use crate::{
    error::Error,
    options::{OptionError, Options},
    runtime::RunError,
};
use pt2onnx_compress::Calibrated;
use pt2onnx_ir::Model;

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {}
    }
}

/// Always an error.
pub(crate) fn calibrated(
    _: &Model,
    _: &pt2onnx_compress::Options,
    options: &Options,
) -> Result<Calibrated, Error> {
    Err(OptionError::NoRuntime(options.spelling.text("{calibration-data}")).into())
}
