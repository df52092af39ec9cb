//! Runs passes until the model does not change.

use crate::{
    fold,
    graph::{Changed, GraphMut},
    legalise::legalise,
    opaque,
    opsets::OPSETS,
    pass::{Options, Pass},
    sizes, types,
};
use pt2onnx_ir::{Model, schema::CANONICAL_OPSET};

/// Runs the passes of the options over the main graph and each function's body until no pass changes it, or
/// [`Options::max_rounds`] times. Graphs of other than the [`OPTIMISED_OPSETS`](crate::OPTIMISED_OPSETS) are left out.
///
/// Nodes of other domains are kept, and so are nodes that mean something else at
/// [`CANONICAL_OPSET`](pt2onnx_ir::schema::CANONICAL_OPSET). Graph outputs keep their names and types, and named constants their
/// names. Types must be correct; for models of other producers, use [`optimize_foreign`].
pub fn optimize(model: &mut Model, options: &Options) {
    opaque::each_graph(model, |graph| {
        run_all(graph, options);
    });
}

/// Runs the passes until none changes the graph; returns whether any did.
fn run_all(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    let (late, early): (Vec<&Pass>, Vec<&Pass>) = options.active().partition(|p| p.late);
    let mut changed = run_each(graph, options, &early);
    if late.into_iter().any(|pass| run(pass, graph, options, options.max_rounds)) {
        changed = true;
        run_each(graph, options, &early);
    }
    changed
}

fn run_each(graph: &mut GraphMut<'_>, options: &Options, passes: &[&Pass]) -> Changed {
    // The number of changes so far: now, and when each pass last found nothing to do.
    let (mut changes, mut idle) = (0, vec![None; passes.len()]);
    for round in 0..options.max_rounds {
        let before = changes;
        for (&pass, idle) in passes.iter().zip(&mut idle) {
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
    changes > 0
}

/// As [`optimize`], for models of other producers: passes rely on the types that follow from the model's inputs
/// ([`infer_types`](crate::infer_types)) instead of the types in the file. Graph outputs get the file's types back.
///
/// Nodes of the main graph that mean something else at [`CANONICAL_OPSET`] take its form while the passes run, where legalisation
/// can make them the older one again.
pub fn optimize_foreign(model: &mut Model, options: &Options) {
    let claims: Vec<_> = model.output_values().map(|v| model[v].ty.clone()).collect();
    let written = model.opset;
    let older = OPSETS.contains(&written) && written < CANONICAL_OPSET;
    let alone = model.functions.is_empty();
    let before = (older && alone && options.active().next().is_some()).then(|| model.clone());
    match before {
        Some(before) => {
            let mut back = true;
            opaque::each_graph(model, |graph| {
                (graph.model.opset, graph.opset) = (CANONICAL_OPSET, CANONICAL_OPSET);
                foreign(graph, options, Some(written));
                let done = legalise(graph.model, written);
                if let Err(error) = &done {
                    tracing::debug!(%error, "optimised without the canonical form");
                }
                back = done.is_ok();
                graph.model.opset = written;
            });
            if !back {
                *model = before;
                opaque::each_graph(model, |graph| foreign(graph, options, None));
            }
        }
        None => opaque::each_graph(model, |graph| foreign(graph, options, None)),
    }
    for (value, claim) in model.output_values().collect::<Vec<_>>().into_iter().zip(claims) {
        model[value].ty = claim;
    }
}

/// How many times types are inferred at most: passes make more of them known.
const MAX_INFERRED: usize = 8;

fn foreign(graph: &mut GraphMut<'_>, options: &Options, raised: Option<u32>) {
    let opset = options.opset.min(raised.unwrap_or(graph.opset));
    let options = &Options { opset, ..options.clone() };
    let folds = options.active().any(|p| p.name == "fold");
    if folds {
        fold::constants(graph);
    }
    for _ in 0..MAX_INFERRED {
        let computed = types::infer(graph, raised);
        let spelled = folds && sizes::spell_out(graph, &computed, opset);
        if !run_all(graph, options) && !spelled {
            break;
        }
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
