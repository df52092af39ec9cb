//! Requests that cannot be met.

use crate::OptionText;

/// Why a model cannot be compressed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The size of blocks is not supported.
    #[error("a block must have 16, 32, 64, 128 or 256 elements, but {0} are asked for")]
    Block(usize),
    /// The accuracy level does not exist.
    #[error("an accuracy level is a number from 0 to 4, but {0} is given")]
    AccuracyLevel(u8),
    /// An option has no meaning without another.
    #[error("the option {option} has a meaning only with {with}")]
    Needs {
        /// The option, with its value if that is what needs another.
        option: OptionText,
        /// The requirement.
        with: OptionText,
    },
    /// The opset cannot express the weights.
    #[error("{what} need opset {needs} or newer, but the model has opset {opset}")]
    Opset {
        /// The request: `weights of int4`.
        what: String,
        /// The first opset that has it.
        needs: u32,
        /// The opset of the model.
        opset: u32,
    },
    /// No weight and no operator has the name.
    #[error(
        "no weight and no operator of the model is called `{0}`, which is to be included or excluded"
    )]
    Nothing(String),
    /// The operator has no weights.
    #[error("no node `{0}` takes weights, so that it has no effect to include or exclude them")]
    NoWeights(String),
    /// Everything that is included is excluded.
    #[error("the option {exclude} leaves nothing of what {include} gives")]
    NoneLeft {
        /// The option that excludes.
        exclude: OptionText,
        /// The option that includes.
        include: OptionText,
    },
    /// Weights have no values that could be compressed.
    #[error(
        "the weights have no values that could be compressed, such as `{0}`: give the model its weights first"
    )]
    NoValues(String),
}

impl Error {
    /// The option that it is about, by its key: `block-size`.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Block(_) => "block-size",
            Self::AccuracyLevel(_) => "accuracy-level",
            Self::Needs { option, .. } => option.key(),
            Self::Opset { .. } => "opset",
            Self::Nothing(_) | Self::NoWeights(_) => "compress-include",
            Self::NoneLeft { exclude, .. } => exclude.key(),
            Self::NoValues(_) => "weights",
        }
    }
}
