//! The version of the file format that is asked for.

use pt2onnx_ir::Model;
use std::ops::RangeInclusive;

/// The IR versions that can be asked for.
pub const IR_VERSIONS: RangeInclusive<u32> = 3..=13;

/// An IR version that the model cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IrVersionError {
    /// The model uses something newer.
    #[error("IR version {asked} lacks {what}, which the model has and version {since} brought")]
    Lacks {
        /// The version asked for.
        asked: u32,
        /// What the model uses.
        what: String,
        /// The version that brought it.
        since: u32,
    },
}

/// Lets the model be written in the version asked for.
pub(crate) fn set(model: &mut Model, asked: Option<u32>) -> Result<(), IrVersionError> {
    let Some(asked) = asked else {
        return Ok(());
    };
    match model.ir_version_used() {
        Some((since, what)) if since > asked => Err(IrVersionError::Lacks { asked, what, since }),
        _ => {
            model.ir_version = Some(asked);
            Ok(())
        }
    }
}
