//! Runs passes to a fixpoint, and ends where there is none: where passes undo each other, or a rule
//! of a user makes the graph grow.

use crate::{
    Changed, GraphMut, Measure, Options, Pass,
    budget::Budget,
    cse,
    pass::Phase,
    pass_stats::{self, Counts},
};
use pt2onnx_ir::{Def, Model, Name, RegionId, Value, is_unknown};
use rustc_hash::{FxHashMap, FxHasher};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    hash::{Hash, Hasher},
};

/// Passes that would have changed a graph forever, or took too long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endless {
    /// Their names; a pass of rules has the names of the rules, too: `rules (swap, swap_back)`.
    pub passes: Vec<String>,
    /// Why they were stopped.
    pub kind: EndlessKind,
}

/// Why passes were stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndlessKind {
    /// They undo each other's changes.
    UndoEachOther,
    /// They make the graph larger and larger.
    Grows,
    /// In one run, a pass made more edits than a multiple of the size of the graph.
    TooManyEdits,
}

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passes = self.passes.join(", ");
        match self.kind {
            EndlessKind::UndoEachOther => {
                write!(f, "passes that undo each other's changes were stopped: {passes}")
            }
            EndlessKind::Grows => {
                write!(f, "passes that make the model larger and larger were left out: {passes}")
            }
            EndlessKind::TooManyEdits => write!(
                f,
                "the pass {passes} was stopped after too many edits for the size of the model, \
                 which is right but may be larger or slower than it could be"
            ),
        }
    }
}

/// In so many rounds, most graphs stop to change. Later ones are compared with each other.
const USUAL_ROUNDS: usize = 4;

/// With a pass whose [`Measure`] is unknown, a graph may grow by this factor and this many nodes.
const MAX_GROWTH: (usize, usize) = (2, 1 << 10);

/// The passes that changed a graph, each with the rules that it applied.
type Changing = BTreeMap<&'static str, BTreeSet<Name>>;

fn names(changing: Changing) -> Vec<String> {
    let named = changing.into_iter().map(|(pass, rules)| {
        let rules: Vec<&str> = rules.iter().map(|rule| &**rule).collect();
        if rules.is_empty() { pass.to_owned() } else { format!("{pass} ({})", rules.join(", ")) }
    });
    named.collect()
}

/// The states of a graph after each round of passes.
#[derive(Default)]
pub(crate) struct Rounds {
    /// The hash of a state, the number of nodes, and the passes since the one before.
    states: Vec<(u64, usize, Changing)>,
}

impl Rounds {
    /// Notes the state after a round. If it was there before, returns the passes since then, and
    /// after how many more rounds the smallest of the states in between comes again.
    fn repeats(&mut self, graph: &GraphMut<'_>, changing: Changing) -> Option<(Changing, usize)> {
        let (hash, nodes) = state(graph.model, graph.region);
        let first = self.states.iter().position(|(known, ..)| *known == hash);
        self.states.push((hash, nodes, changing));
        let circle = self.states.get(first? + 1..)?;
        let smallest = circle.iter().enumerate().min_by_key(|(_, (_, nodes, _))| nodes);
        let more = (smallest?.0 + 1) % circle.len();
        let mut all = Changing::new();
        for (pass, rules) in circle.iter().flat_map(|(.., passes)| passes.clone()) {
            all.entry(pass).or_default().extend(rules);
        }
        Some((all, more))
    }
}

/// Runs the passes until none changes the graph; returns whether any did.
pub(crate) fn run_all(
    graph: &mut GraphMut<'_>,
    options: &Options,
    endless: &mut Vec<Endless>,
) -> Changed {
    let nodes = graph.nodes().len();
    if options.active().all(|pass| pass.lowers != Measure::Unknown) {
        return Driver { options, nodes, most: usize::MAX, endless }.run(graph).unwrap_or(true);
    }
    let before = graph.model.clone();
    let (factor, more) = MAX_GROWTH;
    let most = nodes.saturating_mul(factor).saturating_add(more);
    let done = Driver { options, nodes, most, endless }.run(graph);
    done.unwrap_or_else(|Growing(passes)| {
        endless.push(Endless { passes: names(passes), kind: EndlessKind::Grows });
        *graph.model = before;
        let known = |pass: &Pass| pass.lowers != Measure::Unknown;
        let passes = options.passes.clone().filtered(known);
        let options = &Options { passes, ..options.clone() };
        Driver { options, nodes, most: usize::MAX, endless }.run(graph).unwrap_or(true)
    })
}

struct Growing(Changing);

/// Runs passes over one graph.
struct Driver<'a> {
    options: &'a Options,
    /// How many nodes the graph had before.
    nodes: usize,
    /// How many nodes it may get.
    most: usize,
    endless: &'a mut Vec<Endless>,
}

impl Driver<'_> {
    fn run(mut self, graph: &mut GraphMut<'_>) -> Result<Changed, Growing> {
        let options = self.options;
        let of = |phase: Phase| -> Vec<&Pass> {
            options.active().filter(|p| p.phase == phase).collect()
        };
        let (early, late) = (of(Phase::Early), of(Phase::Late));
        let mut changed = self.run_early(graph, &early)?;
        let mut rounds = Rounds::default();
        let mut left = options.max_rounds;
        while left > 0 {
            left -= 1;
            let mut changing = Changing::new();
            if !late.iter().any(|pass| self.run_pass(pass, graph, left, &mut changing)) {
                break;
            }
            changed = true;
            self.run_early(graph, &early)?;
            if options.max_rounds - left > USUAL_ROUNDS
                && let Some((passes, more)) = rounds.repeats(graph, changing)
            {
                self.stop(names(passes), EndlessKind::UndoEachOther);
                left = left.min(more);
            }
        }
        for pass in of(Phase::Last) {
            changed |= self.run_pass(pass, graph, 0, &mut Changing::new());
        }
        Ok(changed)
    }

    fn run_early(
        &mut self,
        graph: &mut GraphMut<'_>,
        passes: &[&Pass],
    ) -> Result<Changed, Growing> {
        // The number of changes so far: now, and when each pass last found nothing to do.
        let (mut changes, mut idle) = (0, vec![None; passes.len()]);
        let mut rounds = Rounds::default();
        let (mut round, mut last) = (0, self.options.max_rounds);
        while round < last {
            let before = changes;
            let mut changing = Changing::new();
            for (&pass, idle) in passes.iter().zip(&mut idle) {
                if *idle == Some(changes) {
                    continue;
                }
                if self.run_pass(pass, graph, round, &mut changing) {
                    changes += 1;
                } else {
                    *idle = Some(changes);
                }
            }
            if changes == before {
                break;
            }
            round += 1;
            if self.most < usize::MAX && graph.nodes().len() > self.most {
                return Err(Growing(changing));
            }
            if round > USUAL_ROUNDS
                && last == self.options.max_rounds
                && let Some((passes, more)) = rounds.repeats(graph, changing)
            {
                self.stop(names(passes), EndlessKind::UndoEachOther);
                last = last.min(round + more);
            }
        }
        Ok(changes > 0)
    }

    /// Runs a pass once, within its [budget](Budget). A pass that exceeds it does not run again.
    fn run_pass(
        &mut self,
        pass: &Pass,
        graph: &mut GraphMut<'_>,
        round: usize,
        changing: &mut Changing,
    ) -> Changed {
        let exceeded =
            Endless { passes: vec![pass.name.to_owned()], kind: EndlessKind::TooManyEdits };
        if self.endless.contains(&exceeded) {
            return false;
        }
        let valid = cfg!(debug_assertions) && pt2onnx_ir::verify(graph.model).is_ok();
        pt2onnx_cancel::check();
        let before = noted(graph, self.options);
        let edits = graph.model.edits();
        let mut rules: BTreeSet<Name> = BTreeSet::new();
        graph.budget = Budget::of_pass(graph.model, self.nodes);
        let changed = pass.run_with(graph, self.options, &mut rules);
        if graph.budget.is_spent(graph.model) {
            self.endless.push(exceeded);
        }
        graph.budget = Budget::UNLIMITED;
        note(pass.name, before.filter(|_| changed), graph, self.options);
        let edits = graph.model.edits() - edits;
        tracing::debug!(pass = pass.name, round, changed, edits, "pass");
        if changed {
            changing.entry(pass.name).or_default().extend(rules);
        }
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

    fn stop(&mut self, passes: Vec<String>, kind: EndlessKind) {
        let new = Endless { passes, kind };
        if !self.endless.contains(&new) {
            self.endless.push(new);
        }
    }
}

pub(crate) fn noted(graph: &GraphMut<'_>, options: &Options) -> Option<Counts> {
    options.stats.as_ref().map(|_| pass_stats::counts(graph.model, graph.region))
}

pub(crate) fn note(
    pass: &'static str,
    before: Option<Counts>,
    graph: &GraphMut<'_>,
    options: &Options,
) {
    if let (Some(stats), Some(before)) = (&options.stats, before) {
        stats.changed(pass, before, pass_stats::counts(graph.model, graph.region));
    }
}

/// A hash of the structure, constants and types of a graph, and the number of its nodes.
fn state(model: &Model, region: RegionId) -> (u64, usize) {
    let nodes = model.nodes_in(&[region]);
    let mut numbers: FxHashMap<Value, usize> = FxHashMap::default();
    let mut hash = FxHasher::default();
    for &node in &nodes {
        let data = &model[node];
        cse::function_hash(data, &mut hash);
        for input in data.inputs() {
            reference(model, &numbers, *input, &mut hash);
        }
        for &output in data.outputs() {
            numbers.insert(output, numbers.len());
            model.dtype(output).hash(&mut hash);
            for dim in model.shape(output).into_iter().flatten() {
                (!is_unknown(dim)).then_some(dim).hash(&mut hash);
            }
        }
        for inner in data.regions() {
            for value in model[inner].inputs() {
                numbers.insert(*value, numbers.len());
            }
        }
    }
    let inner = nodes.iter().flat_map(|&n| model[n].regions());
    for region in inner.chain([region]) {
        for value in model[region].output_values() {
            reference(model, &numbers, Some(value), &mut hash);
        }
    }
    (hash.finish(), nodes.len())
}

fn reference(
    model: &Model,
    numbers: &FxHashMap<Value, usize>,
    value: Option<Value>,
    hash: &mut FxHasher,
) {
    match value.map(|v| model[v].def()) {
        Some(Def::Constant(tensor)) => cse::content_hash(tensor, false).hash(hash),
        Some(Def::Input(_, place)) => place.hash(hash),
        _ => value.and_then(|v| numbers.get(&v)).hash(hash),
    }
}
