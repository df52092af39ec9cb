//! A method of the exporter for each option.

use super::Exporter;
#[cfg(doc)]
use crate::options::Options;
use crate::{
    options::{Bytes, DefaultDtype, DynamicAxes, KvNames, option_setters},
    training::Training,
};
use pt2onnx_aten::{Mutations, Provenance, UnsupportedOps};
use pt2onnx_compress::{Calibration, CastWeights, Precision, Quantize};
use pt2onnx_opt::{Level, Target};
use pt2onnx_writer::Weights;
use std::path::PathBuf;

impl Exporter {
    option_setters!();

    /// Sets an entry of [`Options::metadata_prop`]. The last value of a key is used.
    pub fn metadata_prop(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let key = key.into();
        self.options.metadata_prop.retain(|(known, _)| *known != key);
        self.options.metadata_prop.push((key, value.into()));
        self
    }
}
