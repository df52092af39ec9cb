//! What can go wrong from archive to model, by stage.

use crate::{DimError, DomainError, IrVersionError, Misfit, NameError, OPSETS};
use pt2onnx_aten::{LowerError, SignatureError};
use pt2onnx_fx::{PassProblem, Site};
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
    /// The opset asked for is not among [`OPSETS`].
    #[error(
        "opset {0} is not among those that can be written, {first} to {last}",
        first = OPSETS.start(), last = OPSETS.end()
    )]
    Opset(
        /// The opset asked for.
        u32,
    ),
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

/// Of what sort an [`Error`] is. Python's `torch.onnx` has classes for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The archive cannot be read.
    Archive,
    /// Ops of the program, or the way they are used, have no translation: `torch.onnx.errors.UnsupportedOperatorError`.
    UnsupportedOperator,
    /// The program does something else that cannot be translated, such as a write that cannot be followed:
    /// `torch.onnx.errors.OnnxExporterError`.
    Conversion,
    /// The opset asked for cannot express the model.
    Opset,
    /// The runtime to write for cannot run the model.
    Target,
    /// What was asked for does not fit the program, or cannot be had: an opset, names, sizes.
    Options,
    /// Weights have no values, or those given do not fit the model.
    NoWeights,
    /// The model made is not valid ONNX, a bug of pt2onnx: `torch.onnx.errors.CheckerError`.
    Checker,
    /// There are warnings, which were asked to be errors.
    Warnings,
    /// The file is no ONNX model that can be read, or not a valid one.
    Model,
    /// The output cannot be written.
    Output,
    /// ONNX Runtime cannot load or run the model (feature `ort`).
    Runtime,
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
            Error::Opset(_)
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

/// A part of the program that cannot be translated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Failure {
    /// The node; none where it is an input or output.
    pub site: Option<Site>,
    /// Why.
    #[source]
    pub reason: Reason,
}

/// Why a part of the program cannot be translated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// A pass over the program's graph cannot treat the node.
    #[error(transparent)]
    Pass(PassProblem),
    /// The node has no translation.
    #[error(transparent)]
    Lower(LowerError),
    /// An input or output is nothing that ONNX has.
    #[error(transparent)]
    Signature(SignatureError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.site {
            Some(site) => write!(f, "{site}: {}", self.reason),
            None => self.reason.fmt(f),
        }
    }
}

impl Failure {
    /// Of what sort it is.
    pub fn kind(&self) -> ErrorKind {
        match self.reason {
            Reason::Lower(_) => ErrorKind::UnsupportedOperator,
            Reason::Pass(_) | Reason::Signature(_) => ErrorKind::Conversion,
        }
    }

    /// What the user can do about it, where the reason does not say so.
    pub fn suggestion(&self) -> Option<String> {
        let site = self.site.as_ref();
        match &self.reason {
            Reason::Lower(LowerError::UnknownOp { nearest, .. }) => Some(match nearest {
                Some(op) => format!("use {op}, or other operations that `pt2onnx ops` lists"),
                None => "use operations that `pt2onnx ops` lists".to_owned(),
            }),
            Reason::Lower(LowerError::Unsupported(_) | LowerError::Argument(_)) => {
                let op = site?.target.schema_name();
                Some(format!(
                    "write this part of the model in other operations; `pt2onnx explain {op}` tells of this one"
                ))
            }
            Reason::Lower(LowerError::WrongType { .. } | LowerError::Diagnostic(_)) => {
                Some("this is a bug of pt2onnx: please report it with the archive".to_owned())
            }
            Reason::Pass(_) | Reason::Signature(_) => None,
        }
    }
}

/// What passes over the graph could not treat; an error of another kind is no failure of a node.
pub(crate) fn of_passes(
    errors: Vec<pt2onnx_fx::Error>,
) -> impl Iterator<Item = Result<Failure, pt2onnx_fx::Error>> {
    errors.into_iter().map(|error| match error {
        pt2onnx_fx::Error::Pass { site, problem } => {
            Ok(Failure { site: Some(*site), reason: Reason::Pass(problem) })
        }
        other => Err(other),
    })
}

/// What could not be lowered.
pub(crate) fn of_lowering(error: pt2onnx_aten::Error) -> impl Iterator<Item = Failure> {
    let ends =
        error.signature.into_iter().map(|e| Failure { site: None, reason: Reason::Signature(e) });
    let nodes = error
        .nodes
        .into_iter()
        .map(|e| Failure { site: Some(e.site), reason: Reason::Lower(e.reason) });
    ends.chain(nodes)
}

fn lines(errors: &[impl fmt::Display]) -> String {
    errors.iter().map(|e| format!("\n  {e}")).collect()
}
