//! The entry: a program in, a model out.

use super::{
    options::{Options, State},
    usage::emitted,
    walk::Driver,
};
use crate::{Error, Registry};
use pt2onnx_fx::graph::ExportedProgram;
use pt2onnx_ir::{Builder, InsertPoint, Model, schema::CANONICAL_OPSET};

/// A translated program.
#[derive(Debug)]
pub struct Lowering {
    /// The model, in the newest operator forms.
    pub model: Model,
    /// What the user should know: outputs left out, and the like.
    pub warnings: Vec<String>,
}

/// Translates a functional program (one that `pt2onnx_fx::passes::prepare` made). `options` may be a [`State`](crate::State) alone.
///
/// # Errors
/// Returns every node, input and output that cannot be translated.
pub fn lower<'a>(
    program: &'a ExportedProgram,
    registry: &'a Registry,
    options: impl Into<Options<'a>>,
) -> Result<Lowering, Error> {
    let options = options.into();
    let state = options.state;
    let mut model = Model::new(CANONICAL_OPSET);
    model.reserve(program.graph.nodes.len());
    let builder =
        Builder::new(&mut model, InsertPoint::End(Model::MAIN), program.constraints.clone());
    let mut driver = Driver::new(builder, &program.graph, registry, options);
    driver.describe(program);
    if matches!(state, State::Outputs | State::Pairs) {
        driver.scope.keep(program.mutations.iter().map(|mutation| &mutation.value));
    }
    driver.inputs(program, state);
    driver.nodes(&program.graph);
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
