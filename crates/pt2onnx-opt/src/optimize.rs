//! Runs passes until the model does not change.

use crate::{
    dims, fold, fold_control_flow,
    graph::{Changed, GraphMut},
    legalise::legalise_from,
    opaque::{self, Raising},
    opsets::OPSETS,
    pass::{Options, Pass, Phase},
    pass_stats::{self, Counts},
    pool, sizes,
    target::padding,
    types::{self, keeping_outputs},
    unreachable_branches::{self, Taken},
};
use pt2onnx_ir::{Model, schema::CANONICAL_OPSET};

/// Runs the passes of the options over the main graph and each function's body until no pass
/// changes it, or [`Options::max_rounds`] times. Graphs of other than the
/// [`OPTIMISED_OPSETS`](crate::OPTIMISED_OPSETS) are left out.
///
/// Nodes of other domains are kept, and so are nodes that mean something else at
/// [`CANONICAL_OPSET`](pt2onnx_ir::schema::CANONICAL_OPSET). Graph outputs keep their names and
/// types, and named constants their names. Types must be correct; for models of other producers,
/// use [`optimize_imported`].
pub fn optimize(model: &mut Model, options: &Options) {
    opaque::each_graph(model, |graph| {
        run_all(graph, options);
    });
}

/// Runs the passes until none changes the graph; returns whether any did.
fn run_all(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    let nodes = graph.model.nodes(graph.region).count();
    pool::run(nodes, || run_in_turns(graph, options))
}

fn run_in_turns(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    let of = |turn: Phase| -> Vec<&Pass> { options.active().filter(|p| p.turn == turn).collect() };
    let (early, late) = (of(Phase::Early), of(Phase::Late));
    let mut changed = run_each(graph, options, &early);
    for round in 0..options.max_rounds {
        if !late.iter().any(|pass| run(pass, graph, options, round)) {
            break;
        }
        changed = true;
        run_each(graph, options, &early);
    }
    for pass in of(Phase::Last) {
        changed |= run(pass, graph, options, 0);
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
            if run(pass, graph, options, round) { changes += 1 } else { *idle = Some(changes) }
        }
        if changes == before {
            break;
        }
    }
    changes > 0
}

/// As [`optimize`], for models of other producers: passes rely on the types that follow from the
/// model's inputs ([`infer_types`](crate::infer_types)) instead of the types in the file. Graph
/// outputs get the file's types back.
///
/// Nodes of the main graph that mean something else at [`CANONICAL_OPSET`] take its form while the
/// passes run, where legalisation can make them the older one again. If there are passes to run,
/// zeros that a `Pad` adds before a pool are marked at the end so that ONNX Runtime's optimiser
/// keeps them, which the file may have done.
pub fn optimize_imported(model: &mut Model, options: &Options) {
    keeping_outputs(model, |model| {
        let named = dims::name(model);
        imported_graphs(model, options);
        named.undo(model);
        if options.active().next().is_some() {
            padding::keep_zeros(model);
        }
    });
}

/// Optimises all graphs, with the types that follow from the inputs.
fn imported_graphs(model: &mut Model, options: &Options) {
    let written = model.opset;
    let older = OPSETS.contains(&written) && written < CANONICAL_OPSET;
    let alone = model.functions.is_empty();
    let before = (older && alone && options.active().next().is_some()).then(|| model.clone());
    match before {
        Some(before) => {
            let mut back = true;
            opaque::each_graph(model, |graph| {
                (graph.model.opset, graph.opset) = (CANONICAL_OPSET, CANONICAL_OPSET);
                imported_graph(graph, options, Some(Raising { written, alike: true }));
                let done = legalise_from(graph.model, written, written);
                if let Err(error) = &done {
                    tracing::debug!(%error, "optimised without the canonical form");
                }
                back = done.is_ok();
                graph.model.opset = written;
            });
            if !back {
                *model = before;
                opaque::each_graph(model, |graph| imported_graph(graph, options, None));
            }
        }
        None => opaque::each_graph(model, |graph| imported_graph(graph, options, None)),
    }
}

/// How many times types are inferred at most. Passes make more of them known, of each part of a
/// model after the part before it.
const MAX_INFERRED: usize = 128;

/// See [`Options::max_neutral_bytes`].
const IMPORTED_NEUTRAL_BYTES: usize = 64 << 10;

/// See [`Options::max_generated_bytes`].
const IMPORTED_GENERATED: usize = 128;

fn imported_graph(graph: &mut GraphMut<'_>, options: &Options, raised: Option<Raising>) {
    let opset = options.opset.min(raised.map_or(graph.opset, |r| r.written));
    let max_neutral_bytes = options.max_neutral_bytes.max(IMPORTED_NEUTRAL_BYTES);
    let max_generated_bytes = options
        .max_folded_bytes
        .saturating_mul(IMPORTED_GENERATED)
        .max(options.max_generated_bytes);
    let options = &Options {
        opset,
        max_neutral_bytes,
        max_generated_bytes,
        share_weights: true,
        join_weights: true,
        ..options.clone()
    };
    if options.runs(fold::NAME) {
        fold::constants(graph);
    }
    let (region, graph_opset) = (graph.region, graph.opset);
    let mut taken = Taken::default();
    settle(graph, options, raised, &taken);
    let simplified = |taken: Taken| {
        move |copy: &mut Model| {
            let mut graph = GraphMut { model: copy, region, opset: graph_opset };
            let options = Options { journal: None, ..options.clone() };
            settle(&mut graph, &options, raised, &taken);
        }
    };
    if !options.runs(fold_control_flow::NAME) {
        return;
    }
    loop {
        let simplify = simplified(taken.clone());
        if !unreachable_branches::find(graph.model, region, &mut taken, &simplify) {
            break;
        }
        settle(graph, options, raised, &taken);
    }
}

/// Infers types and runs the passes until nothing changes.
fn settle(graph: &mut GraphMut<'_>, options: &Options, raised: Option<Raising>, taken: &Taken) {
    let folds = options.runs(fold::NAME);
    for _ in 0..MAX_INFERRED {
        let computed = types::infer(graph, raised, taken);
        let before = noted(graph, options);
        let spelled = folds && sizes::spell_out(graph, &computed, options.opset);
        note("sizes", before.filter(|_| spelled), graph, options);
        if !run_all(graph, options) && !spelled {
            break;
        }
    }
}

/// The operators of a graph, if changes are noted.
fn noted(graph: &GraphMut<'_>, options: &Options) -> Option<Counts> {
    options.journal.as_ref().map(|_| pass_stats::counts(graph.model, graph.region))
}

fn note(pass: &'static str, before: Option<Counts>, graph: &GraphMut<'_>, options: &Options) {
    if let (Some(journal), Some(before)) = (&options.journal, before) {
        journal.note(pass, before, pass_stats::counts(graph.model, graph.region));
    }
}

fn run(pass: &Pass, graph: &mut GraphMut<'_>, options: &Options, round: usize) -> Changed {
    let valid = cfg!(debug_assertions) && pt2onnx_ir::verify(graph.model).is_ok();
    let before = noted(graph, options);
    let changed = pass.run(graph, options);
    note(pass.name, before.filter(|_| changed), graph, options);
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
