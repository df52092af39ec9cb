//! Fusions: a pattern of nodes that is replaced by other nodes.

pub(crate) use crate::no_fusion::{Because, NoFusion};
use crate::{
    Changed, GraphMut, Match, Pattern, PatternError,
    folded_constants::FoldedConstants,
    opaque,
    ort_reserved::{self, Formula},
    pool,
    rewrite::{Operand, Rewrite},
};
use pt2onnx_ir::{
    Builder, InsertPoint, Model, Name, NodeId, OpSet, OriginId, Traits, Value, conforms, schema,
};
use pt2onnx_symbolic::{Constraints, Expr};
use smallvec::{SmallVec, smallvec};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, OnceLock},
};

type Emit = dyn Fn(&Builder<'_>, &Match<'_>) -> Result<Value, NoFusion> + Send + Sync;

/// A [`Pattern`], and the nodes that replace what it finds.
///
/// ```
/// use pt2onnx_ir::Model;
/// use pt2onnx_opt::{Fusion, Options, Pass, Passes, optimize};
///
/// let twice = Fusion::new("Relu(r:Relu(x))", |_, found| found.get("r"))?;
/// let passes = Passes::standard().with(Pass::of_fusions("relu-twice", [twice]));
///
/// let text = r#"<ir_version: 9, opset_import: ["" : 20]>
/// main_graph (float[n] x) => (float[n] y) { r = Relu (x) y = Relu (r) }"#;
/// let mut model: Model = text.parse()?;
/// optimize(&mut model, &Options { passes, ..Options::default() });
/// assert_eq!(model.nodes(Model::MAIN).count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Fusion {
    /// The name of a rule.
    name: Option<Name>,
    pattern: Pattern,
    since: u32,
    emit: Arc<Emit>,
}

impl Fusion {
    /// A fusion of the nodes that `pattern` finds; see [`Pattern`] for how it is written.
    ///
    /// `emit` emits nodes before the last node found and returns the value that replaces that
    /// node's output, which must have the same type. It may also return an existing value. The
    /// fusion is undone if it returns an error, if the builder has diagnostics, or if the opset of
    /// the graph does not have a node as it was emitted. It reads its conditions before it emits:
    /// [`Because`] turns them into errors, which `pt2onnx optimize --explain` shows.
    ///
    /// # Errors
    /// `pattern` cannot be read.
    pub fn new(
        pattern: &str,
        emit: impl Fn(&Builder<'_>, &Match<'_>) -> Result<Value, NoFusion> + Send + Sync + 'static,
    ) -> Result<Self, PatternError> {
        let pattern = pattern.parse()?;
        Ok(Self { name: None, pattern, since: 0, emit: Arc::new(emit) })
    }

    /// The fusion of a rule.
    pub(crate) fn of_rule(
        name: Name,
        pattern: Pattern,
        emit: impl Fn(&Builder<'_>, &Match<'_>) -> Result<Value, NoFusion> + Send + Sync + 'static,
    ) -> Self {
        Self { name: Some(name), pattern, since: 0, emit: Arc::new(emit) }
    }

    /// Sets the lowest opset that the fusion is for.
    #[must_use]
    pub fn since(self, opset: u32) -> Self {
        Self { since: opset, ..self }
    }
}

impl fmt::Debug for Fusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut s = f.debug_struct("Fusion");
        s.field("name", &self.name).field("pattern", &self.pattern).finish_non_exhaustive()
    }
}

/// The fusions of a pass; an error if a pattern is not one.
pub(crate) type Patterns = Result<Vec<Fusion>, PatternError>;

/// The fusions of a pass. Those of standard passes are read when they are first needed.
#[derive(Clone, Debug)]
pub(crate) struct Fusions {
    /// Whether they leave formulas whole that ONNX Runtime fuses ([`ort_reserved`]).
    pub careful: bool,
    read: fn() -> Patterns,
    once: OnceLock<Patterns>,
}

impl Fusions {
    /// Those of a standard pass, which a function reads.
    pub const fn new(read: fn() -> Patterns) -> Self {
        Self { careful: true, read, once: OnceLock::new() }
    }

    /// Those of a user.
    pub fn of(fusions: Vec<Fusion>) -> Self {
        Self { careful: false, read: || Ok(Vec::new()), once: OnceLock::from(Ok(fusions)) }
    }

    /// The fusions; an error if a pattern is not one.
    pub fn read(&self) -> Result<&[Fusion], &PatternError> {
        self.once.get_or_init(self.read).as_deref()
    }
}

/// Walks a graph once and applies the first fusion that fits to each node. Fusions newer than the
/// opset are left out. Adds the names of the rules that were applied.
pub(crate) fn run(
    graph: &mut GraphMut<'_>,
    opset: u32,
    fusions: &[Fusion],
    careful: bool,
    constants: &FoldedConstants,
    applied: &mut BTreeSet<Name>,
) -> Changed {
    let nodes = graph.nodes();
    let present = graph.model.ops_of(&nodes);
    // With whether the graph has what the pattern needs, before anything else is emitted.
    let fusions: Vec<(&Fusion, bool)> = fusions
        .iter()
        .filter(|f| f.since <= opset)
        .map(|f| (f, present.is_superset(f.pattern.needed())))
        .collect();
    if !fusions.iter().any(|(_, possible)| *possible) {
        return false;
    }
    let last: OpSet = fusions.iter().flat_map(|(f, _)| f.pattern.last_operators()).collect();
    // After a change, the graph may have more than it had.
    let matches = |model: &Model, id: NodeId, changed: bool| -> Vec<_> {
        if !model.may_be(id, last) {
            return Vec::new();
        }
        let tried = fusions.iter().filter(|(_, possible)| *possible || changed);
        tried.filter_map(|(f, _)| Some((f.pattern.find(model, id)?, *f))).collect()
    };
    let formulas = if careful { ort_reserved::possible(present) } else { Vec::new() };
    let model = &*graph.model;
    let found = pool::find(&nodes, |id| {
        Some(matches(model, id, false)).filter(|found: &Vec<_>| !found.is_empty())
    });
    let changed = found.into_iter().find_map(|(at, found)| {
        apply_first(graph, found, &formulas, constants, applied).then_some(at)
    });
    let Some(first) = changed else { return false };
    let mut walk = graph.walk_over(nodes[first + 1..].to_vec());
    while let Some(id) = walk.next(graph.model) {
        let found = matches(graph.model, id, true);
        apply_first(graph, found, &formulas, constants, applied);
    }
    true
}

/// Applies the first of the fusions whose conditions hold.
fn apply_first<'p>(
    graph: &mut GraphMut<'_>,
    found: Vec<(Match<'p>, &'p Fusion)>,
    formulas: &[&'static Formula],
    constants: &'p FoldedConstants,
    applied: &mut BTreeSet<Name>,
) -> Changed {
    found.into_iter().any(|(found, fusion)| {
        let found = found.with(constants);
        let made = emit(graph, &found, fusion, formulas);
        let changed = made.is_ok_and(|rewrite| rewrite.apply(graph.model));
        applied.extend(fusion.name.clone().filter(|_| changed));
        changed
    })
}

/// The places where a pattern fits but its fusion does not apply, by reason.
pub(crate) fn refusals(
    graph: &mut GraphMut<'_>,
    opset: u32,
    fusions: &[Fusion],
    careful: bool,
) -> BTreeMap<&'static str, usize> {
    let mut places = BTreeMap::new();
    let nodes = graph.nodes();
    let present = graph.model.ops_of(&nodes);
    let formulas = if careful { ort_reserved::possible(present) } else { Vec::new() };
    for id in nodes {
        let mut reasons: BTreeSet<&'static str> = BTreeSet::new();
        for fusion in fusions.iter().filter(|f| f.since <= opset) {
            let Some(found) = fusion.pattern.find(graph.model, id) else {
                let shared = fusion.pattern.find_shared(graph.model, id);
                reasons.extend(shared.map(|_| "other nodes use a value in between"));
                continue;
            };
            let made = emit(graph, &found, fusion, &formulas);
            if let Err(NoFusion::Because(reason)) = made {
                reasons.insert(reason);
            }
        }
        reasons.into_iter().for_each(|reason| *places.entry(reason).or_default() += 1);
    }
    places
}

/// Replaces the nodes found by what the fusion emits: users of the output use the value that it
/// returns. An error, after which nothing is changed, if it returns one, or if what it emits cannot
/// take their place.
fn emit(
    graph: &mut GraphMut<'_>,
    found: &Match<'_>,
    fusion: &Fusion,
    formulas: &[&'static Formula],
) -> Result<Rewrite, NoFusion> {
    let (nodes, output) = (found.nodes(), found.output());
    let broken = ort_reserved::broken(graph.model, nodes, formulas);
    broken.map_or(Ok(()), |reason| Err(NoFusion::Because(reason)))?;
    let &last = nodes.first().ok_or(NoFusion::NoMatch)?;
    let opset = graph.opset;
    let model = &mut *graph.model;
    // The last node's origins first: its result is what is computed.
    let mut origins: SmallVec<[OriginId; 1]> = SmallVec::new();
    for &node in nodes {
        for origin in &model[node].origins {
            if !origins.contains(origin) {
                origins.push(*origin);
            }
        }
    }
    let before = model.prev(last);
    let cx = Builder::new(model, InsertPoint::Before(last), Constraints::default());
    cx.set_origins(&origins);
    let made = (fusion.emit)(&cx, found);
    let sound = cx.take_diagnostics().is_empty();
    drop(cx);
    let new = new_nodes(model, before, last);
    let checked = made.and_then(|value| {
        sound.because("the replacement cannot be written for these types")?;
        may_replace(model, output, value).because("the replacement has another type")?;
        let legal = new.iter().all(|&n| legal(model, n, opset));
        legal.because("the opset does not have the replacement")?;
        Ok(value)
    });
    match checked {
        Ok(value) => {
            new.iter().for_each(|&n| begin_with_its_kind(model, n, nodes));
            Ok(Rewrite {
                replace: smallvec![(output, Operand::New(value))],
                erase: nodes.into(),
                ..Rewrite::default()
            })
        }
        Err(reason) => {
            for node in new.into_iter().rev() {
                model.erase(node);
            }
            Err(reason)
        }
    }
}

/// Puts the origins of the node whose operator a new node has first, as metadata are those of the
/// first origin: a convolution with a folded normalisation is in the module and at the line of the
/// convolution. Layers are of one kind.
fn begin_with_its_kind(model: &mut Model, new: NodeId, old: &[NodeId]) {
    let is_layer = |id: NodeId| model[id].traits().contains(Traits::LAYER);
    let same =
        |&&id: &&NodeId| model[id].domain == model[new].domain && model[id].op() == model[new].op();
    let layer = || old.iter().find(|&&id| is_layer(id) && is_layer(new));
    let Some(&of_kind) = old.iter().find(same).or_else(layer) else { return };
    let first = model[of_kind].origins.clone();
    let mut origins = model[new].origins.clone();
    // A stable sort: the others keep their order.
    origins.sort_by_key(|origin| !first.contains(origin));
    model[new].origins = origins;
}

/// Whether two types may be equal; constants of one element may have raised the rank.
fn may_replace(model: &Model, old: Value, new: Value) -> bool {
    let differ = |(a, b): (&Expr, &Expr)| a != b && a.is_static() && b.is_static();
    let dtypes = model.dtype(old).zip(model.dtype(new));
    let shapes = model.shape(old).zip(model.shape(new));
    dtypes.is_none_or(|(a, b)| a == b)
        && shapes.is_none_or(|(a, b)| a.len() == b.len() && !a.iter().zip(b).any(differ))
}

/// The nodes between two nodes that were neighbours.
fn new_nodes(model: &Model, before: Option<NodeId>, last: NodeId) -> Vec<NodeId> {
    let mut new: Vec<NodeId> = std::iter::successors(model.prev(last), |&n| model.prev(n))
        .take_while(|&n| Some(n) != before)
        .collect();
    new.reverse();
    new
}

/// Whether a node emitted in the canonical form means the same in an opset.
fn legal(model: &Model, id: NodeId, opset: u32) -> bool {
    let node = &model[id];
    let fits = schema::lookup(node.op(), opset).is_some_and(|s| conforms(model, node, s).is_ok());
    !node.domain.is_empty() || fits && opaque::holds_in(model, id, opset)
}
