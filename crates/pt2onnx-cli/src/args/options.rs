//! The options of a conversion: flags, laid over a file.

use crate::{error::CommandError, files::check_data_file, options_file::OptionsFile};
use clap::Args;
use pt2onnx::{Exporter, Flags, Spelling, Task, opt::Level};
use std::path::PathBuf;

/// The options of a conversion.
#[derive(Debug, Args)]
pub struct Options {
    /// Read options from a TOML file; its keys are the names of these flags, which override it
    #[arg(long, value_name = "FILE.toml", help_heading = "Input and output")]
    pub options: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags<{ Task::Convert as u8 }>,
    #[command(flatten)]
    level: NoOptimize,
}

/// `--no-optimize`.
#[derive(Debug, Args)]
pub struct NoOptimize {
    /// The same as `--optimize 0`
    #[arg(long, conflicts_with = "optimize", help_heading = "Optimisation")]
    no_optimize: bool,
}

impl NoOptimize {
    /// Sets the level if the flag is given.
    pub fn put(&self, options: &mut pt2onnx::Options) {
        if self.no_optimize {
            options.optimize = Level::Off;
        }
    }
}

/// The options without flags. Messages name options as flags.
pub fn defaults() -> pt2onnx::Options {
    let mut options = pt2onnx::Options::default();
    options.spelling = Spelling::Flag;
    options
}

impl Options {
    /// The options that the file and the flags give.
    pub fn read(self) -> Result<pt2onnx::Options, CommandError> {
        let file = self.options.as_deref().map(OptionsFile::read).transpose()?;
        let mut options = file.as_ref().map(|file| file.options.clone()).unwrap_or_default();
        options.spelling = Spelling::Flag;
        self.flags.put(&mut options);
        self.level.put(&mut options);
        match &file {
            // Errors in files that the options name refer to the place of the name.
            Some(file) => Exporter::with_options(options.clone())
                .map(drop)
                .map_err(|error| file.explain(error, &options))?,
            None => options.check()?,
        }
        check_data_file(&options)?;
        Ok(options)
    }
}
