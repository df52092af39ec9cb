//! Dead code elimination: nodes whose outputs are not used.

use crate::{Changed, GraphMut, Options, Pass, pass::Run};

pub(crate) static DEAD: Pass = Pass {
    name: "dead",
    description: "Erases nodes whose outputs are not used.",
    precondition: "Operators have no side effects; those of ONNX have none.",
    run: Run::Graph(run),
    ..Pass::SIMPLIFICATION
};

/// Erases dead nodes in one walk from the last node to the first: a node comes after the nodes it
/// uses, and before the nodes of its bodies.
fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    let mut changed = false;
    let mut nodes = graph.nodes();
    nodes.reverse();
    let mut walk = graph.walk_over(nodes);
    let model = &mut *graph.model;
    while let Some(node) = walk.next(model) {
        if model.contains(node) && model.is_unused(node) {
            changed |= model.erase(node);
        }
    }
    changed
}
