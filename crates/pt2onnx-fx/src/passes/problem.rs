//! Errors of passes.

use crate::{
    error::{Error, PassProblem},
    graph::{Node, Site},
};

/// What is wrong with a node, as an error.
pub(super) fn problem(node: &Node, problem: PassProblem) -> Error {
    Error::Pass { site: Box::new(Site::of(node)), problem }
}
