//! Options of the translation.

use pt2onnx_fx::graph::{Graph, OpName};

/// How much of the source program a model tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detail {
    /// All that `torch.onnx.export` writes.
    #[default]
    Full,
    /// Of nodes the `namespace` (module path, FX node and operator), of the graph the ranges of its symbols.
    Basic,
    /// Nothing.
    None,
}

/// Options of [`lower`](crate::lower). A [`State`] alone leaves the rest at the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// What becomes of the program's writes to buffers and inputs.
    pub state: State,
    /// What becomes of ops.
    pub operators: Operators,
    /// How much metadata is made.
    pub metadata: Detail,
    /// Whether stack traces tell files without their folders.
    pub strip_paths: bool,
    /// The graph as the archive had it: nodes that passes made another operator of are described as they were.
    pub archived: Option<&'a Graph>,
}

impl From<State> for Options<'_> {
    fn from(state: State) -> Self {
        Self { state, ..Self::default() }
    }
}

/// What to do with the final values of buffers, parameters and inputs that a program writes into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// They are lost, with a warning for each.
    #[default]
    Drop,
    /// They become outputs behind the program's own, named by their qualified name (`NAME.next` for inputs, whose name is taken).
    Outputs,
    /// As `Outputs`, and the values before come in as inputs: `NAME` and `NAME.next`, so that a caller can loop.
    Pairs,
    /// An error.
    Error,
}

/// What becomes of ops: `operator_export_type` of PyTorch's older exporter.
///
/// A node that an op becomes has the op's name as type, and the op's namespace as domain: `mylib` for `mylib::foo`, but
/// `org.pytorch.aten` for `aten` ops. Its inputs are the tensors (and the numbers that are known at run time only), lists
/// spread out; the attribute `input_names` says for each of them the parameter that it belongs to. All other arguments are
/// attributes, named as the parameters. What is None or not given is left out. Overloads other than the default one are
/// named by the attribute `overload_name`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operators {
    /// Those of ONNX alone: an op that cannot be translated is an error.
    #[default]
    Onnx,
    /// Ops that cannot be translated become such nodes.
    Fallthrough,
    /// ATen's ops that cannot be translated become such nodes, others are errors.
    AtenFallback,
    /// All ATen ops become such nodes, but for those that only compute sizes.
    Aten,
}

impl Operators {
    /// Whether an op may become a node of its own domain.
    pub(crate) fn admit(self, op: &OpName) -> bool {
        let is_aten = &*op.namespace == "aten";
        match self {
            _ if !op.is_operator() => false,
            Operators::Onnx => false,
            Operators::Fallthrough => true,
            Operators::AtenFallback | Operators::Aten => is_aten,
        }
    }
}
