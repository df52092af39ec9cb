//! Values that options cannot have.

use crate::ir_version::IR_VERSIONS;
use pt2onnx_compress::OptionText;
use pt2onnx_ir::ParseError;
use pt2onnx_opt::{OPSETS, TargetError, UnknownPass};
use std::{collections::BTreeSet, io, path::PathBuf};

/// An option has a value that it cannot have.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// The opset is not one of [`OPSETS`].
    #[error(
        "opset {0} is not among those that can be written, {first} to {last}",
        first = OPSETS.start(), last = OPSETS.end()
    )]
    Opset(
        /// The opset asked for.
        u32,
    ),
    /// The runtime does not read the opset.
    #[error(transparent)]
    Target(TargetError),
    /// The IR version is not one of [`IR_VERSIONS`].
    #[error(
        "IR version {0} is not among those that can be written, {first} to {last}",
        first = IR_VERSIONS.start(), last = IR_VERSIONS.end()
    )]
    IrVersion(
        /// The IR version asked for.
        u32,
    ),
    /// The version of a domain is 0.
    #[error("the domain `{0}` is given version 0, but versions start at 1")]
    Version(
        /// The domain.
        String,
    ),
    /// The file format that came with the opset has no functions.
    #[error("functions of modules need opset 15 or newer, but opset {0} is asked for")]
    FunctionsOf(
        /// The opset asked for.
        u32,
    ),
    /// The alignment is not a power of two, or more than 1 GiB.
    #[error("an alignment must be a power of two of at most 1 GiB, but {0} is not")]
    Alignment(
        /// The alignment asked for, in bytes.
        u64,
    ),
    /// Options do not fit together; or those of compression have values that they cannot have.
    #[error(transparent)]
    Compress(pt2onnx_compress::Error),
    /// Weights are compressed when they are written, and the option leaves them without values or
    /// to the caller.
    #[error(
        "weights that are compressed must be constants with values, which the option {0} excludes"
    )]
    NothingToCompress(
        /// The option.
        OptionText,
    ),
    /// One of the values would be ignored.
    #[error("the option {option} is given twice for `{name}`")]
    Twice {
        /// The option.
        option: OptionText,
        /// The key that has two values.
        name: String,
    },
    /// A name stands for all names.
    #[error("the option {0} cannot have `from-tree` beside names: `from-tree` names all of them")]
    FromTree(
        /// The option.
        OptionText,
    ),
    /// The data files would have no bytes.
    #[error("the option {0} cannot be 0")]
    NoShard(
        /// The option.
        OptionText,
    ),
    /// The option needs ONNX Runtime, which this build of pt2onnx does not use.
    #[error(
        "the option {0} runs the model in ONNX Runtime, which this build of pt2onnx cannot: build it with the feature `ort`"
    )]
    NoRuntime(
        /// The option.
        OptionText,
    ),
    /// No pass has this name.
    #[error(transparent)]
    Pass(UnknownPass),
    /// An option that says what a TorchScript archive leaves open is given for another program,
    /// which leaves nothing open.
    #[error(
        "the option {0} is for TorchScript archives, but this is an exported program, which has the types of its inputs: name dynamic \
         sizes by the option `rename-dim`, or make them static by the option `fix-dim`"
    )]
    OnlyTorchScript(
        /// The option.
        OptionText,
    ),
    /// A file of rules cannot be read.
    #[error("the rules cannot be read: {error} ({})", .path.display())]
    RuleFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of rules has an error in its text.
    #[error("{}: {error}", .path.display())]
    Rules {
        /// The file.
        path: PathBuf,
        /// The error, with its line and column.
        error: Box<ParseError>,
    },
    /// A program is named, but a TorchScript archive has one only.
    #[error(
        "the program `{0}` is asked for, but a TorchScript archive has one program: the option `method` names what to convert of it"
    )]
    OneProgram(
        /// The name.
        String,
    ),
    /// A file of functions cannot be read.
    #[error("the functions cannot be read: {error} ({})", .path.display())]
    FunctionFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of functions has an error in its text.
    #[error("{}: {error}", .path.display())]
    Functions {
        /// The file.
        path: PathBuf,
        /// The error, with its line and column.
        error: ParseError,
    },
}

impl OptionError {
    /// An option has no meaning without another.
    pub fn needs(option: OptionText, with: OptionText) -> Self {
        Self::Compress(pt2onnx_compress::Error::Needs { option, with })
    }

    /// An error if an option is given twice for the same.
    ///
    /// # Errors
    /// [`Twice`](Self::Twice).
    pub fn once<T>(option: OptionText, pairs: &[(String, T)]) -> Result<(), Self> {
        let mut seen = BTreeSet::new();
        match pairs.iter().find(|(name, _)| !seen.insert(name)) {
            Some((name, _)) => Err(Self::Twice { option, name: name.clone() }),
            None => Ok(()),
        }
    }

    /// The option, by its key in the serialised form: `opset`.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Opset(_) => "opset",
            Self::Target(_) => "target",
            Self::IrVersion(_) => "ir-version",
            Self::Version(_) => "custom-opset",
            Self::FunctionsOf(_) => "module-functions",
            Self::Alignment(_) => "alignment",
            Self::Compress(error) => error.key(),
            Self::Twice { option, .. }
            | Self::FromTree(option)
            | Self::NoShard(option)
            | Self::NothingToCompress(option)
            | Self::NoRuntime(option)
            | Self::OnlyTorchScript(option) => option.key(),
            Self::Pass(_) => "skip-pass",
            Self::RuleFile { .. } | Self::Rules { .. } => "rules",
            Self::OneProgram(_) => "program",
            Self::FunctionFile { .. } | Self::Functions { .. } => "op-functions",
        }
    }
}
