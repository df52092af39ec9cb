//! Passes on the FX graph, before anything is ONNX. Each takes a valid program to a valid program of the same meaning.

pub mod assertions;
pub mod functionalise;
pub mod inline;
mod names;
pub mod vmap;

use crate::{
    error::{Error, PassProblem, Result, Site},
    graph::{ExportedProgram, Node},
};

/// All passes, in order: [`inline`](inline::inline), [`vmap`](vmap::vmap), [`assertions`](assertions::remove_assertions),
/// [`functionalise`](functionalise::functionalise).
pub fn prepare(program: &mut ExportedProgram) -> Result<()> {
    inline::inline(program)?;
    vmap::vmap(program)?;
    assertions::remove_assertions(program);
    functionalise::functionalise(program)
}

fn problem(node: &Node, problem: PassProblem) -> Error {
    Error::Pass {
        site: Box::new(Site::of(node)),
        problem,
    }
}
