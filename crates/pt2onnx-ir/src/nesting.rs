//! Checks that bodies form trees of limited depth: those of the main graph, and those of each
//! function.

use crate::{Model, NodeId, RegionId};

/// The most bodies that may be within each other: each is three messages, and readers of protobuf
/// take 100.
pub const MAX_NESTING: usize = 32;

/// The owner of a region.
#[derive(Clone, Copy)]
enum Owner {
    Model,
    Function(usize),
    Node(NodeId),
}

/// The first body that is in two places, too deep, or not in the model: what has it, and what is
/// wrong. It does not recurse: a body may contain itself.
pub(crate) fn misplaced(model: &Model) -> Option<(String, String)> {
    let error = |owner, what: &str| {
        let place = match owner {
            Owner::Model => "the main graph".to_owned(),
            Owner::Function(i) => format!("function {i}"),
            Owner::Node(node) => model.describe(node),
        };
        Some((place, what.to_owned()))
    };
    let mut seen = vec![false; model.regions.len()];
    let functions = model.functions.iter().enumerate();
    let functions = functions.map(|(i, function)| (function.body, 0, Owner::Function(i)));
    let mut todo: Vec<(RegionId, usize, Owner)> = functions.collect();
    todo.push((Model::MAIN, 0, Owner::Model));
    while let Some((region, depth, owner)) = todo.pop() {
        match seen.get_mut(region.index()) {
            None => return error(owner, "its body is not in the model"),
            Some(true) => return error(owner, "its body is in another place, too"),
            Some(_) if depth > MAX_NESTING => {
                return error(owner, &format!("its body is within {MAX_NESTING} others"));
            }
            Some(seen) => *seen = true,
        }
        for node in model.nodes(region) {
            todo.extend(model[node].regions().map(|body| (body, depth + 1, Owner::Node(node))));
        }
    }
    None
}
