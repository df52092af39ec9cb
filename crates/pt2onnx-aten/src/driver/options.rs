//! Options of `lower`.

use super::originals::Originals;
use pt2onnx_fx::graph::OpName;
use pt2onnx_tensor::DType;
use serde::{Deserialize, Serialize};
use strum::{EnumMessage, VariantArray};

/// How much metadata about the source program a model has.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, EnumMessage, Serialize, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Provenance {
    /// As torch.onnx.export: modules, FX nodes, stack traces, the graph's signature.
    #[default]
    Full,
    /// Modules and names, without stack traces and FX nodes.
    ///
    /// Nodes have their `namespace` (module path, FX node and op), the graph the ranges of its
    /// symbols; inputs and outputs have no metadata.
    Basic,
    /// Nothing.
    None,
}

serde_plain::derive_display_from_serialize!(Provenance);
serde_plain::derive_fromstr_from_deserialize!(Provenance);

/// Options of [`lower`](crate::lower). They can be made from [`Mutations`]; the others then have
/// their defaults.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Treatment of values that the program writes into buffers, parameters and inputs.
    pub state: Mutations,
    /// Treatment of ops that have no translation.
    pub operators: UnsupportedOps,
    /// Whether ATen ops that are kept become nodes `ATen`, with the name of the op in an attribute.
    pub aten_nodes: bool,
    /// The element type of PyTorch's floats (`torch.get_default_dtype()`), for nodes without
    /// recorded types.
    pub default_dtype: DType,
    /// Whether the model need not treat NaN and infinities as PyTorch does, where that costs nodes.
    pub assume_finite: bool,
    /// Whether ONNX's nodes for training are written, for runtimes that train:
    /// `BatchNormalization` with `training_mode`.
    pub training_nodes: bool,
    /// How much metadata the model gets.
    pub metadata: Provenance,
    /// Whether the files in stack traces lose their folders.
    pub strip_paths: bool,
    /// The nodes that passes have rewritten.
    pub originals: Option<&'a Originals>,
    /// Whether the model knows the calls of modules
    /// ([`Model::modules`](pt2onnx_ir::Model::modules)), to make functions of them.
    pub modules: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            state: Mutations::default(),
            operators: UnsupportedOps::default(),
            aten_nodes: false,
            default_dtype: DType::F32,
            assume_finite: false,
            training_nodes: false,
            metadata: Provenance::default(),
            strip_paths: false,
            originals: None,
            modules: false,
        }
    }
}

impl From<Mutations> for Options<'_> {
    fn from(state: Mutations) -> Self {
        Self { state, ..Self::default() }
    }
}

/// Treatment of the final values of buffers, parameters and inputs that a program writes into.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, EnumMessage, Serialize, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Mutations {
    /// Drop them, with a warning.
    #[default]
    Drop,
    /// Make them outputs with the name of the buffer (NAME.next for inputs), after those of the
    /// program.
    Outputs,
    /// Make buffers inputs NAME and outputs NAME.next, so that a caller can loop.
    Pairs,
    /// Report an error.
    Error,
}

serde_plain::derive_display_from_serialize!(Mutations);
serde_plain::derive_fromstr_from_deserialize!(Mutations);

/// Ops that are kept: they become nodes of a custom domain. PyTorch's older exporter calls this
/// `operator_export_type`.
///
/// Such a node has the name of the op, and its namespace as domain: `mylib` for `mylib::foo`, but
/// `org.pytorch.aten` for `aten` ops. Its inputs are the op's tensors, and the numbers that are
/// only known at run time. A list is several inputs. The attribute `input_names` has the parameter
/// of each input. All other arguments are attributes with the parameters' names. Arguments that are
/// None or not given are left out. The attribute `overload_name` has the overload, unless it is the
/// default one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, EnumMessage, Serialize, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum UnsupportedOps {
    /// Report an error that lists all of them.
    #[default]
    Onnx,
    /// Make them nodes of the op's domain, which is org.pytorch.aten for ATen's.
    Fallthrough,
    /// Make those of ATen nodes of org.pytorch.aten; report an error for others.
    AtenFallback,
    /// Make all ATen ops nodes of org.pytorch.aten, even those that have a translation.
    ///
    /// Ops that only compute sizes are translated.
    Aten,
}

serde_plain::derive_display_from_serialize!(UnsupportedOps);
serde_plain::derive_fromstr_from_deserialize!(UnsupportedOps);

impl UnsupportedOps {
    /// Whether an op may be kept.
    pub(crate) fn admit(self, op: &OpName) -> bool {
        let is_aten = &*op.namespace == "aten";
        match self {
            _ if !op.is_operator() => false,
            UnsupportedOps::Onnx => false,
            UnsupportedOps::Fallthrough => true,
            UnsupportedOps::AtenFallback | UnsupportedOps::Aten => is_aten,
        }
    }
}
