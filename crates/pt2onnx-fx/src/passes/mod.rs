//! Passes on the FX graph, before anything is ONNX. Each takes a valid program to a valid program of the same meaning.

pub mod assertions;
pub mod autocast;
pub mod dead;
pub mod foreach;
pub mod functionalise;
pub mod inline;
mod names;
pub mod wrapped;

use crate::{
    error::{Error, PassProblem, Result, Site},
    graph::{ExportedProgram, Node},
};

/// All passes, in order: [`autocast`], [`inline`], [`wrapped`], [`foreach`], [`assertions`], [`functionalise`],
/// [`dead`].
pub fn prepare(program: &mut ExportedProgram) -> Result<()> {
    autocast::write_casts(program);
    inline::inline(program)?;
    wrapped::unwrap_operators(program)?;
    foreach::expand_foreach(program)?;
    assertions::remove_assertions(program);
    functionalise::functionalise(program)?;
    dead::remove_dead(program);
    Ok(())
}

fn problem(node: &Node, problem: PassProblem) -> Error {
    Error::Pass {
        site: Box::new(Site::of(node)),
        problem,
    }
}
