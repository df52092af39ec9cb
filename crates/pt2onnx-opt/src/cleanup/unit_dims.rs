//! A transpose that only moves the unit dimensions of the `Unsqueeze` before it.

use super::{NodeView, Rewrite, keepdims::added};

/// `Unsqueeze` of other dimensions instead of both.
pub(super) fn rule(n: &NodeView) -> Option<Rewrite> {
    let node = Some(n.node).filter(|node| node.is("Transpose"))?;
    let inner = n.model.producer(node.input(0)?).filter(|&i| n.model[i].is("Unsqueeze"))?;
    let source = n.model[inner].input(0)?;
    let perm = n.perm()?;
    let ones = added(n.model, inner)?;
    let is_one = |&p: &i64| ones.iter().any(|&a| a as i64 == p);
    let (axes, rest): (Vec<_>, Vec<_>) = perm.iter().enumerate().partition(|(_, p)| is_one(p));
    let axes: Vec<i64> = axes.into_iter().map(|(i, _)| i as i64).collect();
    let sorted = rest.is_sorted_by_key(|(_, p)| **p);
    sorted.then(|| n.become_view("Unsqueeze", source, &axes))
}
