//! What can go wrong from archive to model, by stage.

use crate::{DimError, DomainError, NameError, OPSETS};
use pt2onnx_ir::VerifyError;

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The archive cannot be read: no such file, no archive, a damaged one, one of a version that is not known.
    #[error(transparent)]
    Archive(pt2onnx_fx::Error),
    /// The program does something that a pass over its graph cannot treat.
    #[error(transparent)]
    Pass(pt2onnx_fx::Error),
    /// Parts of the program have no translation; all of them are listed.
    #[error(transparent)]
    Unsupported(#[from] pt2onnx_aten::Error),
    /// The opset asked for is not among [`OPSETS`].
    #[error(
        "opset {0} is not among those that can be written, {first} to {last}",
        first = OPSETS.start(), last = OPSETS.end()
    )]
    Opset(
        /// The opset asked for.
        u32,
    ),
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
    /// The model made is not valid ONNX.
    #[error("the model that was made is not valid, which is a bug of pt2onnx; please report it:{}", lines(.0))]
    Verify(
        /// Everything wrong with it.
        Vec<VerifyError>,
    ),
    /// The model cannot be written.
    #[error(transparent)]
    Write(#[from] pt2onnx_writer::Error),
    /// The model does not run in ONNX Runtime.
    #[cfg(feature = "ort")]
    #[error(transparent)]
    Run(#[from] crate::RunError),
}

fn lines(errors: &[VerifyError]) -> String {
    errors.iter().map(|e| format!("\n  {e}")).collect()
}
