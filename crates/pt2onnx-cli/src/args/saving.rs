//! Defines the flags for files with weights.

use super::{
    merge::{set, set_some},
    values,
};
use crate::error::{Code, CommandError};
use clap::{Args, builder::NonEmptyStringValueParser};
use pt2onnx::{Options, Weights, parse_bytes};

/// How data files are written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Weights")]
pub struct Saving {
    /// Name of the file with external weights, beside the model [default: OUT.onnx.data]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub weights_file: Option<String>,
    /// Weights of fewer bytes stay in the model file
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    external_threshold: Option<u64>,
    /// Largest size of a data file (4096, 500MB, 2GiB), above which there are several
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    shard_size: Option<u64>,
    /// External weights start at multiples of this; Windows can map them at 64KiB
    #[arg(long, value_name = "BYTES", value_parser = values::alignment)]
    alignment: Option<u64>,
    /// Let `link` refer to files outside of the model's folder, which many runtimes refuse
    #[arg(long, alias = "link-outside")]
    allow_external_paths: bool,
}

impl Saving {
    /// Puts the flags that are given into the options.
    pub fn put(self, options: &mut Options) {
        let Self { weights_file, external_threshold, shard_size, alignment, allow_external_paths } =
            self;
        set_some(&mut options.weights_file, weights_file);
        set(&mut options.external_threshold, external_threshold);
        set_some(&mut options.shard_size, shard_size);
        set(&mut options.alignment, alignment);
        options.allow_external_paths |= allow_external_paths;
    }
}

/// An error if options for data files are given, but no data file will be written.
pub fn check_data_file(options: &Options) -> Result<(), CommandError> {
    let named = options.weights_file.is_some() || options.shard_size.is_some();
    if named && matches!(options.weights, Weights::Embed | Weights::Link) {
        let what = "--weights-file and --shard-size are given, but there will be no data file";
        Err(CommandError::new(Code::Usage, what)
            .help("leave them out, or use `--weights external`"))
    } else {
        Ok(())
    }
}
