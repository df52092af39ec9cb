//! Which weights are compressed.

use crate::{
    Error, Options, Precision, Quantize,
    numbers::{self, WeightName},
};
use pt2onnx_ir::{Attribute, Model, Node, NodeId, Use, Value};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Clone, Debug)]
pub(crate) struct Weight {
    pub value: Value,
    pub name: WeightName,
    pub tensor: Tensor,
    pub dtype: DType,
    /// Nodes and positions of their inputs, in the order of the graph.
    pub uses: Vec<(NodeId, usize)>,
}

/// The dimension of a weight's channels, and the one that products sum over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axes {
    pub channel: usize,
    pub sum: usize,
}

/// The float weights that may be compressed: large enough, used only by nodes of the graph and its
/// bodies, and not excluded.
pub(crate) fn weights(model: &Model, options: &Options) -> Vec<Weight> {
    let order: FxHashMap<NodeId, usize> =
        model.graph_nodes().into_iter().enumerate().map(|(i, node)| (node, i)).collect();
    let mut found = Vec::new();
    for (value, data) in model.values() {
        let Some(tensor) = data.constant().filter(|t| numbers::is_readable(t.dtype())) else {
            continue;
        };
        if data.uses().len() == 0 || tensor.numel() < options.min_elements.max(1) {
            continue;
        }
        let uses = data.uses().map(|at| at.input().filter(|(node, _)| order.contains_key(node)));
        let Some(mut uses) = uses.collect::<Option<Vec<_>>>() else { continue };
        uses.sort_by_key(|(node, index)| (order.get(node).copied(), *index));
        let name =
            data.name.as_deref().map_or_else(|| format!("value_{}", value.index()), str::to_owned);
        let name = WeightName::new(name, options.spelling);
        let weight = Weight { value, name, tensor: tensor.clone(), dtype: tensor.dtype(), uses };
        if weight.is_asked_for(model, options) {
            found.push(weight);
        }
    }
    found
}

impl Weight {
    fn is_asked_for(&self, model: &Model, options: &Options) -> bool {
        let nodes = || self.uses.iter().map(|(node, _)| *node);
        let is = |patterns: &[String]| patterns.iter().any(|p| is(model, p, &self.name, nodes()));
        (options.include.is_empty() || is(&options.include)) && !is(&options.exclude)
    }

    /// The weight with its present uses: nodes may have taken the place of others. Its elements are
    /// the original's.
    pub fn again(self, model: &Model, originals: &FxHashMap<Value, Tensor>) -> Self {
        let tensor = originals.get(&self.value).unwrap_or(&self.tensor).clone();
        if self.uses.iter().all(|(node, _)| model.contains(*node)) {
            return Self { tensor, ..self };
        }
        let mut uses: Vec<_> = model[self.value].uses().filter_map(Use::input).collect();
        let order = model.graph_nodes();
        uses.sort_by_key(|(node, index)| (order.iter().position(|n| n == node), *index));
        Self { tensor, uses, ..self }
    }

    /// An error if it has no values.
    pub fn has_values(&self) -> Result<(), Error> {
        if self.tensor.has_data() { Ok(()) } else { Err(Error::NoValues(self.name.to_string())) }
    }

    /// The products of matrices that take it, perhaps transposed, with the positions of their
    /// inputs.
    pub fn products(&self, model: &Model) -> Vec<(NodeId, usize)> {
        let mut found = Vec::new();
        for &(node, index) in &self.uses {
            if model[node].is("Transpose") {
                found.extend(model.uses_of(node).filter_map(Use::input));
            } else if axes(model, node, index, self.tensor.rank()).is_some() {
                found.push((node, index));
            }
        }
        found.retain(|(node, _)| matches!(model[*node].op(), "MatMul" | "Gemm"));
        found
    }

    /// Its axes, by the first use that has them.
    pub fn axes(&self, model: &Model) -> Option<Axes> {
        let mut all = self.uses.iter();
        all.find_map(|(node, index)| axes(model, *node, *index, self.tensor.rank()))
    }
}

/// Whether a pattern is about a weight: its name, or an operator that takes it, perhaps transposed.
fn is(model: &Model, pattern: &str, name: &str, mut nodes: impl Iterator<Item = NodeId>) -> bool {
    let transposed = |node: NodeId| {
        let mut users = model.uses_of(node).filter_map(Use::input);
        model[node].is("Transpose") && users.any(|(user, _)| model[user].op() == pattern)
    };
    matches(pattern, name) || nodes.any(|node| model[node].op() == pattern || transposed(node))
}

/// Whether nodes of an operator are asked for that have no weights.
pub(crate) fn operator(options: &Options, op: &str) -> bool {
    let is = |patterns: &[String]| patterns.iter().any(|p| p == op);
    (options.include.is_empty() || is(&options.include)) && !is(&options.exclude)
}

pub(crate) fn axes(model: &Model, id: NodeId, index: usize, rank: usize) -> Option<Axes> {
    let node = &model[id];
    let flag = |name: &str| node.int(name).unwrap_or(0) != 0;
    let of = |channel, sum| Some(Axes { channel, sum });
    if rank < 2 {
        return None;
    }
    match (node.op(), index) {
        ("CausalConvWithState", 1) if node.domain == "com.microsoft" => of(0, 1),
        _ if !node.domain.is_empty() => None,
        ("MatMul", 0) => of(rank - 2, rank - 1),
        ("MatMul", 1) => of(rank - 1, rank - 2),
        ("Gemm", 0) if flag("transA") => of(1, 0),
        ("Gemm", 0) => of(0, 1),
        ("Gemm", 1) if flag("transB") => of(0, 1),
        ("Gemm", 1) => of(1, 0),
        ("Conv", 1) => of(0, 1),
        ("ConvTranspose", 1) => of(1, 0),
        ("Gather", 0) if rank == 2 && matches!(node.int("axis"), None | Some(0 | -2)) => of(0, 1),
        ("Transpose", 0) => {
            let perm = permutation(model, id, rank)?;
            let mut users = model[*node.outputs().first()?].uses().filter_map(Use::input);
            let inner = users.find_map(|(user, index)| axes(model, user, index, rank))?;
            of(*perm.get(inner.channel)?, *perm.get(inner.sum)?)
        }
        _ => None,
    }
}

/// Whether the terms of a `Gemm` are scaled.
pub(crate) fn scales_terms(node: &Node) -> bool {
    let is_one = |a: &Attribute| matches!(a, Attribute::Float(f) if *f == 1.0);
    ["alpha", "beta"].iter().any(|name| node.attribute(name).is_some_and(|a| !is_one(a)))
}

/// The input of a product with a weight, and what is added to the product.
pub(crate) fn product(model: &Model, node: NodeId, index: usize) -> Option<(Value, Option<Value>)> {
    let node = &model[node];
    let plain = || node.int("transA").unwrap_or(0) == 0 && !scales_terms(node);
    match node.op() {
        _ if index != 1 || !node.domain.is_empty() => None,
        "MatMul" => Some((node.input(0)?, None)),
        "Gemm" if plain() => Some((node.input(0)?, node.input(2))),
        _ => None,
    }
}

/// Whether only convolutions use a weight.
pub(crate) fn is_of_convolutions(model: &Model, weight: &Weight) -> bool {
    let is = |op: &str| matches!(op, "Conv" | "ConvTranspose");
    weight.uses.iter().all(|(node, _)| model[*node].domain.is_empty() && is(model[*node].op()))
}

/// Whether ONNX Runtime's products of integers take a weight of some dimensions only with one scale
/// for all: on the left, and several matrices.
pub(crate) fn needs_one_scale(model: &Model, id: NodeId, index: usize, rank: usize) -> bool {
    let node = &model[id];
    match (node.op(), index) {
        _ if !node.domain.is_empty() => false,
        ("MatMul" | "Gemm", 0) => true,
        ("MatMul", 1) => rank > 2,
        ("Transpose", 0) => {
            let mut users = model.uses_of(id).filter_map(Use::input);
            users.any(|(user, index)| needs_one_scale(model, user, index, rank))
        }
        _ => false,
    }
}

pub(crate) fn permutation(model: &Model, id: NodeId, rank: usize) -> Option<Vec<usize>> {
    match model[id].attribute("perm") {
        Some(Attribute::Ints(perm)) if perm.len() == rank => {
            perm.iter().map(|&i| usize::try_from(i).ok().filter(|&i| i < rank)).collect()
        }
        None => Some((0..rank).rev().collect()),
        _ => None,
    }
}

/// Checks that each name and operator that is given occurs. Where only weights are compressed, it
/// must be about weights, and some must be left.
pub(crate) fn check_patterns(model: &Model, options: &Options) -> Result<(), Error> {
    let ops: FxHashSet<&str> = model.graph_nodes().into_iter().map(|n| model[n].op()).collect();
    let weights = model.values().filter(|(_, data)| {
        data.constant().is_some_and(|t| numbers::is_readable(t.dtype())) && data.uses().len() > 0
    });
    let weights = weights.map(|(_, data)| {
        let nodes = data.uses().filter_map(|at| Some(at.input()?.0));
        (data.name.as_deref().unwrap_or_default(), nodes.collect())
    });
    let weights: Vec<(&str, Vec<NodeId>)> = weights.collect();
    let about = |pattern: &str, (name, nodes): &(&str, Vec<NodeId>)| {
        is(model, pattern, name, nodes.iter().copied())
    };
    let only_weights =
        options.precision == Precision::Keep && options.quantize != Some(Quantize::StaticInt8);
    for pattern in options.include.iter().chain(&options.exclude) {
        if weights.iter().any(|weight| about(pattern, weight)) {
            continue;
        }
        if !ops.contains(pattern.as_str()) {
            return Err(Error::Nothing(pattern.clone()));
        }
        if only_weights {
            return Err(Error::NoWeights(pattern.clone()));
        }
    }
    let is_any = |patterns: &[String], weight| patterns.iter().any(|p| about(p, weight));
    let mut given = weights.iter().filter(|weight| is_any(&options.include, weight));
    if only_weights
        && !options.include.is_empty()
        && given.all(|weight| is_any(&options.exclude, weight))
    {
        return Err(Error::NoneLeft {
            exclude: options.spelling.text("{compress-exclude}"),
            include: options.spelling.text("{compress-include}"),
        });
    }
    Ok(())
}

/// Whether one of the patterns says a name.
pub(crate) fn is_named(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("a.b", "a.b", true),
            ("a", "a.b", false),
            ("a.*", "a.b", true),
            ("*.weight", "l.0.weight", true),
            ("*.0.*t", "l.0.weight", true),
            ("*.1.*", "l.0.weight", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
