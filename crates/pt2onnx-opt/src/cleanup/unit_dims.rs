//! A transpose after `Unsqueeze` that moves only the dimensions of size 1 which that adds.

use super::{
    keepdims::added,
    node_view::{Action, NodeView},
};

/// `Unsqueeze` of other dimensions instead of both.
pub(super) fn rule(n: &NodeView) -> Option<Action> {
    let node = Some(n.node).filter(|node| node.is("Transpose"))?;
    let inner = n.model.producer(node.input(0)?).filter(|&i| n.model[i].is("Unsqueeze"))?;
    let source = n.model[inner].input(0)?;
    let perm = n.perm()?;
    let ones = added(n.model, inner)?;
    let is_one = |&p: &i64| ones.iter().any(|&a| a as i64 == p);
    let (axes, rest): (Vec<_>, Vec<_>) = perm.iter().enumerate().partition(|(_, p)| is_one(p));
    let axes = axes.into_iter().map(|(i, _)| i as i64).collect();
    rest.is_sorted_by_key(|(_, p)| **p).then_some(Action::Unsqueeze(source, axes))
}
