//! Devices, layouts and memory formats of tensors.

use super::name::Name;
use std::fmt;

/// `torch.memory_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
#[non_exhaustive]
pub enum MemoryFormat {
    Contiguous,
    ChannelsLast,
    ChannelsLast3d,
    Preserve,
}

impl MemoryFormat {
    /// All formats, in the order of schema.py, and their names.
    pub(crate) const NAMES: [(Self, &str); 4] = [
        (Self::Contiguous, "torch.contiguous_format"),
        (Self::ChannelsLast, "torch.channels_last"),
        (Self::ChannelsLast3d, "torch.channels_last_3d"),
        (Self::Preserve, "torch.preserve_format"),
    ];
}

/// `torch.layout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
#[non_exhaustive]
pub enum Layout {
    Strided,
    SparseCoo,
    SparseCsr,
    SparseCsc,
    SparseBsr,
    SparseBsc,
    Mkldnn,
}

impl Layout {
    /// All layouts, in the order of schema.py, and their names.
    pub(crate) const NAMES: [(Self, &str); 7] = [
        (Self::SparseCoo, "torch.sparse_coo"),
        (Self::SparseCsr, "torch.sparse_csr"),
        (Self::SparseCsc, "torch.sparse_csc"),
        (Self::SparseBsr, "torch.sparse_bsr"),
        (Self::SparseBsc, "torch.sparse_bsc"),
        (Self::Mkldnn, "torch._mkldnn"),
        (Self::Strided, "torch.strided"),
    ];
}

/// `torch.device`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// `cpu`, `cuda`, `meta`, ...
    pub kind: Name,
    /// Number of the device, where one was named.
    pub index: Option<i64>,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(i) => write!(f, "{}:{i}", self.kind),
            None => f.write_str(&self.kind),
        }
    }
}

impl fmt::Display for MemoryFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(f, &Self::NAMES, self)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(f, &Self::NAMES, self)
    }
}

fn write_name<T: PartialEq>(
    f: &mut fmt::Formatter<'_>,
    names: &[(T, &str)],
    member: &T,
) -> fmt::Result {
    let known = names.iter().find(|(known, _)| known == member);
    known.map_or(Ok(()), |(_, name)| f.write_str(name))
}
