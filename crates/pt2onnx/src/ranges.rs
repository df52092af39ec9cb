//! Ranges of activations, which ONNX Runtime finds.

use crate::{Error, Options};
use pt2onnx_compress::Ranges;
use pt2onnx_ir::Model;

/// The ranges of activations on the samples that options name.
#[cfg(feature = "ort")]
pub(crate) fn of_samples(
    model: &Model,
    compression: &pt2onnx_compress::Options,
    options: &Options,
) -> Result<Ranges, Error> {
    crate::runtime::ranges(
        model,
        compression,
        options.calibration_method,
        &options.calibration_data,
    )
}

/// An error: there is no ONNX Runtime.
#[cfg(not(feature = "ort"))]
pub(crate) fn of_samples(
    _: &Model,
    _: &pt2onnx_compress::Options,
    options: &Options,
) -> Result<Ranges, Error> {
    Err(crate::OptionError::NoRuntime(options.spelling.text("{calibration-data}")).into())
}
