//! Defines the flags that say how weights are compressed.

use super::{
    choices,
    merge::{set, set_list, set_some},
    values,
};
use clap::{Args, builder::NonEmptyStringValueParser};
use pt2onnx::compress::{Calibration, CastWeights, Precision, Quantize};
use std::path::PathBuf;

/// How weights are compressed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Compression")]
pub struct Compress {
    /// Store weights in a smaller type, with a Cast after each
    #[arg(long, value_parser = choices::cast_weights())]
    cast_weights: Option<CastWeights>,
    /// Compute in another element type; inputs and outputs keep theirs
    #[arg(long, value_parser = choices::precision())]
    precision: Option<Precision>,
    /// Give inputs and outputs the element type of `--precision`, too
    #[arg(long)]
    cast_io: bool,
    /// Quantise weights
    #[arg(long, value_parser = choices::quantize())]
    quantize: Option<Quantize>,
    /// Elements that share a scale: 16, 32, 64, 128 or 256 [default: those of a channel]
    #[arg(long, alias = "block", value_name = "N", value_parser = values::count)]
    block_size: Option<usize>,
    /// Give quantised weights zero points
    #[arg(long, alias = "asymmetric")]
    zero_points: bool,
    /// Give weights of `dynamic-int8` and `static-int8` a sign: faster on processors with VNNI,
    /// wrong on older x86 ones
    #[arg(long)]
    signed: bool,
    /// `accuracy_level` of MatMulNBits, 0 to 4
    #[arg(long, value_name = "LEVEL", value_parser = values::accuracy)]
    accuracy_level: Option<u8>,
    /// Compress only these weights, by name or by operator: `encoder.*`, `MatMul`
    #[arg(long, value_name = "NAME,OP", value_parser = NonEmptyStringValueParser::new(), value_delimiter = ',')]
    compress_include: Vec<String>,
    /// Do not compress these weights
    #[arg(long, value_name = "NAME,OP", value_parser = NonEmptyStringValueParser::new(), value_delimiter = ',')]
    compress_exclude: Vec<String>,
    /// Do not compress weights of fewer elements
    #[arg(long, alias = "compress-min", value_name = "N", value_parser = values::count)]
    min_elements: Option<usize>,
    /// Samples of the inputs for `static-int8`, by name; can be given several times
    #[arg(long, alias = "calibrate", value_name = "FILE.npz")]
    calibration_data: Vec<PathBuf>,
    /// How the ranges of activations are found from samples
    #[arg(long, alias = "calibration", value_parser = choices::calibration())]
    calibration_method: Option<Calibration>,
}

impl Compress {
    /// Puts the flags that are given into the options.
    pub fn put(self, to: &mut pt2onnx::Options) {
        set_some(&mut to.cast_weights, self.cast_weights);
        set(&mut to.precision, self.precision);
        to.cast_io |= self.cast_io;
        set_some(&mut to.quantize, self.quantize);
        set_some(&mut to.block_size, self.block_size);
        to.zero_points |= self.zero_points;
        to.signed |= self.signed;
        set_some(&mut to.accuracy_level, self.accuracy_level);
        set_list(&mut to.compress_include, self.compress_include);
        set_list(&mut to.compress_exclude, self.compress_exclude);
        set(&mut to.min_elements, self.min_elements);
        set_list(&mut to.calibration_data, self.calibration_data);
        set(&mut to.calibration_method, self.calibration_method);
    }
}
