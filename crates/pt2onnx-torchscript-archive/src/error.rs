//! Errors of reading TorchScript archives.

use pt2onnx_fx::Place;

/// An error: what is wrong, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation of variants and fields")]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Records(#[from] pt2onnx_fx::Error),

    #[error(
        "{place}: not a TorchScript archive: {found}. Write one with `torch.jit.save(module, path)`"
    )]
    Layout { place: Place, found: NotTorchScript },

    #[error("{place}, line {line}: {what}; the code is damaged or of a newer PyTorch")]
    Syntax { place: Place, line: u32, what: String },
}

/// The result of reading an archive.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Kinds of zip files that are not readable TorchScript archives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum NotTorchScript {
    #[error(
        "PyTorch 1.0 to 1.3 wrote it (`model.json`); load it in PyTorch 1.4 or newer and save it again"
    )]
    Legacy,
    #[error(
        "it has no code, only bytecode; save the module with `torch.jit.save` or `_save_for_lite_interpreter`"
    )]
    NoCode,
    #[error("it has no `data.pkl`")]
    NoData,
    #[error("its version `{0}` is not a number from 1 to 10")]
    Version(String),
    #[error("its data are big-endian")]
    BigEndian,
    #[error("its code has more than {0} MiB")]
    Large(usize),
}
