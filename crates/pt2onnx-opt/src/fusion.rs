//! Fusions: a pattern of nodes that is replaced by other nodes.

use crate::{
    analysis::tensor_type,
    graph::{Changed, GraphMut},
    opaque,
    pass::{Options, Pass},
    pattern::{Match, Pattern, PatternError},
    pool, rewrite,
};
use pt2onnx_ir::{Builder, InsertPoint, Model, NodeId, OpSet, OriginId, Value, conforms, schema};
use pt2onnx_symbolic::{Constraints, Expr};
use smallvec::SmallVec;
use std::{fmt, sync::Arc};

type Condition = dyn Fn(&Builder<'_>, &Match<'_>) -> bool + Send + Sync;
type Rewrite = dyn Fn(&Builder<'_>, &Match<'_>) -> Option<Value> + Send + Sync;

/// A [`Pattern`], a condition, and the nodes that replace what the pattern finds.
///
/// ```
/// use pt2onnx_ir::Model;
/// use pt2onnx_opt::{Fusion, Options, Pass, Passes, optimize};
///
/// let twice = Fusion::new("Relu(r:Relu(x))", |_, found| found.value("r"))?;
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
    pattern: Pattern,
    since: u32,
    condition: Option<Arc<Condition>>,
    rewrite: Arc<Rewrite>,
}

impl Fusion {
    /// A fusion of the nodes that `pattern` finds; see [`Pattern`] for how it is written.
    ///
    /// `rewrite` emits nodes before the last node found and returns the value that replaces that
    /// node's output, which must have the same type. It may also return an existing value. The
    /// fusion is undone if it returns `None`, if the builder has diagnostics, or if the opset of
    /// the graph does not have a node as it was emitted.
    ///
    /// # Errors
    /// `pattern` cannot be read.
    pub fn new(
        pattern: &str,
        rewrite: impl Fn(&Builder<'_>, &Match<'_>) -> Option<Value> + Send + Sync + 'static,
    ) -> Result<Self, PatternError> {
        let pattern = pattern.parse()?;
        Ok(Self { pattern, since: 0, condition: None, rewrite: Arc::new(rewrite) })
    }

    /// Adds a condition on the nodes found. It must not emit nodes.
    #[must_use]
    pub fn when(
        self,
        condition: impl Fn(&Builder<'_>, &Match<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { condition: Some(Arc::new(condition)), ..self }
    }

    /// Sets the lowest opset that the fusion is for.
    #[must_use]
    pub fn since(self, opset: u32) -> Self {
        Self { since: opset, ..self }
    }

    /// The value that replaces the output of what was found.
    fn replacement(&self, cx: &Builder<'_>, found: &Match<'_>) -> Option<Value> {
        let holds = self.condition.as_ref().is_none_or(|condition| condition(cx, found));
        holds.then(|| (self.rewrite)(cx, found))?
    }
}

impl fmt::Debug for Fusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut s = f.debug_struct("Fusion");
        s.field("pattern", &self.pattern).field("since", &self.since).finish_non_exhaustive()
    }
}

impl Pass {
    /// A pass that runs [`fuse`].
    pub fn of_fusions(name: &'static str, fusions: impl IntoIterator<Item = Fusion>) -> Self {
        let fusions = Vec::from_iter(fusions);
        Self::new(name, move |graph, options| fuse(graph, options, &fusions))
    }
}

/// Walks a graph once and applies the first fusion that fits to each node. Fusions newer than the
/// opset of the graph or of [`Options::opset`] are left out.
pub fn fuse(graph: &mut GraphMut<'_>, options: &Options, fusions: &[Fusion]) -> Changed {
    let opset = options.opset.min(graph.opset);
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
    let model = &*graph.model;
    let found = pool::find(&nodes, |id| {
        Some(matches(model, id, false)).filter(|found: &Vec<_>| !found.is_empty())
    });
    let changed = found.into_iter().find(|(_, found)| apply_one(graph, found));
    let Some((first, _)) = changed else {
        return false;
    };
    for &id in &nodes[first + 1..] {
        let found = matches(graph.model, id, true);
        apply_one(graph, &found);
    }
    true
}

/// Applies the first of the fusions that holds and can be.
fn apply_one(graph: &mut GraphMut<'_>, found: &[(Match<'_>, &Fusion)]) -> Changed {
    found.iter().any(|(found, fusion)| apply(graph, found, fusion))
}

/// Replaces what was found by what the fusion emits.
fn apply(graph: &mut GraphMut<'_>, found: &Match<'_>, fusion: &Fusion) -> Changed {
    replace(graph, found.nodes(), found.output(), |cx| fusion.replacement(cx, found))
}

/// Replaces nodes, the last one first, by what `make` emits: users of `output` use the value that
/// it returns. Nothing changes if it returns none, or if what it emits is not right.
pub(crate) fn replace(
    graph: &mut GraphMut<'_>,
    nodes: &[NodeId],
    output: Value,
    make: impl FnOnce(&Builder<'_>) -> Option<Value>,
) -> Changed {
    let Some(&last) = nodes.first() else {
        return false;
    };
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
    let made = make(&cx);
    let sound = cx.take_diagnostics().is_empty();
    drop(cx);
    let made = made.filter(|&value| may_replace(model, output, value));
    let new = new_nodes(model, before, last);
    let Some(value) = made.filter(|_| sound && new.iter().all(|&n| legal(model, n, opset))) else {
        for node in new.into_iter().rev() {
            model.erase(node);
        }
        return false;
    };
    rewrite::substitute(model, output, value);
    // A node that several of the others use can be erased only after them.
    while nodes.iter().any(|&n| model.contains(n) && model.erase(n)) {}
    true
}

/// Whether nothing is known of two values that tells their types apart: constants of one element
/// may have raised the rank.
fn may_replace(model: &Model, old: Value, new: Value) -> bool {
    let (Some((a, old)), Some((b, new))) = (tensor_type(model, old), tensor_type(model, new))
    else {
        return true;
    };
    let differ = |(a, b): (&Expr, &Expr)| a != b && a.is_static() && b.is_static();
    a == b && old.len() == new.len() && !old.iter().zip(new).any(differ)
}

/// The nodes between two nodes that were neighbours.
fn new_nodes(model: &Model, before: Option<NodeId>, last: NodeId) -> Vec<NodeId> {
    let mut new: Vec<NodeId> = std::iter::successors(model.prev(last), |&n| model.prev(n))
        .take_while(|&n| Some(n) != before)
        .collect();
    new.reverse();
    new
}

/// Whether a node, which was emitted in the canonical form, means the same in an opset. Nodes of
/// other domains always do.
fn legal(model: &Model, id: NodeId, opset: u32) -> bool {
    let node = &model[id];
    let fits = schema::lookup(node.op(), opset).is_some_and(|s| conforms(model, node, s).is_ok());
    !node.domain.is_empty() || fits && opaque::holds_in(model, id, opset)
}
