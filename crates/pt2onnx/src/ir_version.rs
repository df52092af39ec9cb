//! The IR version: the version of the ONNX file format.

use pt2onnx_ir::Model;
use std::ops::RangeInclusive;

/// The IR versions that can be written.
pub const IR_VERSIONS: RangeInclusive<u32> = 3..=13;

/// The model cannot be written in the IR version asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IrVersionError {
    /// The model uses something that this version does not have.
    #[error(
        "IR version {asked} cannot hold {what}, which the model has: use version {since} or newer"
    )]
    Lacks {
        /// The version asked for.
        asked: u32,
        /// The feature that the model uses.
        what: String,
        /// The first version that has it.
        since: u32,
    },
}

/// Sets the IR version, if one is asked for.
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
