//! Facts about a node that need no translation: recorded types, and whether it is complex.

use crate::cx::Recorded;
use pt2onnx_fx::graph::{Argument, Graph, Name, Node};

/// Facts about a node.
pub(crate) struct NodeFacts<'a> {
    /// Names and recorded types of the results.
    pub recorded: Vec<Recorded<'a>>,
    /// Whether the node takes complex tensors or numbers, or gives complex tensors.
    pub involves_complex: bool,
}

impl<'a> NodeFacts<'a> {
    /// The facts about a node of `graph`; `has_complex` is its [`Graph::has_complex`].
    pub fn of(graph: &'a Graph, has_complex: bool, node: &'a Node) -> Self {
        let mut values = node.args.iter().map(|a| &a.value).chain(&node.outputs);
        let involves_complex = values.any(|value| {
            matches!(value, Argument::Complex(..)) || has_complex && is_complex(graph, value)
        });
        Self { recorded: recorded(graph, node), involves_complex }
    }
}

/// Names and recorded types of a node's results, one for each tensor of a list. The name is `None`
/// if nothing uses the result.
pub(crate) fn recorded<'a>(graph: &'a Graph, node: &'a Node) -> Vec<Recorded<'a>> {
    let mut results = Vec::with_capacity(node.outputs.len());
    let mut push = |name: Option<&'a Name>| {
        results.push((name, name.and_then(|name| graph.tensor(name))));
    };
    for output in &node.outputs {
        match output {
            Argument::Tensors(names) => names.iter().for_each(|n| push(Some(n))),
            Argument::OptionalTensors(names) => names.iter().for_each(|n| push(n.as_ref())),
            other => push(other.name()),
        }
    }
    results
}

/// Whether an argument is or holds a complex tensor.
pub(crate) fn is_complex(graph: &Graph, argument: &Argument) -> bool {
    let mut found = false;
    argument.for_each_name(&mut |name| {
        found = found || graph.tensor(name).is_some_and(|meta| meta.dtype.is_complex());
    });
    found
}
