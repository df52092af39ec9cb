//! The source of an export.

use bytes::Bytes;
use pt2onnx_fx::{ExportedProgram, archive::Records};
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

/// The source of an export, from a path, bytes or a program: `exporter.export("model.pt2")`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source<'a> {
    /// An archive. The file is mapped while the result lives, and must not change meanwhile.
    File(Cow<'a, Path>),
    /// An archive in memory. Weights are views of the bytes.
    Bytes(Bytes),
    /// An archive whose records were found before.
    Records(Records),
    /// A program that was read before.
    Program(Box<ExportedProgram>),
}

impl Source<'_> {
    /// The path of a file.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Bytes(_) | Self::Records(_) | Self::Program(_) => None,
        }
    }
}

macro_rules! paths {
    ($($path:ty),*) => {$(
        impl<'a> From<&'a $path> for Source<'a> {
            fn from(path: &'a $path) -> Self {
                Self::File(Cow::Borrowed(path.as_ref()))
            }
        }
    )*};
}

paths!(str, String, Path, PathBuf);

impl From<PathBuf> for Source<'_> {
    fn from(path: PathBuf) -> Self {
        Self::File(Cow::Owned(path))
    }
}

impl From<Bytes> for Source<'_> {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Source<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<ExportedProgram> for Source<'_> {
    fn from(program: ExportedProgram) -> Self {
        Self::Program(Box::new(program))
    }
}
