//! Optimises models: runs passes over each graph, and infers types in between for models of other
//! producers.

use crate::{
    Changed, GraphMut, OPSETS, Options, Target, dims,
    fixpoint::{self, Endless, note, noted},
    fold, fold_control_flow, fusion,
    legalise::legalise_from,
    opaque::{self, Raising},
    pass::Run,
    pool, sizes,
    target::padding,
    types::{self, keeping_outputs},
    unreachable_branches::{self, Taken},
};
use pt2onnx_ir::{Model, schema::CANONICAL_OPSET};

/// Runs the passes of the options over the main graph and each function's body until no pass
/// changes it, or [`Options::max_rounds`] times. Graphs of other than the
/// [`OPTIMISED_OPSETS`](crate::OPTIMISED_OPSETS) are left out. Returns the passes that were stopped
/// because they would have changed a graph forever.
///
/// Nodes of other domains are kept, and so are nodes that mean something else at
/// [`CANONICAL_OPSET`](pt2onnx_ir::schema::CANONICAL_OPSET). Graph outputs keep their names and
/// types, and named constants their names. Types must be correct; for models of other producers,
/// use [`optimize_imported`].
pub fn optimize(model: &mut Model, options: &Options) -> Vec<Endless> {
    let mut endless = Vec::new();
    opaque::each_graph(model, |graph| {
        run_all(graph, options, &mut endless);
        note_refusals(graph, options);
    });
    endless
}

/// Runs the passes until none changes the graph; returns whether any did.
fn run_all(graph: &mut GraphMut<'_>, options: &Options, endless: &mut Vec<Endless>) -> Changed {
    let nodes = graph.model.nodes(graph.region).count();
    pool::run(nodes, || fixpoint::run_all(graph, options, endless))
}

fn note_refusals(graph: &GraphMut<'_>, options: &Options) {
    let Some(stats) = &options.stats else { return };
    let mut copy = graph.model.clone();
    let mut graph = GraphMut::of(&mut copy, graph.region, graph.opset);
    let opset = options.opset.min(graph.opset);
    for pass in options.active() {
        if !pass.is_for(&graph, options) {
            continue;
        }
        if let Run::Explained(_, refusals) = pass.run {
            stats.refused(pass.name, refusals(&graph));
        } else if let Some(fusions) = pass.fusions() {
            let all = fusions.read().unwrap_or_default();
            let refusals = fusion::refusals(&mut graph, opset, all, fusions.careful);
            stats.refused(pass.name, refusals);
        }
    }
}

/// As [`optimize`], for models of other producers: passes rely on the types that follow from the
/// model's inputs ([`infer_types`](crate::infer_types)) instead of the types in the file. Graph
/// outputs get the file's types back.
///
/// Nodes of the main graph that mean something else at [`CANONICAL_OPSET`] take its form while the
/// passes run, where legalisation can make them the older one again. If there are passes to run,
/// zeros that a `Pad` adds before a pool are marked at the end so that ONNX Runtime's optimiser
/// keeps them, which the file may have done.
pub fn optimize_imported(model: &mut Model, options: &Options) -> Vec<Endless> {
    let mut endless = Vec::new();
    keeping_outputs(model, |model| {
        let named = dims::name(model);
        imported_graphs(model, options, &mut endless);
        named.undo(model);
        if options.active().next().is_some() {
            padding::keep_zeros(model);
        }
    });
    endless
}

fn imported_graphs(model: &mut Model, options: &Options, endless: &mut Vec<Endless>) {
    let written = model.opset;
    let older = OPSETS.contains(&written) && written < CANONICAL_OPSET;
    let alone = model.functions.is_empty();
    let before = (older && alone && options.active().next().is_some()).then(|| model.clone());
    match before {
        Some(before) => {
            let mut back = true;
            opaque::each_graph(model, |graph| {
                (graph.model.opset, graph.opset) = (CANONICAL_OPSET, CANONICAL_OPSET);
                let raising = Raising { written, alike: true };
                imported_graph(graph, options, Some(raising), endless);
                let done = legalise_from(graph.model, written, written, Target::Standard);
                if let Err(error) = &done {
                    tracing::debug!(%error, "optimised without the canonical form");
                }
                back = done.is_ok();
                graph.model.opset = written;
            });
            if !back {
                *model = before;
                opaque::each_graph(model, |graph| imported_graph(graph, options, None, endless));
            }
        }
        None => opaque::each_graph(model, |graph| imported_graph(graph, options, None, endless)),
    }
}

/// How many times types are inferred at most. Passes make more of them known, of each part of a
/// model after the part before it.
const MAX_INFERRED: usize = 128;

/// See [`Options::max_neutral_bytes`].
const IMPORTED_NEUTRAL_BYTES: usize = 64 << 10;

/// See [`Options::max_generated_bytes`].
const IMPORTED_GENERATED: usize = 128;

fn imported_graph(
    graph: &mut GraphMut<'_>,
    options: &Options,
    raised: Option<Raising>,
    endless: &mut Vec<Endless>,
) {
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
        imported: true,
        share_weights: true,
        join_weights: options.replace_weights,
        ..options.clone()
    };
    if options.runs(fold::FOLD.name) {
        fold::constants(graph);
    }
    let (region, graph_opset) = (graph.region, graph.opset);
    let mut taken = Taken::default();
    settle(graph, options, raised, &taken, endless);
    let simplified = |taken: Taken| {
        move |copy: &mut Model| {
            let mut graph = GraphMut::of(copy, region, graph_opset);
            let options = Options { stats: None, ..options.clone() };
            settle(&mut graph, &options, raised, &taken, &mut Vec::new());
        }
    };
    if options.runs(fold_control_flow::FOLD_CONTROL_FLOW.name) {
        let mut budget = unreachable_branches::MAX_SIMPLIFIED;
        loop {
            let simplify = simplified(taken.clone());
            let model = &*graph.model;
            if !unreachable_branches::find(model, region, &mut taken, &mut budget, &simplify) {
                break;
            }
            settle(graph, options, raised, &taken, endless);
        }
    }
    note_refusals(graph, options);
}

fn settle(
    graph: &mut GraphMut<'_>,
    options: &Options,
    raised: Option<Raising>,
    taken: &Taken,
    endless: &mut Vec<Endless>,
) {
    let folds = options.runs(fold::FOLD.name);
    for _ in 0..MAX_INFERRED {
        let computed = types::infer(graph, raised, taken);
        let before = noted(graph, options);
        let materialized = folds && sizes::materialize(graph, &computed, options.opset);
        note("sizes", before.filter(|_| materialized), graph, options);
        if !run_all(graph, options, endless) && !materialized {
            break;
        }
    }
}
