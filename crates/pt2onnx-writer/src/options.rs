//! How a model is saved.

use pt2onnx_ir::Value;
use std::collections::BTreeSet;

/// Where weights are written to.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Weights {
    /// Embed them; above 2 GiB, or if a name or size of data files is given, as `external`.
    #[default]
    Auto,
    /// Write them into the model file.
    Embed,
    /// Write large ones into a data file, which must stay beside the model.
    ///
    /// The model refers to its data files by name.
    External,
    /// Write none: the model refers to the files that they come from, such as the archive, which
    /// must stay in the model's folder or below.
    ///
    /// A weight must be contiguous in its file, and the files must not change.
    Link,
    /// Write none: `pt2onnx apply-weights` adds them later. Only for conversions.
    ///
    /// Weights are declared by name and type. As with `include_initializers=False` of torch.onnx,
    /// these are all initialisers: every constant that was a parameter, buffer or tensor of the
    /// program, and any other of more than 16 elements. Smaller ones are written.
    ///
    /// With any choice, weights that have no values
    /// ([`Tensor::absent`](pt2onnx_tensor::Tensor::absent)) are declared; those but `Auto` and
    /// `None` refuse them.
    None,
}

serde_plain::derive_display_from_serialize!(Weights);
serde_plain::derive_fromstr_from_deserialize!(Weights);

/// The largest [`SaveOptions::alignment`]: 1 GiB, as that of the largest pages.
pub const MAX_ALIGNMENT: u64 = 1 << 30;

/// Whether weights can start at multiples of so many bytes: a power of two of at most
/// [`MAX_ALIGNMENT`].
pub fn is_alignment(bytes: u64) -> bool {
    bytes.is_power_of_two() && bytes <= MAX_ALIGNMENT
}

/// How a model is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveOptions {
    /// Where weights are written to.
    pub weights: Weights,
    /// Name of the data file, which is beside the model file; `NAME.onnx.data` for `NAME.onnx` by
    /// default.
    pub data_file: Option<String>,
    /// Tensors of fewer bytes are written to the model file; 1024 by default. Runtimes want shapes
    /// and scalars there, and alignment would waste most of their space.
    pub threshold: u64,
    /// The most bytes of a data file; no limit by default. A larger weight has a separate file. If
    /// there are several files, each name has a number: `NAME.onnx-00001-of-00002.data`.
    pub shard_size: Option<u64>,
    /// External weights start at multiples of so many bytes, for which [`is_alignment`] must hold;
    /// 4096 by default, a page, so that runtimes can map them. On Windows, files are mapped at
    /// multiples of 65536.
    pub alignment: u64,
    /// Whether [`Weights::Link`] may refer to files outside the model's folder. Many runtimes
    /// refuse to read these.
    pub allow_external_paths: bool,
    /// Whether weights (see [`Weights::None`]) are inputs of the graph as well, after its own, so
    /// that callers may give other values; as `keep_initializers_as_inputs` of torch.onnx.
    pub keep_initializers_as_inputs: bool,
    /// The constants that `Weights::None` leaves out, and `keep_initializers_as_inputs` makes
    /// inputs, if not those for which [`is_initializer`](crate::is_initializer) holds.
    pub initializers: Option<BTreeSet<Value>>,
    /// Whether the model is verified first
    /// ([`verify_imported`](pt2onnx_ir::verify_imported())), which is the default: one that is not
    /// valid is then [`Error::Invalid`](crate::Error::Invalid).
    pub verify: bool,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self {
            weights: Weights::Auto,
            data_file: None,
            threshold: 1024,
            shard_size: None,
            alignment: 4096,
            allow_external_paths: false,
            keep_initializers_as_inputs: false,
            initializers: None,
            verify: true,
        }
    }
}

/// The defaults, with weights written there.
impl From<Weights> for SaveOptions {
    fn from(weights: Weights) -> Self {
        Self { weights, ..Self::default() }
    }
}
