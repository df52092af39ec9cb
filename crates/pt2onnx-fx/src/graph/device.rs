//! Devices, layouts and memory formats of tensors.

use super::name::Name;
use pt2onnx_symbolic::named_enum;
use std::fmt;

named_enum! {
    /// `torch.memory_format`, in the order of schema.py.
    #[non_exhaustive]
    pub enum MemoryFormat {
        Contiguous = "torch.contiguous_format",
        ChannelsLast = "torch.channels_last",
        ChannelsLast3d = "torch.channels_last_3d",
        Preserve = "torch.preserve_format",
    }
}

named_enum! {
    /// `torch.layout`, in the order of schema.py.
    #[non_exhaustive]
    pub enum Layout {
        SparseCoo = "torch.sparse_coo",
        SparseCsr = "torch.sparse_csr",
        SparseCsc = "torch.sparse_csc",
        SparseBsr = "torch.sparse_bsr",
        SparseBsc = "torch.sparse_bsc",
        Mkldnn = "torch._mkldnn",
        Strided = "torch.strided",
    }
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
