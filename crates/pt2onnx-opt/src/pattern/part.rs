//! Patterns as data, and the nodes that they find.

use crate::{
    NoFusion,
    analysis::{known, number_of},
    folded_constants::FoldedConstants,
};
use pt2onnx_ir::{Attribute, Builder, Name, Node, NodeId, OpSet, Traits, Value};
use pt2onnx_tensor::Tensor;
use smallvec::SmallVec;
use std::sync::Arc;

/// A pattern of nodes, written as the expression that the nodes compute.
///
/// | written | finds |
/// |---|---|
/// | `x` | any value; the same value wherever the name is written |
/// | `#x` | the same, but only a constant |
/// | `0.5`, `-inf` | a float constant with one element of that value, rounded to its type |
/// | `Mul(x, Sigmoid(x))` | the only output of a node of ONNX's domain, with such first inputs |
/// | `com.example.Silu(x)` | the same for a node of the domain `com.example` |
/// | `s:Sigmoid(x)` | the same, and lets `s` be the node's output |
/// | `{a \| b}` | one of several patterns |
/// | `?Cast(Relu(x))` | the node, or else what its first operand pattern finds |
///
/// The inputs of `Add`, `Mul`, `Min`, `Max`, `And`, `Or`, `Xor` and `Equal` may be in either order.
///
/// The functions of [`Rules`](crate::Rules) are read into patterns, too. These also compare
/// attributes, and their nodes may have several outputs.
///
/// ```
/// use pt2onnx_ir::Model;
/// use pt2onnx_opt::Pattern;
///
/// let text = r#"<ir_version: 9, opset_import: ["" : 20]>
/// main_graph (float[n] x) => (float[n] y) { s = Sigmoid (x) y = Mul (s, x) }"#;
/// let model: Model = text.parse()?;
/// let pattern: Pattern = "Mul(x, s:Sigmoid(x))".parse()?;
/// let mut nodes = model.nodes(Model::MAIN);
/// let found = nodes.find_map(|node| pattern.find(&model, node));
/// assert_eq!(found.and_then(|f| f.value("x")), Some(model.inputs()[0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pattern(pub(super) Part);

#[derive(Clone, Debug)]
pub(super) enum Part {
    /// Any value, or any constant; the same under the same name.
    Any {
        name: Name,
        constant: bool,
    },
    /// A float constant with one element.
    Number(f64),
    /// A constant of a rule.
    Constant {
        name: Name,
        wanted: ConstantPart,
    },
    /// An input that is left out.
    Absent,
    Either(Arc<[Part]>),
    Node(NodePart),
}

#[derive(Clone, Debug)]
pub(super) struct NodePart {
    /// The names of the node's outputs.
    pub labels: Vec<Option<Name>>,
    /// The output that is meant.
    pub output: usize,
    /// Empty for ONNX's own domain.
    pub domain: Name,
    pub overload: Name,
    pub op: Name,
    /// The operator as a set, which is faster to look for.
    pub ops: OpSet,
    /// Whether its two inputs may be in either order.
    pub commutes: bool,
    pub inputs: Arc<[Part]>,
    /// The attributes of a node of a rule, which has no more inputs than the pattern. `None`: any.
    pub exactly: Option<Arc<[AttributePart]>>,
}

/// An attribute of a node of a rule: a value, or a reference that stands for any value.
#[derive(Clone, Debug)]
pub(super) struct AttributePart {
    pub name: Name,
    pub value: Attribute,
}

/// A constant of a rule.
#[derive(Clone, Debug)]
pub(super) enum ConstantPart {
    /// One with these elements. A single float is compared after rounding to the type that the
    /// model has, and has any number of dimensions of size 1.
    Equal(Tensor),
    /// Any that is an attribute of that type, such as "floats".
    Bound { name: Name, kind: &'static str },
    /// None.
    Never,
}

impl Part {
    /// Whether this part or one within it is such a part.
    pub fn any(&self, holds: &impl Fn(&Self) -> bool) -> bool {
        let within = match self {
            Self::Any { .. } | Self::Number(_) | Self::Constant { .. } | Self::Absent => &[][..],
            Self::Either(all) => all,
            Self::Node(node) => &node.inputs,
        };
        holds(self) || within.iter().any(|part| part.any(holds))
    }

    /// Whether a value or a node has that name.
    fn has_name(&self, name: &str) -> bool {
        self.any(&|part| match part {
            Self::Any { name: own, .. } | Self::Constant { name: own, .. } => own == name,
            Self::Node(node) => node.has_label(name),
            Self::Number(_) | Self::Absent | Self::Either(_) => false,
        })
    }
}

impl NodePart {
    pub fn has_label(&self, name: &str) -> bool {
        self.labels.iter().flatten().any(|label| label == name)
    }
}

/// The nodes that a [`Pattern`] found.
#[derive(Clone, Debug)]
pub struct Match<'p> {
    pub(super) names: SmallVec<[(&'p str, Value); 8]>,
    pub(super) nodes: SmallVec<[NodeId; 8]>,
    pub(super) output: Value,
    pub(super) attributes: Vec<(&'p str, Attribute)>,
    pub(super) constants: Option<&'p FoldedConstants>,
    /// The pattern.
    pub(super) of: &'p Part,
}

impl<'p> Match<'p> {
    /// The value with that name in the pattern. `None` if it is in an alternative that was not
    /// found, or the pattern has no such name; [`get`](Self::get) is for names that it must have.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.names.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    /// As [`value`](Self::value), for a name that the pattern must have found. Debug builds panic
    /// if the pattern has no such name.
    ///
    /// # Errors
    /// [`NoFusion::NoMatch`]: there is no value of that name.
    #[track_caller]
    pub fn get(&self, name: &str) -> Result<Value, NoFusion> {
        debug_assert!(self.of.has_name(name), "the pattern has no name `{name}`");
        self.value(name).ok_or(NoFusion::NoMatch)
    }

    /// A copy of the node whose output has that name.
    pub fn node(&self, cx: &Builder<'_>, name: &str) -> Option<Node> {
        let model = cx.model();
        Some(model[model.producer(self.value(name)?)?].clone())
    }

    /// As [`node`](Self::node), for a name that the pattern must have found.
    ///
    /// # Errors
    /// [`NoFusion::NoMatch`]: no node computes a value of that name.
    #[track_caller]
    pub fn get_node(&self, cx: &Builder<'_>, name: &str) -> Result<Node, NoFusion> {
        debug_assert!(self.of.has_name(name), "the pattern has no name `{name}`");
        self.node(cx, name).ok_or(NoFusion::NoMatch)
    }

    /// The only element of the float constant with that name. Debug builds panic if the pattern has
    /// no such name.
    #[track_caller]
    pub fn number(&self, cx: &Builder<'_>, name: &str) -> Option<f64> {
        debug_assert!(self.of.has_name(name), "the pattern has no name `{name}`");
        number_of(&cx.model(), self.value(name)?).map(|(_, number)| number)
    }

    /// The attribute that a rule calls `@name`.
    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// The nodes found. Each comes before the ones that compute its inputs.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// The output of the last node: the value of the whole pattern.
    pub fn output(&self) -> Value {
        self.output
    }

    /// Whether the output is known to have the shape of `value`: no other operand broadcasts it.
    pub fn keeps_shape(&self, cx: &Builder<'_>, value: Value) -> bool {
        let shapes = cx.known_shape(value).zip(cx.known_shape(self.output));
        shapes.is_some_and(|(a, b)| a == b && a.iter().all(known))
    }

    /// The same match, with what the pass knows of all constants.
    pub(crate) fn with(self, constants: &'p FoldedConstants) -> Self {
        Self { constants: Some(constants), ..self }
    }

    /// Adds a constant that is named after the one that it replaces.
    pub(crate) fn add_folded(&self, cx: &Builder, tensor: Tensor, after: Option<Value>) -> Value {
        let unknown = FoldedConstants::default();
        cx.edit(|model| self.constants.unwrap_or(&unknown).add(model, tensor, after))
    }

    /// See [`FoldedConstants::is_unshared`].
    pub(crate) fn is_unshared(&self, cx: &Builder, value: Value) -> bool {
        let unknown = FoldedConstants::default();
        self.constants.unwrap_or(&unknown).is_unshared(&cx.model(), value)
    }

    /// Lets a name stand for a value. Returns false if it stands for another one.
    pub(super) fn bind(&mut self, name: &'p str, value: Value) -> bool {
        match self.value(name) {
            Some(known) => known == value,
            None => {
                self.names.push((name, value));
                true
            }
        }
    }
}

/// Whether the two inputs of an operator may be in either order.
pub(super) fn commutes(op: &str) -> bool {
    Traits::of(op).contains(Traits::COMMUTATIVE)
}
