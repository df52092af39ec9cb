//! Unreachable branches of `If`: a node after the `If` would fail with their results.
//!
//! An `If` whose branches give results of different ranks hides the rank from everything after it.
//! Each branch is tried on a copy of the model: if the copy is sure to fail, the result has the
//! type that the other branch gives it. The `If` stays, and so does the node that fails. Where a
//! node takes the result itself, its rank alone decides, without a copy.

use crate::{analysis, licm::body};
use pt2onnx_ir::{Def, Model, Node, NodeId, RegionId, Type, Value};
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashMap;

/// The branch that gives the results of an `If` their types.
pub(crate) type Taken = FxHashMap<NodeId, RegionId>;

/// At most this many `If` are tried, each twice.
const MAX_TRIED: usize = 8;

/// Nothing is tried in models of more nodes than this.
const MAX_NODES: usize = 20_000;

/// At most this many nodes are simplified in copies of a graph, all together.
pub(crate) const MAX_SIMPLIFIED: usize = 1 << 17;

/// Tries the branches of each `If` of a graph whose result has another rank in each of them; adds
/// the other ones to `taken`. `simplify` simplifies a copy in which the branch is chosen, as long
/// as there is `budget`.
pub(crate) fn find(
    model: &Model,
    root: RegionId,
    taken: &mut Taken,
    budget: &mut usize,
    simplify: &dyn Fn(&mut Model),
) -> bool {
    let nodes = model.nodes_in(&[root]);
    let cost = 2 * nodes.len();
    if nodes.len() > MAX_NODES {
        return false;
    }
    let open = nodes.into_iter().filter(|&id| !taken.contains_key(&id));
    let open = open.filter(|&id| taken_by_users(model, id).is_none());
    let open: Vec<(NodeId, [RegionId; 2])> =
        open.filter_map(|id| Some((id, branches(model, id)?))).take(MAX_TRIED).collect();
    for (id, [yes, no]) in open {
        let Some(left) = budget.checked_sub(cost) else { return false };
        *budget = left;
        let fails = |choice: bool| {
            let mut copy = model.clone();
            let condition = copy.add_constant(Tensor::scalar(choice));
            let region = copy[id].region();
            copy.replace_input(id, 0, Some(condition));
            simplify(&mut copy);
            copy.nodes(region).any(|n| impossible(&copy[n], |v| copy.rank(v)))
        };
        match (fails(true), fails(false)) {
            (true, false) => taken.insert(id, no),
            (false, true) => taken.insert(id, yes),
            _ => continue,
        };
        return true;
    }
    false
}

/// The branches of an `If` that give the same element types and different ranks.
fn branches(model: &Model, id: NodeId) -> Option<[RegionId; 2]> {
    let node = Some(&model[id]).filter(|n| n.is("If"))?;
    let both = [body(model, id, "then_branch")?, body(model, id, "else_branch")?];
    let constant = matches!(model[node.input(0)?].def(), Def::Constant(_));
    let results = both.map(|r| model[r].output_values().collect::<Vec<Value>>());
    let differs =
        |(a, b): (&Value, &Value)| model.rank(*a).zip(model.rank(*b)).is_some_and(|(a, b)| a != b);
    let differ = results[0].iter().zip(&results[1]).any(differs);
    (differ && !constant).then_some(both)
}

/// The branch whose results the users of an `If` take, if one of them does not take those of the
/// other.
pub(crate) fn taken_by_users(model: &Model, id: NodeId) -> Option<RegionId> {
    let [yes, no] = branches(model, id)?;
    let outputs = model[id].outputs();
    let fails = |branch: RegionId| {
        let results: FxHashMap<Value, Value> =
            outputs.iter().copied().zip(model[branch].output_values()).collect();
        // Types of other values may be those of the file, and wrong.
        let constant = |v: Value| model[v].constant().map(|_| v);
        let rank = |v: Value| model.rank(results.get(&v).copied().or_else(|| constant(v))?);
        let mut users = analysis::users(model, id);
        users.any(|u| model[u].region() == model[id].region() && impossible(&model[u], rank))
    };
    match (fails(yes), fails(no)) {
        (true, false) => Some(no),
        (false, true) => Some(yes),
        _ => None,
    }
}

/// Whether a node does not take an input of the rank that it has.
fn impossible(node: &Node, rank: impl Fn(Value) -> Option<usize>) -> bool {
    let is_not =
        |i: usize, wanted: usize| node.input(i).and_then(&rank).is_some_and(|rank| rank != wanted);
    if !node.domain.is_empty() {
        return false;
    }
    match node.op() {
        "LSTM" => is_not(0, 3) || is_not(5, 3) || is_not(6, 3),
        "GRU" | "RNN" => is_not(0, 3) || is_not(5, 3),
        "Gemm" => is_not(0, 2) || is_not(1, 2),
        "Conv" | "ConvTranspose" => {
            node.input(1).and_then(&rank).is_some_and(|rank| is_not(0, rank))
        }
        _ => false,
    }
}

pub(crate) fn types(model: &Model, branch: RegionId) -> Vec<Option<Type>> {
    model[branch].output_values().map(|v| model[v].ty.clone()).collect()
}
