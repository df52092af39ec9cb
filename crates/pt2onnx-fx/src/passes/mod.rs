//! Passes on the FX graph, before anything is ONNX. Each takes a valid program to a valid program of the same meaning.

pub mod assertions;
mod autocast;
pub mod dead;
pub mod foreach;
pub mod functionalise;
pub mod inline;
mod names;
pub mod vmap;
pub mod wrapped;

use crate::{
    error::{Error, PassProblem, Result},
    graph::{Argument, ExportedProgram, Graph, Node, OpName, Site},
};

/// A pass: a program in, the same program in another form out.
pub type Pass = fn(&mut ExportedProgram) -> Result<()>;

/// All passes by name, in the order in which they have to run.
pub const PASSES: &[(&str, Pass)] = &[
    ("inline", inline::inline),
    ("vmap", vmap::vmap),
    ("wrapped", wrapped::unwrap_operators),
    ("foreach", foreach::expand_foreach),
    ("assertions", |program| {
        assertions::remove_assertions(program);
        Ok(())
    }),
    ("functionalise", functionalise::functionalise),
    ("dead", |program| {
        dead::remove_dead(program);
        Ok(())
    }),
];

/// Runs all [`PASSES`].
pub fn prepare(program: &mut ExportedProgram) -> Result<()> {
    PASSES.iter().try_for_each(|(_, pass)| pass(program))
}

/// Namespace of nodes that were set aside.
const ASIDE: &str = "pt2onnx.aside";

/// Runs all [`PASSES`] and collects what they cannot treat, at most 200 times: the node is set aside
/// ([`is_aside`]), and its pass begins anew. Of a program with errors it gives what the others made of it, to be looked at
/// further, where there is such a thing.
pub fn prepare_all(mut program: ExportedProgram) -> (Option<ExportedProgram>, Vec<Error>) {
    let mut errors = Vec::new();
    for (_, pass) in PASSES {
        loop {
            let mut before = program.clone();
            let Err(error) = pass(&mut program) else {
                break;
            };
            let aside = match &error {
                Error::Pass { site, .. } => set_aside(&mut before.graph, site),
                _ => false,
            };
            errors.push(error);
            if !aside || errors.len() >= 200 {
                return (None, errors);
            }
            program = before;
        }
    }
    (Some(program), errors)
}

/// Whether a node stands for one that a pass could not treat: it has its results, and means nothing.
pub fn is_aside(node: &Node) -> bool {
    &*node.target.namespace == ASIDE
}

/// Replaces that node, in bodies too, by one that reads and gives the same values; not the marks of `vmap`, which come in
/// pairs.
fn set_aside(graph: &mut Graph, site: &Site) -> bool {
    let Some(node) = find(graph, site) else {
        return false;
    };
    if is_aside(node) || node.target.namespace.ends_with("predispatch") {
        return false;
    }
    let name = node.target.name.to_string();
    // Without an overload it is no operator, and nobody looks for what it writes.
    node.target = OpName::new(ASIDE, &name, "");
    node.args.retain(|arg| !matches!(arg.value, Argument::Graph { .. }));
    true
}

fn find<'a>(graph: &'a mut Graph, site: &Site) -> Option<&'a mut Node> {
    let at = graph.nodes.iter().position(|n| Site::of(n) == *site);
    if let Some(at) = at {
        return graph.nodes.get_mut(at);
    }
    let mut bodies = graph.nodes.iter_mut().flat_map(Node::bodies_mut);
    bodies.find_map(|body| find(body, site))
}

fn problem(node: &Node, problem: PassProblem) -> Error {
    Error::Pass { site: Box::new(Site::of(node)), problem }
}
