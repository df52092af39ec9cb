//! A pass, a list of passes, and the options that they read.

use crate::{
    Changed, GraphMut, Measure, Target,
    folded_constants::FoldedConstants,
    fusion::{self, Fusion, Fusions, Patterns},
    pass_stats::PassStats,
};
use pt2onnx_ir::Name;
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
    sync::Arc,
};

/// How much [`optimize`](crate::optimize) does. Each level includes the ones before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u8")]
#[non_exhaustive]
pub enum Level {
    /// Nothing.
    Off,
    /// Removes unneeded nodes and folds constants.
    Simplify,
    /// Replaces several nodes by one operator that does the same.
    #[default]
    Fuse,
}

impl TryFrom<i64> for Level {
    type Error = String;

    fn try_from(level: i64) -> Result<Self, String> {
        match level {
            0 => Ok(Self::Off),
            1 => Ok(Self::Simplify),
            2 => Ok(Self::Fuse),
            other => Err(format!("there is no level {other}; give 0, 1 or 2")),
        }
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(level: &str) -> Result<Self, String> {
        let number: i64 = level.parse().map_err(|_| "give 0, 1 or 2".to_owned())?;
        number.try_into()
    }
}

impl From<Level> for u8 {
    fn from(level: Level) -> Self {
        level as Self
    }
}

/// The passes that [`optimize`](crate::optimize) runs, and its limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only passes up to this level run.
    pub level: Level,
    /// The passes, in the order they run.
    pub passes: Passes,
    /// The opset that the model will be written for. Fusions create no operator that is newer.
    pub opset: u32,
    /// The runtime that the model will be written for. Its own operators are used for no other
    /// runtime.
    pub target: Target,
    /// A folded result may always have this many bytes, whatever the size of the operands, and half
    /// of it for each node that it takes the place of, if there are several.
    pub max_folded_bytes: usize,
    /// A folded result may have this many bytes, unless it is computed from a weight whose elements
    /// have fewer bits. [`optimize_imported`](crate::optimize_imported) takes at least 128 times
    /// [`max_folded_bytes`](Self::max_folded_bytes), 1 MiB by default.
    pub max_generated_bytes: usize,
    /// Operands of more bytes than this, all together, are not read to fold a small result, and
    /// results between several nodes that are folded together have at most this many.
    pub max_read_bytes: usize,
    /// Named constants of more bytes than this stay even if they change nothing, as zeros do that
    /// are added: they might get other values later.
    /// [`optimize_imported`](crate::optimize_imported) takes at least 64 KiB.
    pub max_neutral_bytes: usize,
    /// Whether a result above [`max_folded_bytes`](Self::max_folded_bytes) may replace operands
    /// that nothing else uses and that are not smaller: a transposed weight instead of the weight
    /// and a `Transpose`. If not, nothing is folded into larger weights, either.
    pub replace_weights: bool,
    /// Whether weights of equal content are merged into one, which keeps the first one's name. To
    /// compare them, their bytes are read. Replacing that weight later replaces all of them.
    pub dedup_weights: bool,
    /// Whether nodes are merged that compute the same with different weights of equal content. Only
    /// the weights of nodes that are the same otherwise are read.
    /// [`optimize_imported`](crate::optimize_imported) does so always.
    pub share_weights: bool,
    /// Whether the weights of layers that have one input become one weight without a name.
    /// [`optimize_imported`](crate::optimize_imported) does so if
    /// [`replace_weights`](Self::replace_weights) is set.
    pub join_weights: bool,
    /// Whether the model is one of another producer.
    /// [`optimize_imported`](crate::optimize_imported) sets it.
    pub imported: bool,
    /// Whether the model will be made one of float16.
    pub to_float16: bool,
    /// The number of tokens of the longest sequence that a language model is run for: the target
    /// [`OrtGenai`](Target::OrtGenai) has tables with the angles of so many positions. Without it,
    /// angles are computed.
    pub max_positions: Option<usize>,
    /// How many times all passes run at most.
    pub max_rounds: usize,
    /// A record of what each pass did, if one is wanted.
    pub stats: Option<PassStats>,
}

impl Options {
    /// The passes that run, in order.
    pub fn active(&self) -> impl Iterator<Item = &Pass> {
        self.passes.iter().filter(|p| p.level <= self.level)
    }

    /// Whether the pass of that name runs.
    pub(crate) fn runs(&self, name: &str) -> bool {
        self.active().any(|p| p.name == name)
    }
}

/// After which other passes a pass runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// At once, and again after each change.
    Early,
    /// After the early passes reach a fixpoint, whose patterns it would block; they run again.
    Late,
    /// Once, after all others: its output gives them nothing to do.
    Last,
}

/// A pass over a graph.
///
/// It must leave the model valid and must not change what the graph computes.
///
/// ```
/// use pt2onnx_opt::{Level, Pass};
///
/// let pass = Pass::new("unname", |graph, _| {
///     let nodes = graph.nodes();
///     let named = nodes.iter().filter(|&&n| graph.model[n].name.is_some()).count();
///     nodes.into_iter().for_each(|n| graph.model[n].name = None);
///     named > 0
/// })
/// .level(Level::Simplify)
/// .description("Removes the names of nodes.");
/// assert_eq!(pass.name, "unname");
/// ```
#[derive(Clone)]
pub struct Pass {
    /// Its name in options and logs. A standard pass has the name of its file and its static.
    pub name: &'static str,
    /// The lowest level that runs it.
    pub level: Level,
    /// The lowest opset that it runs for.
    pub since: u32,
    /// Its effect, in a sentence or two; may be empty.
    pub description: &'static str,
    /// The condition for the pass to change nodes; may be empty.
    pub precondition: &'static str,
    /// The measure that each of its changes lowers.
    pub lowers: Measure,
    pub(crate) phase: Phase,
    /// The only targets that it runs for, if it is not for all.
    pub(crate) targets: &'static [Target],
    /// The targets that it runs for at any opset, as other passes replace its operators by those of
    /// the runtime.
    pub(crate) any_opset: &'static [Target],
    /// Whether it only runs for models of other producers.
    pub(crate) imported: bool,
    pub(crate) run: Run,
}

type Own = dyn Fn(&mut GraphMut<'_>, &Options) -> Changed + Send + Sync;

#[derive(Clone)]
pub(crate) enum Run {
    Graph(fn(&mut GraphMut<'_>, &Options) -> Changed),
    /// With the reasons for which nodes stay, and how many.
    Explained(
        fn(&mut GraphMut<'_>, &Options) -> Changed,
        fn(&GraphMut<'_>) -> BTreeMap<&'static str, usize>,
    ),
    Fusions(Fusions),
    /// By fusions, and once none of them applies, by a function.
    FusionsThen(Fusions, fn(&mut GraphMut<'_>, &Options) -> Changed),
    Own(Arc<Own>),
}

impl Run {
    /// By the fusions that a function reads.
    pub const fn fusions(read: fn() -> Patterns) -> Self {
        Self::Fusions(Fusions::new(read))
    }
}

impl Pass {
    /// The defaults of a standard pass that fuses nodes.
    pub(crate) const FUSION: Self = Self {
        name: "",
        level: Level::Fuse,
        since: 7,
        description: "",
        precondition: "",
        lowers: Measure::Nodes,
        phase: Phase::Early,
        targets: &[],
        any_opset: &[],
        imported: false,
        run: Run::Graph(|_, _| false),
    };

    /// The defaults of a standard pass that simplifies the graph.
    pub(crate) const SIMPLIFICATION: Self =
        Self { level: Level::Simplify, since: 0, ..Self::FUSION };

    /// A pass of level [`Level::Fuse`]. `run` returns whether it changed the model.
    pub fn new(
        name: &'static str,
        run: impl Fn(&mut GraphMut<'_>, &Options) -> Changed + Send + Sync + 'static,
    ) -> Self {
        Self::of(name, Run::Own(Arc::new(run)))
    }

    /// A pass that runs [`fuse`](crate::fuse).
    pub fn of_fusions(name: &'static str, fusions: impl IntoIterator<Item = Fusion>) -> Self {
        Self::of(name, Run::Fusions(Fusions::of(Vec::from_iter(fusions))))
    }

    fn of(name: &'static str, run: Run) -> Self {
        Self { name, since: 0, lowers: Measure::Unknown, run, ..Self::FUSION }
    }

    /// Sets the lowest level that runs the pass.
    #[must_use]
    pub fn level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Sets what the pass does, in a sentence or two.
    #[must_use]
    pub fn description(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Sets what must hold of nodes for the pass to change them.
    #[must_use]
    pub fn precondition(self, precondition: &'static str) -> Self {
        Self { precondition, ..self }
    }

    /// Sets what falls with each change that the pass makes.
    #[must_use]
    pub fn lowers(self, lowers: Measure) -> Self {
        Self { lowers, ..self }
    }

    /// Runs the pass once over one graph, whatever level the options have. Nodes must have the
    /// canonical form (see [`GraphMut`]); [`optimize`](crate::optimize) with this pass alone takes
    /// models of any opset.
    pub fn run(&self, graph: &mut GraphMut<'_>, options: &Options) -> Changed {
        self.run_with(graph, options, &mut BTreeSet::new())
    }

    /// As [`run`](Self::run), with the names of the rules that were applied.
    pub(crate) fn run_with(
        &self,
        graph: &mut GraphMut<'_>,
        options: &Options,
        applied: &mut BTreeSet<Name>,
    ) -> Changed {
        if !self.is_for(graph, options) {
            return false;
        }
        match &self.run {
            Run::Graph(run) | Run::Explained(run, _) => run(graph, options),
            Run::Own(run) => run(graph, options),
            Run::Fusions(fusions) => fuse_with(graph, options, fusions, applied),
            Run::FusionsThen(fusions, then) => {
                fuse_with(graph, options, fusions, applied) || then(graph, options)
            }
        }
    }

    /// Whether the opset and the target are those of the pass.
    pub(crate) fn is_for(&self, graph: &GraphMut<'_>, options: &Options) -> bool {
        let newer = options.opset.min(graph.opset) >= self.since;
        (newer || self.any_opset.contains(&options.target))
            && (options.imported || !self.imported)
            && (self.targets.is_empty() || self.targets.contains(&options.target))
    }

    pub(crate) fn fusions(&self) -> Option<&Fusions> {
        match &self.run {
            Run::Fusions(fusions) | Run::FusionsThen(fusions, _) => Some(fusions),
            Run::Graph(_) | Run::Explained(..) | Run::Own(_) => None,
        }
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut s = f.debug_struct("Pass");
        s.field("name", &self.name).field("level", &self.level).finish_non_exhaustive()
    }
}

/// Passes in the order they run. No two have the same name.
#[derive(Clone, Debug, Default)]
pub struct Passes(Vec<Cow<'static, Pass>>);

impl Passes {
    /// No passes.
    pub fn none() -> Self {
        Self::default()
    }

    /// With a pass of your own, which runs last. A pass of the same name is replaced, and keeps its
    /// place.
    #[must_use]
    pub fn with(mut self, pass: Pass) -> Self {
        match self.0.iter_mut().find(|p| p.name == pass.name) {
            Some(same) => *same = Cow::Owned(pass),
            None => self.0.push(Cow::Owned(pass)),
        }
        self
    }

    /// With a pass of your own, which runs first.
    #[must_use]
    pub fn first(mut self, pass: Pass) -> Self {
        self.0.retain(|p| p.name != pass.name);
        self.0.insert(0, Cow::Owned(pass));
        self
    }

    /// Without the pass of that name.
    ///
    /// # Errors
    /// No pass has that name.
    pub fn without(mut self, name: &str) -> Result<Self, UnknownPass> {
        let name = self.get(name)?.name;
        self.0.retain(|p| p.name != name);
        Ok(self)
    }

    /// The pass of that name. Before 0.2, older names are taken, too.
    ///
    /// # Errors
    /// No pass has that name.
    pub fn get(&self, name: &str) -> Result<&Pass, UnknownPass> {
        let named = |name: &str| self.iter().find(|p| p.name == name);
        named(name).or_else(|| named(current_name(name)?)).ok_or_else(|| UnknownPass {
            name: name.to_owned(),
            known: self.iter().map(|p| p.name).collect(),
        })
    }

    /// The passes in order.
    pub fn iter(&self) -> impl Iterator<Item = &Pass> {
        self.0.iter().map(|pass| &**pass)
    }

    /// Without the passes for which `keep` is false.
    #[must_use]
    pub fn filtered(mut self, keep: impl Fn(&Pass) -> bool) -> Self {
        self.0.retain(|pass| keep(pass));
        self
    }

    pub(crate) fn shared(passes: &'static [&'static Pass]) -> Self {
        Self(passes.iter().map(|pass| Cow::Borrowed(*pass)).collect())
    }
}

/// The name that a pass has now, by the one that it had before 0.2.
fn current_name(old: &str) -> Option<&'static str> {
    OLD_NAMES.iter().find(|(name, _)| *name == old).map(|(_, new)| *new)
}

/// Names that passes had, which options take until 0.2.
const OLD_NAMES: &[(&str, &str)] = &[
    ("channels", "fold-scale-into-weight"),
    ("control", "fold-control-flow"),
    ("factors", "fold-input-scale"),
    ("join", "merge-linears"),
    ("layers", "cse-layers"),
    ("moves", "commute-reshape-transpose"),
    ("scalars", "reassociate"),
    ("squares", "reduce-sum-square"),
];

/// The last one of passes with the same name is taken.
impl FromIterator<Pass> for Passes {
    fn from_iter<I: IntoIterator<Item = Pass>>(passes: I) -> Self {
        passes.into_iter().fold(Self::none(), Self::with)
    }
}

/// There is no pass of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no pass `{name}`; there are {}", known.join(", "))]
#[non_exhaustive]
pub struct UnknownPass {
    /// The name that was asked for.
    pub name: String,
    /// The names that there are.
    pub known: Vec<&'static str>,
}

fn fuse_with(
    graph: &mut GraphMut<'_>,
    options: &Options,
    fusions: &Fusions,
    applied: &mut BTreeSet<Name>,
) -> Changed {
    let (careful, read) = (fusions.careful, fusions.read());
    debug_assert!(read.is_ok(), "a standard pattern cannot be read: {read:?}");
    let (opset, constants) = (options.opset.min(graph.opset), replaceable(options));
    fusion::run(graph, opset, read.unwrap_or_default(), careful, &constants, applied)
}

/// The constants that fusions may replace.
fn replaceable(options: &Options) -> FoldedConstants {
    let most = if options.replace_weights { usize::MAX } else { options.max_folded_bytes };
    FoldedConstants::of_at_most(most)
}

/// Walks a graph once and applies the first fusion that fits to each node. Fusions newer than the
/// opset of the graph or of [`Options::opset`] are left out.
pub fn fuse(graph: &mut GraphMut<'_>, options: &Options, fusions: &[Fusion]) -> Changed {
    let (opset, constants) = (options.opset.min(graph.opset), replaceable(options));
    fusion::run(graph, opset, fusions, false, &constants, &mut BTreeSet::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(names: &[&'static str]) -> Passes {
        names.iter().map(|name| Pass::new(name, |_, _| false)).collect()
    }

    fn names(passes: &Passes) -> Vec<&'static str> {
        passes.iter().map(|p| p.name).collect()
    }

    #[test]
    fn names_are_unique_and_keep_their_place() {
        let given = passes(&["a", "b", "a"]);
        assert_eq!(names(&given), ["a", "b"]);
        let more = given
            .with(Pass::new("a", |_, _| true).level(Level::Off))
            .with(Pass::new("c", |_, _| false));
        assert_eq!(names(&more), ["a", "b", "c"]);
        assert_eq!(more.get("a").map(|p| p.level), Ok(Level::Off));
        assert_eq!(more.without("b").map(|p| names(&p)), Ok(vec!["a", "c"]));
    }

    #[test]
    fn old_names_are_those_of_standard_passes() {
        for (old, new) in OLD_NAMES {
            assert_eq!(Passes::standard().get(old).map(|p| p.name), Ok(*new));
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_known_ones() {
        let error = passes(&["a", "b"]).without("c").map(drop);
        assert_eq!(
            error.map_err(|e| e.to_string()),
            Err("there is no pass `c`; there are a, b".into())
        );
    }
}
