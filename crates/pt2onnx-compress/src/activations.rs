//! Which activations of a graph are quantised, and which nodes take them so.

use crate::{Error, Options, Quantize, product_inputs, weight_selection};
use pt2onnx_ir::{Def, Model, Node, NodeId, Traits, Use, Value};
use pt2onnx_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

/// The activations whose numbers on samples [`compress`](crate::compress) takes from
/// [`Options::calibrated`], as values of the main graph.
///
/// # Errors
/// A name or operator that is given does not occur.
pub fn activations(model: &Model, options: &Options) -> Result<Vec<Value>, Error> {
    let mut all: Vec<Value> = match options.quantize {
        Some(Quantize::Int4) => product_inputs::inputs(model, options).into_keys().collect(),
        _ => Plan::of(model, options)?.activations.iter().map(|a| a.range).collect(),
    };
    all.sort_by_key(|v| v.index());
    all.dedup();
    Ok(all)
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The activations, in the order of the graph.
    pub activations: Vec<Activation>,
    /// The layers.
    pub layers: Vec<NodeId>,
    /// All nodes that take quantised activations.
    pub takers: FxHashSet<NodeId>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Activation {
    pub value: Value,
    /// The one whose range it has: itself, or what was moved.
    pub range: Value,
    /// Whether all nodes take it quantised, and not only those of the plan: then nothing else keeps
    /// its floats.
    pub whole: bool,
}

impl Plan {
    /// The plan for the main graph. Bodies stay unchanged.
    pub fn of(model: &Model, options: &Options) -> Result<Self, Error> {
        let weights = weight_selection::weights(model, options);
        let weights = weights.into_iter().filter(|w| w.axes(model).is_some()).map(|w| w.value);
        let order: Vec<NodeId> = model.nodes(Model::MAIN).collect();
        let mut work = Work {
            model,
            options,
            weights: weights.collect(),
            chosen: FxHashMap::default(),
            plan: Self::default(),
        };
        order.iter().for_each(|node| work.layer(*node));
        order.iter().for_each(|node| work.between(*node));
        order.iter().rev().for_each(|node| work.prune(*node));
        let Work { chosen, mut plan, .. } = work;
        let place: FxHashMap<NodeId, usize> =
            order.iter().enumerate().map(|(i, node)| (*node, i)).collect();
        plan.activations = chosen.into_values().collect();
        plan.activations.sort_by_key(|a| {
            let producer = model.producer(a.value);
            (producer.and_then(|node| place.get(&node).copied()), a.value.index())
        });
        Ok(plan)
    }
}

struct Work<'a> {
    model: &'a Model,
    options: &'a Options,
    weights: FxHashSet<Value>,
    chosen: FxHashMap<Value, Activation>,
    plan: Plan,
}

impl Work<'_> {
    /// The inputs of a layer are quantised, and the results of convolutions.
    fn layer(&mut self, id: NodeId) {
        let node = &self.model[id];
        if !node.traits().contains(Traits::LAYER) {
            return;
        }
        let convolution = matches!(node.op(), "Conv" | "ConvTranspose");
        let Some(output) = node.outputs().first().copied().filter(|v| self.is_float(*v)) else {
            return;
        };
        let mut taken = Vec::new();
        for index in 0..2 {
            let Some(value) = node.input(index) else { return };
            match weight(self.model, value) {
                Some(weight) if !self.weights.contains(&weight) => return,
                Some(_) => {}
                None if self.is_float(value) => taken.push(value),
                None => return,
            }
        }
        let own = if convolution { 1..2 } else { 1..3 };
        if !own.contains(&taken.len())
            || taken.len() == 2 && !weight_selection::operator(self.options, node.op())
        {
            return;
        }
        taken.into_iter().for_each(|value| self.choose(value, value, false));
        self.plan.layers.push(id);
        self.plan.takers.insert(id);
        if convolution {
            let output = self.settled(output);
            self.choose(output, output, true);
        }
    }

    /// A node between layers takes quantised activations if all of its inputs are.
    fn between(&mut self, id: NodeId) {
        let node = &self.model[id];
        let moves = moves(node);
        let Some(&output) = node.outputs().first().filter(|v| self.is_float(**v)) else { return };
        if !moves && !node.traits().contains(Traits::QUANTISABLE)
            || node.outputs().len() != 1
            || !weight_selection::operator(self.options, node.op())
        {
            return;
        }
        // The other inputs of moves are sizes.
        let mut floats = node.inputs().iter().flatten().take(if moves { 1 } else { usize::MAX });
        if !floats.all(|v| self.chosen.contains_key(v)) {
            return;
        }
        let output = if moves { output } else { self.settled(output) };
        if self.is_output(output) {
            return;
        }
        let first = node.input(0).and_then(|v| self.chosen.get(&v)).map(|a| a.range);
        let range = first.filter(|_| moves).unwrap_or(output);
        self.choose(output, range, !moves);
        self.plan.takers.insert(id);
    }

    /// Activations without a taker need not be quantised, except results of convolutions.
    fn prune(&mut self, id: NodeId) {
        let node = &self.model[id];
        if !self.plan.takers.contains(&id) || node.traits().contains(Traits::LAYER) {
            return;
        }
        let Some(&output) = node.outputs().first() else { return };
        let output = if moves(node) { output } else { self.settled(output) };
        let mut users = self.model[output].uses().filter_map(Use::input);
        if !users.any(|(user, _)| self.plan.takers.contains(&user)) {
            self.plan.takers.remove(&id);
            self.chosen.remove(&output);
        }
    }

    fn choose(&mut self, value: Value, range: Value, whole: bool) {
        if whole && self.is_output(value) {
            return;
        }
        let known = self.chosen.entry(value).or_insert(Activation { value, range, whole });
        known.whole |= whole;
        if range != value {
            known.range = range;
        }
    }

    /// The value after activation functions that runtimes compute together with the node before.
    fn settled(&self, value: Value) -> Value {
        let Some((user, 0)) = self.model[value].only_use() else { return value };
        let user = &self.model[user];
        let joins = (user.is("Relu") || user.is("Clip")) && user.region() == Model::MAIN;
        let output = user.outputs().first().filter(|_| joins);
        output.map_or(value, |output| self.settled(*output))
    }

    fn is_float(&self, value: Value) -> bool {
        self.model.dtype(value) == Some(DType::F32)
            && !matches!(self.model[value].def(), Def::Constant(_))
    }

    fn is_output(&self, value: Value) -> bool {
        self.model[value].uses().any(|at| matches!(at, Use::Output(..)))
    }
}

/// Whether a node takes quantised operands and its results have the range of its first input.
fn moves(node: &Node) -> bool {
    let traits = node.traits();
    traits.contains(Traits::QUANTISABLE)
        && traits.intersects(Traits::DATA_MOVEMENT | Traits::SELECTING)
}

/// The constant that a value is, or the transposed one.
pub(crate) fn weight(model: &Model, value: Value) -> Option<Value> {
    match model[value].def() {
        Def::Constant(_) => Some(value),
        Def::Node(node, _) if model[*node].is("Transpose") => {
            let input = model[*node].input(0)?;
            model[input].constant().map(|_| input)
        }
        _ => None,
    }
}
