//! Measures that passes lower, so that running them ends.

use pt2onnx_ir::{Def, Model, NodeId, RegionId, Traits, Value, attrs};
use pt2onnx_symbolic::axis;
use rustc_hash::FxHashMap;

/// A number of a graph without dead nodes that falls whenever a pass changes it, so that no pass
/// changes a graph forever. Tests check each of the standard passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Measure {
    /// Nodes that depend on inputs, then all nodes, then constants.
    Nodes,
    /// Nodes that depend on inputs, then the lengths of the paths to them, then inputs of nodes.
    Paths,
    /// Nodes, each as often as its body may run, then outputs of nodes with bodies, and uses of
    /// values that bodies and their nodes pass on.
    Runs,
    /// Nodes that depend on constants only, then uses of their results.
    Fixed,
    /// The dimensions behind the axes of `Softmax` and `LogSoftmax`.
    SoftmaxAxes,
    /// Convolutions of sequences, then activations behind a `Squeeze` of a convolution.
    Sequences,
    /// Nodes of these operators, in order, then inputs of nodes.
    Operators(&'static [&'static str]),
    /// Nothing is known: a pass of a user.
    Unknown,
}

/// A node of a body counts as much as this many nodes outside.
const RUNS: u64 = 16;

impl Measure {
    /// The measure of a graph as numbers; the first one counts most. `None` if it is not known.
    pub fn of(self, model: &Model, region: RegionId) -> Option<Vec<u64>> {
        let nodes = model.nodes_in(&[region]);
        let count = |some: usize| some as u64;
        Some(match self {
            Self::Nodes => {
                let constants = model.values().filter(|(_, d)| d.constant().is_some());
                let used = constants.filter(|(_, d)| d.uses().len() > 0).count();
                vec![count(depths(model, &nodes).0), count(nodes.len()), count(used)]
            }
            Self::Paths => {
                let (varying, lengths) = depths(model, &nodes);
                vec![count(varying), lengths, inputs(model, &nodes), count(nodes.len())]
            }
            Self::Runs => vec![runs(model, region), passed_on(model, &nodes)],
            Self::Fixed => {
                let varying = depths(model, &nodes).0;
                let table = |id: &&NodeId| {
                    model[**id].inputs().iter().flatten().all(|&v| model[v].constant().is_some())
                };
                let uses = nodes.iter().filter(table).map(|&id| count(model.uses_of(id).count()));
                vec![count(nodes.len() - varying), uses.sum()]
            }
            Self::SoftmaxAxes => vec![nodes.iter().filter_map(|&n| behind_axis(model, n)).sum()],
            Self::Sequences => {
                let of = |f: fn(&Model, NodeId) -> Option<bool>| {
                    count(nodes.iter().filter(|&&n| f(model, n) == Some(true)).count())
                };
                vec![of(is_sequence_conv), of(is_activation_of_squeezed)]
            }
            Self::Operators(ops) => {
                let of = |op: &&str| count(nodes.iter().filter(|&&n| model[n].op() == *op).count());
                ops.iter().map(of).chain([inputs(model, &nodes)]).collect()
            }
            Self::Unknown => return None,
        })
    }
}

/// How many nodes depend on inputs, and the sum of the lengths of the longest paths.
fn depths(model: &Model, nodes: &[NodeId]) -> (usize, u64) {
    let mut depths: FxHashMap<Value, (u64, bool)> = FxHashMap::default();
    let (mut varying, mut lengths) = (0, 0);
    for &node in nodes {
        // Bodies may use other values than the node's inputs.
        let (mut longest, mut varies) = (0, model[node].regions().next().is_some());
        for value in model[node].inputs().iter().flatten() {
            let (depth, vary) = match model[*value].def() {
                Def::Constant(_) => (0, false),
                Def::Input(..) => (1, true),
                Def::Node(..) => depths.get(value).copied().unwrap_or_default(),
            };
            lengths += depth;
            longest = longest.max(depth);
            varies |= vary;
        }
        varying += usize::from(varies);
        depths.extend(model[node].outputs().iter().map(|&v| (v, (longest + 1, varies))));
    }
    (varying, lengths)
}

fn inputs(model: &Model, nodes: &[NodeId]) -> u64 {
    nodes.iter().map(|&n| model[n].inputs().len() as u64).sum()
}

/// The number of dimensions behind the axis of a softmax.
fn behind_axis(model: &Model, id: NodeId) -> Option<u64> {
    let node = Some(&model[id]).filter(|n| n.is("Softmax") || n.is("LogSoftmax"))?;
    let rank = model.rank(node.input(0)?)?;
    let axis = axis(attrs::Softmax::read(node).ok()?.axis, rank)?;
    u64::try_from(rank - 1 - axis).ok()
}

fn is_sequence_conv(model: &Model, id: NodeId) -> Option<bool> {
    let node = &model[id];
    Some(node.is("Conv") && model.rank(node.input(1)?)? == 3)
}

fn is_activation_of_squeezed(model: &Model, id: NodeId) -> Option<bool> {
    let node = Some(&model[id]).filter(|n| n.traits().contains(Traits::ELEMENTWISE))?;
    let squeeze = &model[model.producer(node.input(0)?)?];
    let conv = Some(squeeze).filter(|n| n.is("Squeeze"))?.input(0)?;
    Some(model[model.producer(conv)?].is("Conv"))
}

/// All nodes, weighted by how deep their region is.
fn runs(model: &Model, region: RegionId) -> u64 {
    let (mut sum, mut open) = (0u64, vec![(region, 1u64)]);
    while let Some((region, weight)) = open.pop() {
        for node in model.nodes(region) {
            sum = sum.saturating_add(weight);
            open.extend(model[node].regions().map(|r| (r, weight.saturating_mul(RUNS))));
        }
    }
    sum
}

/// The outputs of nodes with bodies and their uses, and those of the inputs of bodies.
fn passed_on(model: &Model, nodes: &[NodeId]) -> u64 {
    let uses = |v: &Value| model[*v].uses().len() as u64;
    let with_bodies = nodes.iter().filter(|&&n| model[n].regions().next().is_some());
    let passed = with_bodies.map(|&n| {
        let inner = model[n].regions().flat_map(|r| model[r].inputs());
        let outputs = model[n].outputs();
        outputs.iter().chain(inner).map(uses).sum::<u64>() + outputs.len() as u64
    });
    passed.sum()
}
