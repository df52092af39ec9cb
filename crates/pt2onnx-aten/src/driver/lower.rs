//! `lower`: translates a program to a model.

use super::{
    lower_graph::Driver,
    metadata::Annotator,
    modules::Modules,
    options::{Mutations, Options},
    prefetch::{self, Prefetched},
    usage::emitted,
};
use crate::{Error, Registry};
use pt2onnx_fx::graph::ExportedProgram;
use pt2onnx_ir::{Builder, InsertPoint, Model, schema::CANONICAL_OPSET};

/// A translated program.
#[derive(Debug)]
pub struct Lowering {
    /// The model, in operators of the canonical opset.
    pub model: Model,
    /// Warnings for the user, such as outputs that were left out.
    pub warnings: Vec<String>,
}

/// Translates a functional program, as `pt2onnx_fx::passes::prepare` makes it. `options` are
/// [`Options`], or a [`Mutations`](crate::Mutations).
///
/// # Errors
/// Returns an error that lists every node, input and output that cannot be translated.
pub fn lower<'a>(
    program: &'a ExportedProgram,
    registry: &'a Registry,
    options: impl Into<Options<'a>>,
) -> Result<Lowering, Error> {
    let (options, graph) = (options.into(), &program.graph);
    let annotator = || Annotator::of_program(options, graph);
    prefetch::with(graph, annotator, |made| translate(program, registry, options, made))
}

/// Translates a program, given what is made of its nodes ahead.
fn translate<'a>(
    program: &'a ExportedProgram,
    registry: &'a Registry,
    options: Options<'a>,
    made: &mut dyn Iterator<Item = Prefetched<'a>>,
) -> Result<Lowering, Error> {
    let state = options.state;
    let mut model = Model::new(CANONICAL_OPSET);
    // Most nodes become one or two.
    model.reserve(2 * program.graph.nodes.len());
    let builder =
        Builder::new(&mut model, InsertPoint::End(Model::MAIN), program.constraints.clone());
    let mut driver = Driver::new(builder, &program.graph, registry, options);
    driver.describe(program);
    driver.modules = options.modules.then(|| Modules::new(&program.torch_version));
    if matches!(state, Mutations::Outputs | Mutations::Pairs) {
        driver.scope.keep(program.mutations.iter().map(|mutation| &mutation.value));
    }
    driver.inputs(program, state);
    driver.program(&program.graph, made);
    let warnings = driver.outputs(program, state);
    let errors = std::mem::take(&mut driver.errors);
    let abandoned = driver.abandoned;
    drop(driver);
    if errors.is_empty() {
        if abandoned {
            for node in model.all_nodes().into_iter().rev() {
                if model.contains(node) {
                    model.erase(node);
                }
            }
        }
        return Ok(Lowering { model, warnings });
    }
    let emitted = emitted(&model);
    Err(Error { emitted, ..errors })
}
