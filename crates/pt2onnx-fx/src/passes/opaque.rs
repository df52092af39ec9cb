//! Opaque nodes: stand-ins for nodes that a pass could not handle, so that the others can be
//! checked too.

use crate::graph::{Argument, Graph, Node, OpName, Site};
use std::sync::Arc;

/// Namespace of opaque nodes.
const OPAQUE: &str = "pt2onnx.opaque";

/// Whether a node stands in for one that a pass could not handle. It has the same results, and no
/// meaning.
pub fn is_opaque(node: &Node) -> bool {
    &*node.target.namespace == OPAQUE
}

/// Replaces the node at `site`, which may be in a body, by an opaque node that reads and defines
/// the same values. Returns whether it did: not if there is no such node, or if it is one of the
/// marks of `vmap`, which come in pairs.
pub(super) fn make_opaque(graph: &mut Graph, site: &Site) -> bool {
    let Some(node) = find(graph, site) else {
        return false;
    };
    if is_opaque(node) || node.target.namespace.ends_with("predispatch") {
        return false;
    }
    let name = node.target.name.to_string();
    // Without an overload it is not an operator, and counts as pure.
    node.target = OpName::new(OPAQUE, &name, "");
    node.args.retain(|arg| !matches!(arg.value, Argument::Graph { .. }));
    true
}

fn find<'a>(graph: &'a mut Graph, site: &Site) -> Option<&'a mut Node> {
    let at = graph.nodes.iter().position(|n| Site::of(n) == *site);
    if let Some(at) = at {
        return graph.nodes.get_mut(at).map(Arc::make_mut);
    }
    graph.bodies_mut().find_map(|body| find(body, site))
}
