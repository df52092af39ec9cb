//! Common subexpressions: of several nodes that do the same with the same inputs, one is kept.
//!
//! Nodes of a body also see nodes outside it.

use crate::{Changed, GraphMut, Options, Pass, Walk, ml_types, pass::Run, pool, rewrite};
use pt2onnx_ir::{Attribute, Attributes, Model, Node, NodeId, RegionId, Traits, Use, Value};
use pt2onnx_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Tensors up to this many bytes are compared by content.
const COMPARED_BYTES: usize = 1 << 10;

/// Tensors in memory, as those that passes computed, are compared by content up to this many bytes.
/// Larger ones, and parts of files, are equal only if they are the same part of the same memory.
const COMPARED_BYTES_IN_MEMORY: usize = 1 << 20;

/// How many parts of 8 bytes of a larger tensor are hashed.
const SAMPLES: usize = 64;

/// A constant is compared with at most this many of the same hash, so that the time is linear.
const MAX_ALIKE: usize = 8;

pub(crate) static CSE: Pass = Pass {
    name: "cse",
    description: "Merges nodes that compute the same from the same inputs, and unnamed constants \
                  of equal content.",
    precondition: "Named constants are kept, because they may get other values later, unless \
                   weights are to be merged.",
    run: Run::Graph(run),
    ..Pass::SIMPLIFICATION
};

/// Nodes that passes fold others into stay apart until [`layers`] runs.
fn run(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    constants(graph, options.dedup_weights) | Scope::default().start(graph)
}

/// Also merges layers, and nodes whose weights have equal content.
pub(crate) fn layers(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    Scope { layers: true, share_weights: options.share_weights, ..Scope::default() }.start(graph)
}

/// Merges equal unnamed constants of a graph, with `weights` also named ones, which may get other
/// values.
pub(crate) fn constants(graph: &mut GraphMut<'_>, weights: bool) -> Changed {
    let used = used_constants(graph);
    let model = &mut *graph.model;
    let named = |v: &Value| model[*v].name.is_some();
    let held = |v: &Value| model[*v].constant().is_some_and(|t| t.storage().is_some());
    // Named constants come first, so that they are kept.
    let (first, then): (Vec<Value>, Vec<Value>) = used.into_iter().filter(held).partition(named);
    let read: Vec<Value> = first.into_iter().filter(|_| weights).chain(then).collect();
    let hashed = pool::find(&read, |v| Some(content_hash(model[v].constant()?, weights)));
    let mut firsts: FxHashMap<u64, SmallVec<[Value; 1]>> = FxHashMap::default();
    let mut doubles = Vec::new();
    for (place, hash) in hashed {
        let (value, data) = (read[place], &model[read[place]]);
        let alike = firsts.entry(hash).or_default();
        let same = |v: &&Value| {
            let pair = data.constant().zip(model[**v].constant());
            let content = |t| weights || is_compared(t);
            pair.is_some_and(|(t, u)| t.same(u) || (content(t) && same_content(t, u)))
        };
        match alike.iter().find(same) {
            Some(_) if data.name.is_some() && data.is_output() => {}
            Some(first) => doubles.push((value, *first)),
            None if alike.len() < MAX_ALIKE => alike.push(value),
            None => {}
        }
    }
    for &(double, first) in &doubles {
        model.replace_all_uses(double, first);
    }
    !doubles.is_empty()
}

/// The constants that a graph uses, in the order of their numbers.
fn used_constants(graph: &GraphMut<'_>) -> Vec<Value> {
    let (model, nodes) = (&*graph.model, graph.nodes());
    let inputs = nodes.iter().flat_map(|&n| model[n].inputs().iter().flatten().copied());
    let bodies = nodes.iter().flat_map(|&n| model[n].regions()).chain([graph.region]);
    let outputs = bodies.flat_map(|region| model[region].output_values());
    let constant = |v: &Value| model[*v].constant().is_some();
    let mut used: Vec<Value> = inputs.chain(outputs).filter(constant).collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// Constants that are equal have the same hash.
pub(crate) fn content_hash(t: &Tensor, weights: bool) -> u64 {
    let mut hash = FxHasher::default();
    (t.dtype(), t.shape()).hash(&mut hash);
    match weights || is_compared(t) {
        true if weights || is_small(t) => t.to_bytes().hash(&mut hash),
        true => sample(t, &mut hash),
        false => (t.address(), t.offset(), t.strides()).hash(&mut hash),
    }
    hash.finish()
}

/// Hashes some of the bytes, so that all of them are read only where these are equal.
fn sample(t: &Tensor, hash: &mut FxHasher) {
    let bytes = t.to_bytes();
    let step = (bytes.len() / SAMPLES).max(8);
    bytes.chunks(step).for_each(|chunk| chunk[..chunk.len().min(8)].hash(hash));
}

#[derive(Default)]
struct Scope {
    /// Whether to visit layers.
    layers: bool,
    /// See [`Options::share_weights`].
    share_weights: bool,
    /// Nodes in scope, by hash.
    seen: FxHashMap<u64, SmallVec<[NodeId; 1]>>,
    /// Hashes of the nodes in scope, in order. Those of a region are removed at its end.
    entered: Vec<u64>,
}

struct Frame {
    nodes: Walk,
    /// How many nodes were in scope at its start.
    outer: usize,
}

impl Scope {
    fn start(mut self, graph: &mut GraphMut<'_>) -> Changed {
        (self.share_weights || self.any_alike(graph.model, &graph.nodes())) && self.walk(graph)
    }

    fn any_alike(&self, model: &Model, nodes: &[NodeId]) -> bool {
        let own = |node| self.visits(model, node).then(|| hash(model, node, false));
        let hashes = pool::find(nodes, own).into_iter().map(|(_, hash)| hash);
        let mut hashes: Vec<u64> = hashes.collect();
        hashes.sort_unstable();
        !hashes.is_sorted_by(|a, b| a < b)
    }

    fn visits(&self, model: &Model, node: NodeId) -> bool {
        repeatable(model, node) && (self.layers || !is_layer(model, node))
    }

    fn walk(&mut self, graph: &mut GraphMut<'_>) -> Changed {
        let (budget, root) = (graph.budget, graph.region);
        let model = &mut *graph.model;
        self.seen.reserve(model.nodes(root).count());
        let mut changed = false;
        let frame = |model: &Model, region, outer| Frame {
            nodes: Walk::new(model.nodes(region).collect(), budget),
            outer,
        };
        let mut stack = vec![frame(model, root, 0)];
        while let Some(top) = stack.last_mut() {
            let Some(node) = top.nodes.next(model) else {
                let outer = top.outer;
                stack.pop();
                // Behind the last region, there is nothing to leave.
                if stack.is_empty() {
                    break;
                }
                for hash in self.entered.drain(outer..).rev() {
                    self.seen.get_mut(&hash).map(SmallVec::pop);
                }
                continue;
            };
            let regions: Vec<RegionId> = model[node].regions().collect();
            if !regions.is_empty() {
                // One region after the other: they do not see each other's nodes.
                let outer = self.entered.len();
                stack.extend(regions.into_iter().rev().map(|r| frame(model, r, outer)));
            } else if self.visits(model, node) {
                changed |= self.visit(model, node);
            }
        }
        changed
    }

    fn visit(&mut self, model: &mut Model, node: NodeId) -> Changed {
        let own = hash(model, node, false);
        let weighted =
            (self.share_weights && has_weights(model, node)).then(|| hash(model, node, true));
        let first = self.first(own, |n| equal(model, n, node));
        let first = first.or_else(|| self.first(weighted?, |n| equal_with_weights(model, n, node)));
        let Some(first) = first else {
            self.enter(own, node);
            let crowded =
                |hash: &u64| self.seen.get(hash).is_some_and(|alike| alike.len() >= MAX_ALIKE);
            if let Some(weighted) = weighted.filter(|hash| !crowded(hash)) {
                self.enter(weighted, node);
            }
            return false;
        };
        model.share(first, node);
        let (old, new) = (model[node].outputs().to_vec(), model[first].outputs().to_vec());
        if let ([_], [new]) = (old.as_slice(), new.as_slice()) {
            return rewrite::bypass(model, node, *new);
        }
        // A node with several outputs stays for those that are outputs of a region, if the first
        // one's cannot be.
        let mut changed = false;
        let apart = model[first].region() != model[node].region();
        for (&old, new) in old.iter().zip(new) {
            let uses: Vec<Use> = model[old].uses().collect();
            if !(model[old].is_output() && (apart || model[new].is_output())) {
                changed |= !uses.is_empty();
                model.replace_all_uses(old, new);
                continue;
            }
            for (user, i) in uses.into_iter().filter_map(Use::input) {
                changed |= model.replace_input(user, i, Some(new));
            }
        }
        model.erase(node) || changed
    }

    fn first(&self, hash: u64, same: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        self.seen.get(&hash)?.iter().copied().find(|&n| same(n))
    }

    fn enter(&mut self, hash: u64, node: NodeId) {
        self.seen.entry(hash).or_default().push(node);
        self.entered.push(hash);
    }
}

/// Whether a node multiplies by a constant weight.
fn is_layer(model: &Model, node: NodeId) -> bool {
    let node = &model[node];
    node.traits().contains(Traits::LAYER)
        && node.input(1).is_some_and(|w| model[w].constant().is_some())
}

/// Whether a node has a constant input whose content can be read.
fn has_weights(model: &Model, node: NodeId) -> bool {
    model[node].inputs().iter().flatten().any(|&v| weight(model, v).is_some())
}

fn weight(model: &Model, value: Value) -> Option<&Tensor> {
    model[value].constant().filter(|t| t.has_data())
}

/// Whether the node gives the same result each time.
pub(crate) fn repeatable(model: &Model, node: NodeId) -> bool {
    let node = &model[node];
    let random = node.traits().contains(Traits::RANDOM);
    // A third input may switch `Dropout` to training. An `Identity` after the clean-up is there for
    // its name.
    let dropout = node.op() == "Dropout" && node.inputs().len() > 2;
    (node.domain.is_empty() || *node.domain == *ml_types::DOMAIN)
        && !random
        && !dropout
        && node.op() != "Identity"
        && !node.outputs().is_empty()
}

/// Equal nodes have the same hash; with `weights`, weights of equal content are equal, too.
pub(crate) fn hash(model: &Model, node: NodeId, weights: bool) -> u64 {
    let node = &model[node];
    let mut h = FxHasher::default();
    weights.hash(&mut h);
    for &input in node.inputs() {
        match input.and_then(|v| weight(model, v)).filter(|_| weights) {
            Some(t) => (t.dtype(), t.shape()).hash(&mut h),
            None => input.hash(&mut h),
        }
    }
    function_hash(node, &mut h);
    h.finish()
}

pub(crate) fn function_hash(node: &Node, h: &mut FxHasher) {
    (node.op(), &node.domain, node.outputs().len()).hash(h);
    for (name, value) in &node.attributes {
        (name, value.kind() as u32).hash(h);
        match value {
            Attribute::Float(f) => f.to_bits().hash(h),
            Attribute::Int(i) => i.hash(h),
            Attribute::String(s) => s.hash(h),
            Attribute::Ints(v) => v.hash(h),
            Attribute::Floats(v) => v.iter().for_each(|f| f.to_bits().hash(h)),
            Attribute::Tensor(t) => (t.dtype(), t.shape()).hash(h),
            // Other attributes are compared, not hashed.
            _ => {}
        }
    }
}

pub(crate) fn equal(model: &Model, a: NodeId, b: NodeId) -> bool {
    model[a].inputs() == model[b].inputs() && same_function(&model[a], &model[b])
}

/// As [`equal`], where constants of equal content are the same input.
fn equal_with_weights(model: &Model, a: NodeId, b: NodeId) -> bool {
    let content = |(a, b): (Value, Value)| {
        let pair = weight(model, a).zip(weight(model, b));
        pair.is_some_and(|(a, b)| a.same(b) || same_content(a, b))
    };
    let same = |(a, b): (&Option<Value>, &Option<Value>)| a == b || a.zip(*b).is_some_and(content);
    let (a, b) = (&model[a], &model[b]);
    a.inputs().len() == b.inputs().len()
        && same_function(a, b)
        && a.inputs().iter().zip(b.inputs()).all(same)
}

pub(crate) fn same_function(a: &Node, b: &Node) -> bool {
    a.op() == b.op()
        && a.domain == b.domain
        && a.outputs().len() == b.outputs().len()
        && same_attributes(&a.attributes, &b.attributes)
}

pub(crate) fn same_attributes(a: &Attributes, b: &Attributes) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|((m, x), (n, y))| m == n && same_attribute(x, y))
}

pub(crate) fn same_attribute(a: &Attribute, b: &Attribute) -> bool {
    a.equals(b, same_tensor)
}

fn is_small(t: &Tensor) -> bool {
    t.storage().is_some() && t.nbytes() <= COMPARED_BYTES
}

pub(crate) fn is_compared(t: &Tensor) -> bool {
    let in_memory = t.storage().is_some_and(|s| s.source().is_none());
    is_small(t) || (in_memory && t.nbytes() <= COMPARED_BYTES_IN_MEMORY)
}

pub(crate) fn same_tensor(a: &Tensor, b: &Tensor) -> bool {
    a.same(b) || (is_small(a) && is_small(b) && same_content(a, b))
}

fn same_content(a: &Tensor, b: &Tensor) -> bool {
    let same = |x: &[u8], y: &[u8]| x == y && x.len() == a.nbytes();
    // Strings, and elements that cannot be computed, have no bytes and are equal to nothing.
    (a.dtype(), a.shape(), a.nbytes()) == (b.dtype(), b.shape(), b.nbytes())
        && same(&a.to_bytes(), &b.to_bytes())
}
