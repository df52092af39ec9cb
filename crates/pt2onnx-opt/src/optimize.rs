//! Runs passes until the model does not change.

use crate::{
    graph::{Changed, GraphMut},
    opaque,
    pass::{Options, Pass},
    sizes, types,
};
use pt2onnx_ir::Model;

/// Runs the passes of the options over the main graph and each function's body until no pass changes it, or
/// [`Options::max_rounds`] times. Graphs of other than the [`OPTIMISED_OPSETS`](crate::OPTIMISED_OPSETS) are left out.
///
/// Nodes of other domains are kept, and so are nodes that mean something else at
/// [`CANONICAL_OPSET`](pt2onnx_ir::schema::CANONICAL_OPSET). Graph outputs keep their names and types, and named constants their
/// names. Types must be correct; for models of other producers, use [`optimize_foreign`].
pub fn optimize(model: &mut Model, options: &Options) {
    opaque::each_graph(model, |graph| {
        let passes: Vec<&Pass> = options.active().collect();
        // The number of changes so far: now, and when each pass last found nothing to do.
        let (mut changes, mut idle) = (0, vec![None; passes.len()]);
        for round in 0..options.max_rounds {
            let before = changes;
            for (pass, idle) in passes.iter().zip(&mut idle) {
                if *idle == Some(changes) {
                    continue;
                }
                match run(pass, graph, options, round) {
                    true => changes += 1,
                    false => *idle = Some(changes),
                }
            }
            if changes == before {
                break;
            }
        }
    });
}

/// As [`optimize`], for models of other producers: passes rely on the types that follow from the model's inputs
/// ([`infer_types`](crate::infer_types)) instead of the types in the file. Graph outputs get the file's types back.
pub fn optimize_foreign(model: &mut Model, options: &Options) {
    let claims: Vec<_> = model.output_values().map(|v| model[v].ty.clone()).collect();
    opaque::each_graph(model, |graph| {
        let computed = types::infer(graph);
        if options.active().any(|p| p.name == "fold") {
            sizes::spell_out(graph, &computed);
        }
    });
    optimize(model, options);
    for (value, claim) in model.output_values().collect::<Vec<_>>().into_iter().zip(claims) {
        model[value].ty = claim;
    }
}

fn run(pass: &Pass, graph: &mut GraphMut<'_>, options: &Options, round: usize) -> Changed {
    let valid = cfg!(debug_assertions) && pt2onnx_ir::verify(graph.model).is_ok();
    let changed = pass.run(graph, options);
    tracing::debug!(pass = pass.name, round, changed, "pass");
    if valid && changed {
        let errors = pt2onnx_ir::verify(graph.model).err();
        debug_assert!(
            errors.is_none(),
            "{} broke the model: {errors:?}\n{}",
            pass.name,
            graph.model
        );
    }
    changed
}
