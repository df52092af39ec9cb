//! Errors of passes.

use crate::{
    error::{Error, PassProblem},
    graph::{Node, Site},
};

/// A problem of a node as an error.
pub(super) fn problem(node: &Node, problem: PassProblem) -> Error {
    Error::Pass { site: Box::new(Site::of(node)), problem }
}
