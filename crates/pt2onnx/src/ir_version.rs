//! The version of the file format that is asked for.

use pt2onnx_ir::Model;
use std::ops::RangeInclusive;

/// The IR versions that can be asked for.
pub const IR_VERSIONS: RangeInclusive<u32> = 3..=13;

/// An IR version that the model cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IrVersionError {
    /// It is not among [`IR_VERSIONS`].
    #[error(
        "IR version {0} is not among those that can be written, {first} to {last}",
        first = IR_VERSIONS.start(), last = IR_VERSIONS.end()
    )]
    Unknown(u32),
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

/// Lets the model be written in that version.
pub(crate) fn set(model: &mut Model, asked: u32) -> Result<(), IrVersionError> {
    if !IR_VERSIONS.contains(&asked) {
        return Err(IrVersionError::Unknown(asked));
    }
    match model.ir_version_used() {
        Some((since, what)) if since > asked => Err(IrVersionError::Lacks { asked, what, since }),
        _ => {
            model.ir_version = Some(asked);
            Ok(())
        }
    }
}
