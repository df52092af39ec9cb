//! What can go wrong from archive to model, by stage.

use super::{ErrorKind, Failure};
use crate::{DimError, DomainError, IrVersionError, Misfit, NameError, OptionError};
use pt2onnx_ir::VerifyError;
use pt2onnx_opt::TargetError;
use std::fmt;

/// Why there is no model. [`Error::kind`] is for those who only want to know of what sort it is:
///
/// ```
/// use pt2onnx::{Error, ErrorKind, Exporter};
///
/// match Exporter::new().export("no/such/file.pt2") {
///     Ok(program) => println!("{}", program.to_text()),
///     Err(Error::Program(failures)) => failures.iter().for_each(|failure| eprintln!("{failure}")),
///     Err(error) if error.kind() == ErrorKind::Archive => eprintln!("is this the right file? {error}"),
///     Err(error) => eprintln!("{error}"),
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The archive cannot be read: no such file, no archive, a damaged one, one of a version that is not known.
    #[error(transparent)]
    Archive(pt2onnx_fx::Error),
    /// Parts of the program cannot be translated; all of them are listed.
    #[error("parts of the program cannot be translated:{}", lines(.0))]
    Program(
        /// All that is in the way.
        Vec<Failure>,
    ),
    /// An option has a value that it cannot have.
    #[error(transparent)]
    Options(#[from] OptionError),
    /// The model cannot be written in the IR version asked for.
    #[error(transparent)]
    IrVersion(#[from] IrVersionError),
    /// Inputs, outputs or other values cannot be called as asked.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Dimensions cannot be called as asked, or cannot have that size.
    #[error(transparent)]
    Dim(#[from] DimError),
    /// Domains cannot be imported as asked.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The model needs operators that the opset asked for does not have.
    #[error(transparent)]
    Legalise(#[from] pt2onnx_opt::LegaliseError),
    /// The runtime to write for cannot run the model.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The model made is not valid ONNX.
    #[error("the model that was made is not valid, which is a bug of pt2onnx; please report it:{}", lines(.0))]
    Verify(
        /// Everything wrong with it.
        Vec<VerifyError>,
    ),
    /// There are warnings, which were asked to be errors ([`Exporter::warnings_as_errors`](crate::Exporter::warnings_as_errors)).
    #[error("there are warnings, which are errors here:{}", lines(.0))]
    Warnings(
        /// All of them.
        Vec<String>,
    ),
    /// A file is no ONNX model that can be read ([`OnnxProgram::open`](crate::OnnxProgram::open)).
    #[error(transparent)]
    Read(#[from] pt2onnx_writer::ReadError),
    /// A model that was read is not valid ONNX.
    #[error("the model is not valid ONNX:{}", lines(.0))]
    Invalid(
        /// Everything wrong with it.
        Vec<VerifyError>,
    ),
    /// The model cannot be written.
    #[error(transparent)]
    Write(#[from] pt2onnx_writer::Error),
    /// Weights are not those that the model wants; all that is wrong is listed.
    #[error("the weights are not those of the model:{}", lines(.0))]
    Weights(
        /// Everything that is missing or does not fit.
        Vec<Misfit>,
    ),
    /// The model does not run in ONNX Runtime.
    #[cfg(feature = "ort")]
    #[error(transparent)]
    Run(#[from] crate::RunError),
}

impl Error {
    /// Of what sort it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Archive(_) => ErrorKind::Archive,
            Error::Program(failures) => match failures.iter().map(Failure::kind).next() {
                Some(kind) if failures.iter().all(|f| f.kind() == kind) => kind,
                _ if failures.is_empty() => ErrorKind::Conversion,
                _ => ErrorKind::UnsupportedOperator,
            },
            Error::Options(_)
            | Error::IrVersion(_)
            | Error::Name(_)
            | Error::Dim(_)
            | Error::Domain(_) => ErrorKind::Options,
            Error::Legalise(_) => ErrorKind::Opset,
            Error::Target(TargetError::Opset { .. }) => ErrorKind::Options,
            Error::Target(_) => ErrorKind::Target,
            Error::Verify(_) => ErrorKind::Checker,
            Error::Weights(_) => ErrorKind::NoWeights,
            Error::Warnings(_) => ErrorKind::Warnings,
            Error::Read(_) | Error::Invalid(_) => ErrorKind::Model,
            Error::Write(pt2onnx_writer::Error::NoData(_)) => ErrorKind::NoWeights,
            Error::Write(pt2onnx_writer::Error::NoSuchType { .. }) => ErrorKind::Conversion,
            Error::Write(pt2onnx_writer::Error::Unnamed(_)) => ErrorKind::Checker,
            Error::Write(_) => ErrorKind::Output,
            #[cfg(feature = "ort")]
            Error::Run(_) => ErrorKind::Runtime,
        }
    }
}

fn lines(errors: &[impl fmt::Display]) -> String {
    errors.iter().map(|e| format!("\n  {e}")).collect()
}
