//! Tail merging: nodes with which both branches of an `If` end stand behind it once.
//!
//! Nodes are paired from the outputs of the branches back. A pair does the same with inputs that
//! are the same value outside, or results of the branches, which the `If` then gives instead.

use crate::{Changed, GraphMut, Measure, Options, Pass, cse, licm, pass::Run, rewrite};
use indexmap::IndexMap;
use pt2onnx_ir::{
    Attributes, InsertPoint, Model, NodeId, RegionId, Shape, TensorType, Type, Use, Value,
};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

pub(crate) static TAIL_MERGE: Pass = Pass {
    name: "tail-merge",
    description: "Moves nodes with which both branches of an If end behind it, and takes outputs \
                  from an If that nothing uses.",
    precondition: "The nodes do the same with the same values from outside, or with values of \
                   equal element types, and nothing else in the branches uses their results.",
    lowers: Measure::Runs,
    run: Run::Graph(run),
    ..Pass::SIMPLIFICATION
};

/// Inner nodes first, as their tails may be tails of the branch around them.
fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    let mut nodes = graph.nodes();
    nodes.reverse();
    let mut walk = graph.walk_over(nodes);
    let model = &mut *graph.model;
    let mut changed = false;
    while let Some(id) = walk.next(model) {
        if model.contains(id) && model[id].is("If") && !model.is_unused(id) {
            changed |= merge(model, id);
        }
    }
    changed
}

/// Moves the tail that both branches of an `If` have behind it.
pub(crate) fn merge(model: &mut Model, id: NodeId) -> Changed {
    let branches = licm::body(model, id, "then_branch").zip(licm::body(model, id, "else_branch"));
    let Some((yes, no)) = branches else { return false };
    let results = model[id].outputs().len();
    if [yes, no].iter().any(|branch| model[*branch].outputs().len() != results) {
        return false;
    }
    let tail = Tail::find(model, id, yes, no);
    let used = |v: &Value| model[*v].uses().len() > 0;
    if tail.nodes.is_empty() && model[id].outputs().iter().all(used) {
        return false;
    }
    tail.move_behind(model, id, yes, no);
    true
}

/// Nodes at the ends of both branches, in pairs.
#[derive(Default)]
struct Tail {
    /// The value of the second branch for one of the first, in the order in which they were found.
    pairs: IndexMap<Value, Value, FxBuildHasher>,
    back: FxHashMap<Value, Value>,
    /// Values with several partners.
    blocked: FxHashSet<Value>,
    /// The node of the second branch for one of the first.
    nodes: FxHashMap<NodeId, NodeId>,
    others: FxHashSet<NodeId>,
}

impl Tail {
    fn find(model: &Model, id: NodeId, yes: RegionId, no: RegionId) -> Self {
        let mut tail = Self::default();
        let outputs = model[id].outputs().iter();
        let results = model[yes].output_values().zip(model[no].output_values());
        for (_, (a, b)) in outputs.zip(results).filter(|(v, _)| model[**v].uses().len() > 0) {
            if !tail.are_partners(a, b) && !tail.pair(a, b) {
                tail.blocked.extend([a, b]);
            }
        }
        let mut todo: Vec<Value> = tail.pairs.keys().copied().collect();
        while let Some(value) = todo.pop() {
            let Some((node, other)) = tail.candidates(model, value, yes, no) else { continue };
            if !tail.pair_inputs(model, node, other, yes, no) {
                continue;
            }
            tail.nodes.insert(node, other);
            tail.others.insert(other);
            // A node may have waited for this one, its last user.
            todo.extend(model[node].inputs().iter().flatten());
        }
        tail
    }

    fn are_partners(&self, a: Value, b: Value) -> bool {
        self.pairs.get(&a) == Some(&b) && self.back.get(&b) == Some(&a)
    }

    /// Makes two values partners, unless one of them has a partner.
    fn pair(&mut self, a: Value, b: Value) -> bool {
        if self.pairs.contains_key(&a) || self.back.contains_key(&b) {
            return false;
        }
        self.pairs.insert(a, b);
        self.back.insert(b, a);
        true
    }

    /// The nodes of a value and its partner, if nothing but the tail uses their results.
    fn candidates(
        &self,
        model: &Model,
        value: Value,
        yes: RegionId,
        no: RegionId,
    ) -> Option<(NodeId, NodeId)> {
        let partner = *self.pairs.get(&value)?;
        let (node, other) = (made_in(model, value, yes)?, made_in(model, partner, no)?);
        let fit = !self.nodes.contains_key(&node)
            && cse::repeatable(model, node)
            && model[node].regions().next().is_none()
            && cse::same_function(&model[node], &model[other])
            && model[node].inputs().len() == model[other].inputs().len();
        let in_tail = |at: Use, branch: RegionId, first: bool| match at {
            Use::Output(region, _) => region == branch,
            Use::Input(user, _) if first => self.nodes.contains_key(&user),
            Use::Input(user, _) => self.others.contains(&user),
        };
        let results = |(&a, &b): (&Value, &Value)| {
            let (unused_a, unused_b) = (model[a].uses().len() == 0, model[b].uses().len() == 0);
            if unused_a || unused_b {
                return unused_a && unused_b && model[a].is_left_out() == model[b].is_left_out();
            }
            self.are_partners(a, b)
                && ![a, b].iter().any(|v| self.blocked.contains(v))
                && model[a].uses().all(|at| in_tail(at, yes, true))
                && model[b].uses().all(|at| in_tail(at, no, false))
        };
        let mut outputs = model[node].outputs().iter().zip(model[other].outputs());
        (fit && outputs.all(results)).then_some((node, other))
    }

    /// Makes the inputs of two nodes partners; none of them if some cannot be.
    fn pair_inputs(
        &mut self,
        model: &Model,
        node: NodeId,
        other: NodeId,
        yes: RegionId,
        no: RegionId,
    ) -> bool {
        let known = self.pairs.len();
        let fit = model[node].inputs().iter().zip(model[other].inputs()).all(|pair| {
            let (&Some(a), &Some(b)) = pair else { return pair.0.is_none() && pair.1.is_none() };
            if a == b || self.are_partners(a, b) {
                return true;
            }
            let inside = made_in(model, a, yes).is_some() && made_in(model, b, no).is_some();
            inside
                && ![a, b].iter().any(|v| self.blocked.contains(v))
                && joined(&mut model[a].ty.clone(), &model[b].ty) == Some(true)
                && self.pair(a, b)
        });
        while !fit && self.pairs.len() > known {
            if let Some((_, b)) = self.pairs.pop() {
                self.back.remove(&b);
            }
        }
        fit
    }

    /// Moves the nodes behind the `If`, which gives what they take.
    fn move_behind(self, model: &mut Model, id: NodeId, yes: RegionId, no: RegionId) {
        let old = model[id].outputs().to_vec();
        let results: Vec<(Value, Value)> =
            model[yes].output_values().zip(model[no].output_values()).collect();
        let moved: Vec<NodeId> = model.nodes(yes).filter(|n| self.nodes.contains_key(n)).collect();
        let is_moved = |model: &Model, v: Value| {
            model.producer(v).is_some_and(|n| self.nodes.contains_key(&n))
        };
        // The pairs that the new node gives: those of outputs that stay, then those of the tail.
        let mut given: IndexMap<(Value, Value), Option<Type>, FxBuildHasher> = IndexMap::default();
        for (&output, &pair) in old.iter().zip(&results) {
            if model[output].uses().len() > 0 && !is_moved(model, pair.0) {
                given.entry(pair).or_insert_with(|| model[output].ty.clone());
            }
        }
        let taken = moved.iter().flat_map(|n| model[*n].inputs().iter().flatten().copied());
        for a in taken.collect::<Vec<_>>() {
            if let Some(&b) = self.pairs.get(&a)
                && !is_moved(model, a)
                && made_in(model, a, yes).is_some()
                && !given.contains_key(&(a, b))
            {
                let ty = union(model, a, b);
                given.insert((a, b), ty);
            }
        }
        for (&node, &other) in &self.nodes {
            let others = model[other].outputs().to_vec();
            for (a, b) in model[node].outputs().to_vec().into_iter().zip(others) {
                model[a].ty = union(model, a, b);
            }
        }
        let firsts: Vec<Value> = given.keys().map(|(a, _)| *a).collect();
        let seconds: Vec<Value> = given.keys().map(|(_, b)| *b).collect();
        model.set_outputs(yes, &firsts);
        model.set_outputs(no, &seconds);
        let outputs = with_outputs(model, id, given.values().cloned().collect());
        let place = |pair: &(Value, Value)| given.get_index_of(pair).map(|i| outputs[i]);
        for node in moved {
            for (i, input) in model[node].inputs().to_vec().into_iter().enumerate() {
                let Some(a) = input else { continue };
                let outside = self.pairs.get(&a).and_then(|b| place(&(a, *b)));
                if outside.is_some() {
                    model.replace_input(node, i, outside);
                }
            }
            model.move_before(node, id);
            if let Some(&other) = self.nodes.get(&node) {
                model.share(node, other);
            }
        }
        for (output, pair) in old.into_iter().zip(results) {
            let result = if is_moved(model, pair.0) { Some(pair.0) } else { place(&pair) };
            if let Some(result) = result {
                let ty = model[output].ty.clone();
                rewrite::substitute(model, output, result);
                model[result].ty = Type::fuller(ty, model[result].ty.take());
            }
        }
        let gone: Vec<NodeId> = model.nodes_rev(no).filter(|n| self.others.contains(n)).collect();
        for node in gone {
            model.erase(node);
        }
        model.erase(id);
    }
}

/// Puts an `If` with the branches of another and outputs of these types in front of it. Returns the
/// outputs.
fn with_outputs(model: &mut Model, id: NodeId, types: Vec<Option<Type>>) -> Vec<Value> {
    if types.is_empty() {
        return Vec::new();
    }
    let (at, inputs) = (InsertPoint::Before(id), model[id].inputs().to_vec());
    let new = model.add_node(at, "If", &inputs, Attributes::new(), types.len());
    // Taken, as the branches go with their node.
    model[new].attributes = std::mem::take(&mut model[id].attributes);
    model[new].name = model[id].name.take();
    model[new].origins = model[id].origins.clone();
    let outputs = model[new].outputs().to_vec();
    for (&output, ty) in outputs.iter().zip(types) {
        model[output].ty = ty;
    }
    outputs
}

/// The node of a branch that makes a value.
fn made_in(model: &Model, value: Value, branch: RegionId) -> Option<NodeId> {
    model.producer(value).filter(|n| model.contains(*n) && model[*n].region() == branch)
}

/// The type of a value that is one of two.
fn union(model: &mut Model, a: Value, b: Value) -> Option<Type> {
    let mut ty = model[a].ty.clone();
    let other = model[b].ty.clone();
    joined(&mut ty, &other)?;
    if let Some(Type::Tensor(TensorType { shape: Some(sizes), .. })) = &mut ty {
        let own = other.as_ref().and_then(Type::as_tensor).and_then(|t| t.shape.as_ref());
        for (size, own) in sizes.iter_mut().zip(own.into_iter().flatten()) {
            if size != own {
                *size = model.unknown_dim();
            }
        }
    }
    ty
}

/// Makes a type one that holds for values of another type, too, but for sizes that differ. `None`
/// if there is none, or it is not known.
fn joined(ty: &mut Option<Type>, other: &Option<Type>) -> Option<bool> {
    match (ty.as_mut()?, other.as_ref()?) {
        (Type::Tensor(a), Type::Tensor(b)) => {
            let rank = |shape: &Option<Shape>| shape.as_ref().map(Vec::len);
            if rank(&a.shape) != rank(&b.shape) {
                a.shape = None;
            }
            (a.dtype == b.dtype).then_some(true)
        }
        (a, b) => (a == b).then_some(true),
    }
}
