//! `lower`: translates a program to a model.

use super::{
    modules::Modules,
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
    /// The model, in operators of the canonical opset.
    pub model: Model,
    /// What the user should know, such as outputs that were left out.
    pub warnings: Vec<String>,
}

/// Translates a functional program, as `pt2onnx_fx::passes::prepare` makes it. `options` are [`Options`], or a
/// [`State`](crate::State).
///
/// # Errors
/// Returns an error that lists every node, input and output that cannot be translated.
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
    driver.modules = options.modules.then(|| Modules::new(&program.torch_version));
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

#[cfg(test)]
mod tests {
    use crate::{Cx, Lowered, Registry, checks::tests::translated_by};
    use pt2onnx_ir::Value;

    #[test]
    fn threads_share_a_registry() {
        let mut registry = Registry::default();
        let twice = |cx: &Cx, x: Value| -> Lowered { Ok(cx.mul(x, 2)) };
        registry.register("mylib::twice(Tensor x) -> Tensor", twice).unwrap();
        let calls = [
            "mylib.twice(x: f32[2]) -> f32[2]",
            "aten.relu(x: f32[s0]) -> f32[s0]",
            "aten.add.Tensor(x: f32[s0, 8], y: i64[8], alpha = 2) -> f32[s0, 8]",
            "mylib.once(x: f32[2]) -> f32[2]",
        ];
        let all = || calls.map(|call| translated_by(&registry, call));
        let found = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(all));
            threads.map(|thread| thread.join().unwrap())
        });
        // One thread with a registry of its own gives the same.
        let mut alone = Registry::default();
        alone.register("mylib::twice(Tensor x) -> Tensor", twice).unwrap();
        let expected = calls.map(|call| translated_by(&alone, call));
        assert!(found.iter().all(|texts| *texts == expected), "{found:#?}");
        assert!(expected[0].contains("Mul (x") && expected[3].contains("no translation"));
    }
}
