//! TorchScript archives: they are flattened into programs, with the types that the lowerings tell.

use crate::{Error, Options, Registry, State};
use pt2onnx_aten::infer;
use pt2onnx_fx::{ExportedProgram, Node, archive::Records};
use pt2onnx_torchscript::{
    Archive, Given, flatten, flatten_with_state,
    types::{Contents, Facts, Outcome, Typed, Types},
};

/// A program, and what the user should know of how it was made.
pub(crate) struct Read {
    pub(crate) program: ExportedProgram,
    pub(crate) warnings: Vec<String>,
}

impl From<ExportedProgram> for Read {
    fn from(program: ExportedProgram) -> Self {
        Self { program, warnings: Vec::new() }
    }
}

/// Whether an archive could not be read because it is one of TorchScript.
pub(crate) fn is_one(error: &pt2onnx_fx::Error) -> bool {
    let found = match error {
        pt2onnx_fx::Error::Layout { found, .. } => found,
        _ => return false,
    };
    *found == pt2onnx_fx::NotAnArchive::TorchScript
}

/// Reads the records of an archive, and flattens the method that the options name.
pub(crate) fn read(
    records: Records,
    options: &Options,
    registry: &Registry,
) -> Result<Read, Error> {
    let archive = Archive::new(records)?;
    let given = options.input.iter();
    let given = given.map(|(name, text)| (name.clone(), Given::parse(text))).collect();
    let keeps = options.state == State::Pairs;
    let run = if keeps { flatten_with_state } else { flatten };
    let mut flat = run(&archive, &options.method, given, &mut Lowerings(registry))?;
    let lost: Vec<String> = flat.lost.iter().map(|path| format!("`{path}`")).collect();
    if options.state == State::Error && !lost.is_empty() {
        return Err(pt2onnx_torchscript::Error::Writes { attributes: lost }.into());
    }
    if !lost.is_empty() {
        flat.warnings.push(format!(
            "the method gives the attributes {} other values, which are lost; the option `state` keeps them, set to `pairs`",
            lost.join(", ")
        ));
    }
    Ok(Read { program: flat.program, warnings: flat.warnings })
}

/// The types that lowerings tell.
struct Lowerings<'a>(&'a Registry);

impl Types for Lowerings<'_> {
    fn results(&mut self, node: &Node, facts: &mut Facts) -> Result<Vec<Outcome>, String> {
        let contents = node.input_names().into_iter().filter_map(|name| {
            let known = match facts.contents.get(&name)? {
                Contents::Exact(tensor) => infer::Contents::Exact(tensor.clone()),
                Contents::Exprs(elements) => infer::Contents::Exprs(elements.clone()),
            };
            Some((name, known))
        });
        let contents = contents.collect();
        let known = infer::Facts {
            values: &facts.values,
            contents: &contents,
            constraints: &facts.constraints,
        };
        let mut symbol = |float: bool| facts.symbols.next(float);
        let outcomes = self.0.infer(node, &known, &mut symbol);
        let outcomes = outcomes.map_err(|error| error.to_string())?;
        Ok(outcomes.into_iter().map(outcome).collect())
    }
}

fn outcome(outcome: infer::Outcome) -> Outcome {
    match outcome {
        infer::Outcome::One(one) => Outcome::One(typed(one)),
        infer::Outcome::List(items) => Outcome::List(items.into_iter().map(typed).collect()),
        infer::Outcome::None => Outcome::None,
    }
}

fn typed(typed: infer::Typed) -> Typed {
    Typed { meta: typed.meta, contents: typed.contents.map(Contents::Exprs) }
}
