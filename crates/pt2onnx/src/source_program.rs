//! The program that a conversion starts from.

use crate::{
    error::Error,
    options::{DefaultDtype, OptionError, Options},
};
use pt2onnx_fx::ExportedProgram;
use pt2onnx_report::Warning;

/// A program, and warnings about how it was read.
pub(crate) struct SourceProgram {
    pub program: ExportedProgram,
    pub warnings: Vec<Warning>,
    /// Whether it was read from an archive: whoever converts it did not see how it was captured.
    pub archived: bool,
    /// The same program by cases of sizes, in case this one cannot be translated.
    pub case_split: Option<Box<SourceProgram>>,
}

impl SourceProgram {
    /// A program of `torch.export`.
    ///
    /// # Errors
    /// Options are given that only TorchScript has.
    pub fn exported(program: ExportedProgram, options: &Options) -> Result<Self, Error> {
        for (option, given) in [
            ("{input}", !options.input.is_empty()),
            ("{method}", options.method != Options::default().method),
            ("{default-dtype}", options.default_dtype != DefaultDtype::default()),
        ] {
            if given {
                let option = options.spelling.text(option);
                return Err(Error::Options(OptionError::OnlyTorchScript(option)));
            }
        }
        Ok(Self { program, warnings: Vec::new(), archived: false, case_split: None })
    }
}
