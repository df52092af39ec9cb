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
    error::{Error, PassProblem, Result, Site},
    graph::{ExportedProgram, Node},
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

fn problem(node: &Node, problem: PassProblem) -> Error {
    Error::Pass {
        site: Box::new(Site::of(node)),
        problem,
    }
}
