//! A whole program: graph, signature, constraints and the tensors it uses.

use super::{
    name::Name,
    node::{Argument, CustomObj, Graph},
};
use indexmap::IndexMap;
use pt2onnx_symbolic::{Constraints, Range};
use pt2onnx_tensor::Tensor;

/// An exported program, as `torch.export.export` returns it.
#[derive(Clone, Debug, Default)]
pub struct ExportedProgram {
    /// The graph.
    pub graph: Graph,
    /// The meaning of each input and output of the graph.
    pub signature: GraphSignature,
    /// Ranges and relations of the symbols: from `range_constraints`, and after the passes also
    /// from run-time assertions. [`ExportedProgram::assume_guards`] adds the guards.
    pub constraints: Constraints,
    /// Ranges of symbols and of derived expressions (`2*s0`), as written.
    pub range_constraints: Vec<(String, Range)>,
    /// Python conditions over sizes of inputs (`L['x'].size()[0]`) that were true at export.
    pub guards: Vec<String>,
    /// Calling conventions: that of the program (`fqn` empty) and of preserved submodules.
    pub module_call_graph: Vec<ModuleCallEntry>,
    /// Parameters and buffers by qualified name; buffers that are not persistent are among the
    /// constants.
    pub state: IndexMap<String, Tensor>,
    /// Lifted constants and non-persistent buffers by qualified name.
    pub constants: IndexMap<String, Constant>,
    /// Writes of the program into its state and inputs. Empty until
    /// [`functionalise`](crate::passes::functionalise::functionalise) has run.
    pub mutations: Vec<Mutation>,
    /// Version of PyTorch that wrote the program: `2.15.0+cu132`.
    pub torch_version: String,
    /// Major and minor version of the serialisation schema.
    pub schema_version: (u32, u32),
    /// Dialects the program obeys: `TRAINING`, `ATEN`, ...
    pub verifiers: Vec<String>,
    /// Version of each operator namespace.
    pub opset_version: IndexMap<String, i64>,
}

/// A constant of a program.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Constant {
    Tensor(Tensor),
    /// An object that only Python can read, in a record such as `custom_obj_0`. It is not read.
    Opaque {
        record: String,
    },
}

/// A write of the program into one of its parameters, buffers, constants or inputs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Mutation {
    /// The kind of tensor that is written into.
    pub kind: MutationKind,
    /// Qualified name of the parameter, buffer or constant; name of the user input.
    pub target: Name,
    /// Name of the input that holds the value before.
    pub input: Name,
    /// Name of the value after, which has the type and sizes of the input. It is an output of the
    /// graph only if the signature says so.
    pub value: Name,
    /// The node of the last write, by its name in the archive; `None` for a write that the
    /// signature lists.
    pub node: Option<Name>,
    /// The user's line of the last write, if known: `model.py:12: self.steps.add_(1)`.
    pub source: Option<String>,
}

/// ``the buffer `steps` at model.py:12: self.steps.add_(1)``.
impl std::fmt::Display for Mutation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            MutationKind::Parameter => "parameter",
            MutationKind::Buffer => "buffer",
            MutationKind::Constant => "constant",
            MutationKind::UserInput => "input",
        };
        write!(f, "the {kind} `{}`", self.target)?;
        self.source.as_ref().map_or(Ok(()), |source| write!(f, " at {source}"))
    }
}

/// The kind of tensor that a program writes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum MutationKind {
    Parameter,
    Buffer,
    Constant,
    UserInput,
}

/// The meaning of each input and output of a graph, in the order of the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphSignature {
    /// Inputs.
    pub inputs: Vec<InputSpec>,
    /// Outputs.
    pub outputs: Vec<OutputSpec>,
}

/// The meaning of an input of a graph.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum InputSpec {
    UserInput(Argument),
    /// `target` is the qualified name, a key of `state`.
    Parameter {
        name: Name,
        target: Name,
    },
    /// `target` is the qualified name, a key of `state` if persistent, of `constants` otherwise.
    Buffer {
        name: Name,
        target: Name,
        persistent: bool,
    },
    /// `target` is a key of `constants`.
    TensorConstant {
        name: Name,
        target: Name,
    },
    /// `target` is a key of `constants`.
    CustomObj {
        object: CustomObj,
        target: Name,
    },
    Token(Name),
    /// A Python value that was fixed at export.
    Constant {
        name: Name,
        value: ConstantValue,
    },
}

/// A Python value that was fixed at export.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum ConstantValue {
    None,
    Int(i64),
    Float(f64),
    String(Name),
    Bool(bool),
}

/// The meaning of an output of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSpec {
    /// Its kind.
    pub kind: OutputKind,
    /// The value, or a constant.
    pub value: Argument,
    /// Qualified name of the parameter or buffer, name of the input, whose new value or gradient it
    /// is; empty for other kinds.
    pub target: Name,
}

pt2onnx_symbolic::named_enum! {
    /// `torch.export.graph_signature.OutputKind`.
    pub enum OutputKind {
        UserOutput = "USER_OUTPUT",
        Loss = "LOSS_OUTPUT",
        BufferMutation = "BUFFER_MUTATION",
        ParameterMutation = "PARAMETER_MUTATION",
        UserInputMutation = "USER_INPUT_MUTATION",
        GradientToParameter = "GRADIENT_TO_PARAMETER",
        GradientToUserInput = "GRADIENT_TO_USER_INPUT",
        Token = "TOKEN",
    }
}

impl OutputKind {
    /// Whether it is the new value of something that the program writes into.
    pub fn is_mutation(self) -> bool {
        matches!(self, Self::BufferMutation | Self::ParameterMutation | Self::UserInputMutation)
    }
}

impl InputSpec {
    /// Name of the placeholder; none for constants passed as user inputs.
    pub fn name(&self) -> Option<&Name> {
        match self {
            InputSpec::UserInput(arg) => arg.name(),
            InputSpec::CustomObj { object, .. } => Some(&object.name),
            InputSpec::Parameter { name, .. }
            | InputSpec::Buffer { name, .. }
            | InputSpec::TensorConstant { name, .. }
            | InputSpec::Constant { name, .. }
            | InputSpec::Token(name) => Some(name),
        }
    }

    /// Qualified name of the parameter, buffer, constant or object that the input stands for.
    pub fn target(&self) -> Option<&Name> {
        match self {
            InputSpec::Parameter { target, .. }
            | InputSpec::Buffer { target, .. }
            | InputSpec::TensorConstant { target, .. }
            | InputSpec::CustomObj { target, .. } => Some(target),
            InputSpec::UserInput(_) | InputSpec::Constant { .. } | InputSpec::Token(_) => None,
        }
    }
}

impl OutputSpec {
    /// An output of the user's.
    pub fn user(value: Argument) -> Self {
        Self { kind: OutputKind::UserOutput, value, target: Name::default() }
    }

    /// Name of the value; none for constants.
    pub fn name(&self) -> Option<&Name> {
        self.value.name()
    }
}

/// A module whose calling convention is kept.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModuleCallEntry {
    /// Qualified name of the module; empty for the root.
    pub fqn: String,
    /// Its calling convention.
    pub signature: Option<ModuleCallSignature>,
}

/// A module's calling convention.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModuleCallSignature {
    /// Values it took.
    pub inputs: Vec<Argument>,
    /// Values it returned.
    pub outputs: Vec<Argument>,
    /// JSON, as written: how `(args, kwargs)` flatten.
    pub in_spec: String,
    /// JSON, as written: how the result flattens.
    pub out_spec: String,
    /// Names of the parameters of `forward`.
    pub forward_arg_names: Option<Vec<String>>,
}

impl ExportedProgram {
    /// The tensor behind an input that is a parameter, buffer or tensor constant.
    pub fn tensor_of(&self, input: &InputSpec) -> Option<&Tensor> {
        let constant = |target: &str| match self.constants.get(target) {
            Some(Constant::Tensor(t)) => Some(t),
            _ => None,
        };
        match input {
            InputSpec::Parameter { target, .. } => self.state.get(&**target),
            InputSpec::Buffer { target, .. } => {
                self.state.get(&**target).or_else(|| constant(target))
            }
            InputSpec::TensorConstant { target, .. } => {
                constant(target).or_else(|| self.state.get(&**target))
            }
            _ => None,
        }
    }
}
