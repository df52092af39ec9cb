//! The errors of an export, by stage.

use super::failure::Failure;
use crate::{
    dims::DimError, domains::DomainError, ir_version::IrVersionError, merge_models::JoinError,
    modules::ModuleError, naming::NameError, options::OptionError, regions::ChooseError,
    runtime::RunError, weights::Misfit,
};
use pt2onnx_ir::VerifyError;
use pt2onnx_opt::TargetError;
use pt2onnx_report::{ErrorKind, Warning};
use std::fmt;

/// The reason why an export, or reading or writing a model, failed. [`Error::kind`] gives only the
/// kind of the error:
///
/// ```
/// use pt2onnx::{Error, ErrorKind, Exporter};
///
/// match Exporter::new().export("no/such/file.pt2") {
///     Ok(program) => println!("{}", program.to_text()),
///     Err(Error::Program(failures)) => failures.iter().for_each(|failure| eprintln!("{failure}")),
///     Err(error) if error.kind() == ErrorKind::Archive => eprintln!("right file? {error}"),
///     Err(error) => eprintln!("{error}"),
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The archive cannot be read: it does not exist, is not an archive, is damaged, or has an
    /// unknown version.
    #[error(transparent)]
    Archive(pt2onnx_fx::Error),
    /// A TorchScript archive cannot be read or flattened.
    #[error(transparent)]
    TorchScript(Box<pt2onnx_torchscript::Error>),
    /// Parts of the program cannot be translated; all of them are listed.
    #[error("parts of the program cannot be translated:{}", lines(.0))]
    Program(
        /// Everything that prevents conversion.
        Vec<Failure>,
    ),
    /// An option has a value that it cannot have.
    #[error(transparent)]
    Options(#[from] OptionError),
    /// The model cannot be written in the IR version asked for.
    #[error(transparent)]
    IrVersion(#[from] IrVersionError),
    /// Inputs, outputs or other values cannot have the names asked for.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Dimensions cannot have the names or sizes asked for.
    #[error(transparent)]
    Dim(#[from] DimError),
    /// Domains cannot be imported at the versions asked for.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The program has no module of the name that is given, to make a function of.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The model needs operators that the opset asked for does not have.
    #[error(transparent)]
    Legalise(#[from] pt2onnx_opt::LegaliseError),
    /// A part of a model cannot be a model ([`OnnxProgram::extract`](crate::OnnxProgram::extract)).
    #[error(transparent)]
    Extract(#[from] pt2onnx_ir::ExtractError),
    /// Two models cannot be joined ([`OnnxProgram::join`](crate::OnnxProgram::join)).
    #[error(transparent)]
    Join(Box<JoinError>),
    /// Models of one program cannot be one model
    /// ([`OnnxProgram::choose`](crate::OnnxProgram::choose)).
    #[error(transparent)]
    Choose(Box<ChooseError>),
    /// The runtime to write for cannot run the model.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The model cannot be compressed as asked.
    #[error(transparent)]
    Compress(#[from] pt2onnx_compress::Error),
    /// The exported model is not valid ONNX.
    #[error("the exported model is not valid ONNX, which is a bug of pt2onnx: please report it:{}", lines(.0))]
    Verify(
        /// Everything that is wrong with it.
        Vec<VerifyError>,
    ),
    /// The model was changed by the caller
    /// ([`OnnxProgram::model_mut`](crate::OnnxProgram::model_mut)), and is not valid ONNX.
    #[error("the model is not valid ONNX after it was edited:{}", lines(.0))]
    Edited(
        /// Everything that is wrong with it.
        Vec<VerifyError>,
    ),
    /// There are warnings, and
    /// [`Exporter::warnings_as_errors`](crate::Exporter::warnings_as_errors) is set.
    #[error("there are warnings, and warnings are errors:{}", lines(.0))]
    Warnings(
        /// All warnings.
        Vec<Warning>,
    ),
    /// The file cannot be read as an ONNX model ([`OnnxProgram::open`](crate::OnnxProgram::open)).
    #[error(transparent)]
    Read(#[from] pt2onnx_writer::ReadError),
    /// A model that was read is not valid ONNX.
    #[error("the model is not valid ONNX:{}", lines(.0))]
    Invalid(
        /// Everything that is wrong with it.
        Vec<VerifyError>,
    ),
    /// The model cannot be written.
    #[error(transparent)]
    Write(#[from] pt2onnx_writer::Error),
    /// The weights do not fit the model; everything that is missing or wrong is listed.
    #[error("the weights do not fit the model:{}", lines(.0))]
    Weights(
        /// Everything that is missing or does not fit.
        Vec<Misfit>,
    ),
    /// The model does not run in ONNX Runtime (feature `ort`).
    #[error(transparent)]
    Run(RunError),
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Archive(_) => ErrorKind::Archive,
            Error::TorchScript(error) => match &**error {
                pt2onnx_torchscript::Error::Run { problem, .. } => match problem.op() {
                    Some(_) => ErrorKind::UnsupportedOperator,
                    None => ErrorKind::Conversion,
                },
                pt2onnx_torchscript::Error::Writes { .. } => ErrorKind::Conversion,
                pt2onnx_torchscript::Error::NoMethod { .. }
                | pt2onnx_torchscript::Error::Untold { .. }
                | pt2onnx_torchscript::Error::Misfit { .. }
                | pt2onnx_torchscript::Error::NoPart { .. }
                | pt2onnx_torchscript::Error::InputTwice(_)
                | pt2onnx_torchscript::Error::NoInput { .. } => ErrorKind::Options,
                _ => ErrorKind::Archive,
            },
            Error::Program(failures) => match failures.iter().map(Failure::kind).next() {
                Some(kind) if failures.iter().all(|f| f.kind() == kind) => kind,
                _ if failures.is_empty() => ErrorKind::Conversion,
                _ => ErrorKind::UnsupportedOperator,
            },
            Error::Options(_)
            | Error::IrVersion(_)
            | Error::Name(_)
            | Error::Dim(_)
            | Error::Domain(_)
            | Error::Extract(_)
            | Error::Join(_)
            | Error::Choose(_)
            | Error::Module(_) => ErrorKind::Options,
            Error::Legalise(pt2onnx_opt::LegaliseError::Opset(_)) => ErrorKind::Options,
            Error::Legalise(_) => ErrorKind::Opset,
            Error::Target(TargetError::Opset { .. }) => ErrorKind::Options,
            Error::Target(_) => ErrorKind::Target,
            Error::Compress(pt2onnx_compress::Error::Opset { .. }) => ErrorKind::Opset,
            Error::Compress(pt2onnx_compress::Error::NoValues(_)) => ErrorKind::NoWeights,
            Error::Compress(_) => ErrorKind::Options,
            Error::Verify(_) => ErrorKind::Checker,
            Error::Weights(_) => ErrorKind::NoWeights,
            Error::Warnings(_) => ErrorKind::Warnings,
            Error::Read(_) | Error::Invalid(_) | Error::Edited(_) => ErrorKind::Model,
            Error::Write(pt2onnx_writer::Error::NoData(_)) => ErrorKind::NoWeights,
            Error::Write(
                pt2onnx_writer::Error::NoSuchType { .. } | pt2onnx_writer::Error::Values(_),
            ) => ErrorKind::Conversion,
            Error::Write(
                pt2onnx_writer::Error::DataName { .. } | pt2onnx_writer::Error::Alignment(_),
            ) => ErrorKind::Options,
            Error::Write(pt2onnx_writer::Error::Unnamed(_)) => ErrorKind::Checker,
            Error::Write(_) => ErrorKind::Output,
            Error::Run(_) => ErrorKind::Runtime,
        }
    }
}

impl From<JoinError> for Error {
    fn from(error: JoinError) -> Self {
        Self::Join(Box::new(error))
    }
}

impl From<ChooseError> for Error {
    fn from(error: ChooseError) -> Self {
        Self::Choose(Box::new(error))
    }
}

impl From<pt2onnx_torchscript::Error> for Error {
    fn from(error: pt2onnx_torchscript::Error) -> Self {
        Self::TorchScript(Box::new(error))
    }
}

fn lines(errors: &[impl fmt::Display]) -> String {
    errors.iter().map(|e| format!("\n  {e}")).collect()
}
