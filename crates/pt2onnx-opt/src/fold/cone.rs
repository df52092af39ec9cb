//! Folds several nodes at once: what is in between may be large, as long as the result is small or
//! replaces more than it costs.
//!
//! A node is *known* if all its inputs are constants or outputs of known nodes, and its sizes are
//! known. Nothing is computed until it is clear that the result may become a constant.

use super::{
    bytes::{bytes_of, is_narrow, result_bytes},
    replace,
};
use crate::{Changed, GraphMut, Options, Target, Walk, eval, folded_constants::FoldedConstants};
use pt2onnx_ir::{Def, Model, NodeId, Use, Value, conforms, schema};
use pt2onnx_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

/// At most this many nodes are looked at for one result.
const MAX_NODES: usize = 64;

/// At most this many bytes are computed in one run of the pass.
const MAX_COMPUTED: usize = 64 << 20;

/// A node, with its name, origins and metadata, takes 1 to 3 kB of a file. So a constant instead of
/// several nodes may take this part of [`Options::max_folded_bytes`] (4 of 8 KiB) for each of them.
const NODE_SHARE: usize = 2;

pub(super) fn run(
    graph: &mut GraphMut<'_>,
    nodes: &[NodeId],
    options: &Options,
    constants: &FoldedConstants,
) -> Changed {
    let (known, done) = (FxHashMap::default(), FxHashMap::default());
    let mut cones = Cones { options, known, done, bytes: 0, constants };
    let mut order = Vec::new();
    let model = &mut *graph.model;
    for &id in nodes {
        if model.contains(id) && !model.is_unused(id) && cones.is_known(model, id) {
            cones.known.insert(id, order.len());
            order.push(id);
        }
    }
    let mut gone = FxHashSet::default();
    let mut changed = false;
    order.reverse();
    let mut walk = Walk::new(order, graph.budget);
    while let Some(id) = walk.next(model) {
        if gone.contains(&id) {
            continue;
        }
        let Some((cone, results)) = cones.fold(model, id) else { continue };
        changed |= replace::by_constants(model, id, &cone, results);
        gone.extend(cone);
    }
    changed
}

/// Whether only `QuantizeLinear` takes a node's output.
fn requantized(model: &Model, id: NodeId) -> bool {
    let quantizes = |u| matches!(u, Use::Input(user, 0) if model[user].is("QuantizeLinear"));
    model.uses_of(id).all(quantizes)
}

struct Cones<'a> {
    options: &'a Options,
    /// Known nodes, and their positions.
    known: FxHashMap<NodeId, usize>,
    /// The results of computed nodes; `None` if a node cannot be computed.
    done: FxHashMap<NodeId, Option<Vec<Tensor>>>,
    bytes: usize,
    constants: &'a FoldedConstants,
}

impl Cones<'_> {
    fn is_known(&self, model: &Model, id: NodeId) -> bool {
        let node = &model[id];
        let mut inputs = node.inputs().iter().flatten();
        let given = |&v: &Value| match model[v].def() {
            Def::Constant(t) => t.has_data() && t.nbytes() <= self.options.max_read_bytes,
            _ => model.producer(v).is_some_and(|p| self.known.contains_key(&p)),
        };
        node.domain.is_empty()
            && inputs.all(given)
            && node.op() != "Identity"
            && (node.op() != "DequantizeLinear" || requantized(model, id))
            && eval::knows(node.op())
            && result_bytes(model, id).is_some_and(|n| n <= self.options.max_read_bytes)
            && schema::lookup(node.op(), schema::CANONICAL_OPSET)
                .is_some_and(|formal| conforms(model, node, formal).is_ok())
    }

    /// The nodes that only `id` needs, with it, and its outputs, if they are worth their bytes.
    fn fold(&mut self, model: &Model, id: NodeId) -> Option<(Vec<NodeId>, Vec<Tensor>)> {
        let excluded = match model[id].op() {
            "DequantizeLinear" => true,
            "QuantizeLinear" => self.options.target == Target::TensorRt,
            _ => false,
        };
        if excluded {
            return None;
        }
        let bytes = result_bytes(model, id)?;
        let (cone, freed) = self.cone(model, id);
        let small = self.options.max_folded_bytes;
        let freed = if self.options.replace_weights { freed } else { 0 };
        let mut inputs = cone.iter().flat_map(|&n| model[n].inputs()).flatten();
        let kept = |v: Value| {
            let constant = model[v].constant().filter(|_| !self.options.replace_weights);
            constant.is_some_and(|t| t.nbytes() > small)
        };
        let generated = if inputs.any(|&v| kept(v) || is_narrow(model, v, id, small)) {
            0
        } else {
            self.options.max_generated_bytes
        };
        let allowed = small.max(freed).max(generated).max(cone.len() * (small / NODE_SHARE));
        // A node alone was tried before.
        if bytes > allowed || cone.len() + self.inputs(model, id).count() < 2 {
            return None;
        }
        let results = self.evaluate(model, id)?;
        (bytes_of(model, id, &results)? <= allowed).then_some((cone, results))
    }

    fn inputs<'m>(&'m self, model: &'m Model, id: NodeId) -> impl Iterator<Item = NodeId> + 'm {
        let producers = model[id].inputs().iter().flatten().filter_map(|&v| model.producer(v));
        producers.filter(|p| self.known.contains_key(p))
    }

    /// The node with the known nodes that only it needs, and the bytes of constants only they use.
    fn cone(&self, model: &Model, id: NodeId) -> (Vec<NodeId>, usize) {
        let mut inside: FxHashSet<NodeId> = FxHashSet::from_iter([id]);
        let (mut cone, mut next) = (vec![id], 0);
        let only_inside = |v: Value, inside: &FxHashSet<NodeId>| {
            model[v].uses().all(|u| matches!(u, Use::Input(user, _) if inside.contains(&user)))
        };
        while next < cone.len() && cone.len() < MAX_NODES {
            for producer in self.inputs(model, cone[next]).collect::<Vec<_>>() {
                let outputs = model[producer].outputs();
                if outputs.iter().all(|&v| only_inside(v, &inside)) && inside.insert(producer) {
                    cone.push(producer);
                }
            }
            next += 1;
        }
        let mut constants: FxHashSet<Value> = FxHashSet::default();
        for value in cone.iter().flat_map(|&n| model[n].inputs()).flatten() {
            let constant = model[*value].constant().is_some() && only_inside(*value, &inside);
            if constant && self.constants.is_alone(model, *value) {
                constants.insert(*value);
            }
        }
        let bytes = constants.iter().filter_map(|&v| Some(model[v].constant()?.nbytes()));
        (cone, bytes.fold(0, usize::saturating_add))
    }

    fn evaluate(&mut self, model: &Model, id: NodeId) -> Option<Vec<Tensor>> {
        let mut needed = vec![id];
        let mut seen = FxHashSet::from_iter([id]);
        let mut next = 0;
        while let Some(&node) = needed.get(next) {
            let new: Vec<NodeId> = { self.inputs(model, node) }
                .filter(|p| !self.done.contains_key(p) && seen.insert(*p))
                .collect();
            needed.extend(new);
            next += 1;
            if next > 4 * MAX_NODES {
                return None;
            }
        }
        needed.sort_by_key(|n| self.known.get(n));
        for node in needed {
            let result = self.one(model, node);
            let bytes = result.iter().flatten().map(Tensor::nbytes).sum::<usize>();
            self.bytes = self.bytes.saturating_add(bytes);
            let failed = result.is_none();
            self.done.insert(node, result);
            if failed || self.bytes > MAX_COMPUTED {
                return None;
            }
        }
        self.done.get(&id)?.clone()
    }

    fn one(&self, model: &Model, id: NodeId) -> Option<Vec<Tensor>> {
        let node = &model[id];
        let tensor = |v: Value| match model[v].constant() {
            Some(t) => Some(t),
            None => {
                let producer = model.producer(v)?;
                let at = model[producer].outputs().iter().position(|&o| o == v)?;
                self.done.get(&producer)?.as_ref()?.get(at)
            }
        };
        let inputs: Vec<Option<&Tensor>> = { node.inputs().iter() }
            .map(|v| v.map_or(Some(None), |v| tensor(v).map(Some)))
            .collect::<Option<_>>()?;
        eval::evaluate(node, &inputs, self.options.max_read_bytes)
    }
}
