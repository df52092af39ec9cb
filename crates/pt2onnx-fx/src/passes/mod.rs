//! Passes on the FX graph. Each takes a valid program to a valid program of the same meaning.

pub mod assertions;
pub mod attention;
mod autocast;
pub mod dead;
pub mod foreach;
pub mod functionalise;
pub mod inline;
mod names;
mod opaque;
mod problem;
mod records;
pub mod training;
pub mod vmap;
pub mod wrapped;

use crate::{
    error::{Error, Result},
    graph::ExportedProgram,
};
use opaque::make_opaque;

pub use opaque::is_opaque;

/// A pass. It changes the form of a program, and keeps its meaning.
pub type Pass = fn(&mut ExportedProgram) -> Result<()>;

/// All passes by name, in the order in which they have to run.
pub const PASSES: &[(&str, Pass)] = &[
    ("inline", inline::inline),
    ("records", |program| {
        records::mend_records(program);
        Ok(())
    }),
    ("vmap", vmap::vmap),
    ("wrapped", wrapped::unwrap_operators),
    ("foreach", foreach::expand_foreach),
    ("assertions", |program| {
        assertions::remove_assertions(program);
        Ok(())
    }),
    ("functionalise", functionalise::functionalise),
    ("attention", |program| {
        attention::restore_attention(program);
        Ok(())
    }),
    ("dead", |program| {
        dead::remove_dead(program);
        Ok(())
    }),
];

/// Runs all [`PASSES`].
pub fn prepare(program: &mut ExportedProgram) -> Result<()> {
    PASSES.iter().try_for_each(|(_, pass)| pass(program))
}

/// Runs all [`PASSES`] and collects the errors of all nodes, at most 200. A node that a pass cannot
/// handle becomes an opaque node ([`is_opaque`]), and the pass starts again. Returns the program,
/// which can be checked further if there are errors; `None` if an error concerns no single node.
pub fn prepare_all(mut program: ExportedProgram) -> (Option<ExportedProgram>, Vec<Error>) {
    let mut errors = Vec::new();
    for (_, pass) in PASSES {
        loop {
            let mut before = program.clone();
            let Err(error) = pass(&mut program) else {
                break;
            };
            let opaque = match &error {
                Error::Pass { site, .. } => make_opaque(&mut before.graph, site),
                _ => false,
            };
            errors.push(error);
            if !opaque || errors.len() >= 200 {
                return (None, errors);
            }
            program = before;
        }
    }
    (Some(program), errors)
}
