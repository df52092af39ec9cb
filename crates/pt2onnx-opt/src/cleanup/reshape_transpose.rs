//! A transpose of merged dimensions that are taken apart again behind it, or of new dimensions that
//! are removed behind it: it moves the dimensions themselves.

use super::{NodeView, Rewrite, eval};
use crate::analysis;
use pt2onnx_ir::Attributes;

pub(super) fn rule(n: &NodeView) -> Option<Rewrite> {
    apart(n).or_else(|| removed(n))
}

/// `Transpose(x)` instead of `Reshape(Transpose(Reshape(x)))`.
fn apart(n: &NodeView) -> Option<Rewrite> {
    let is_view = |n: &NodeView| matches!(n.node.op(), "Reshape" | "Flatten") && !n.checks_sizes();
    let moved = n.node.input(0).filter(|&v| is_view(n) && n.is_used_once(v))?;
    let transpose = n.producer(moved).filter(|t| t.node.is("Transpose"))?;
    let merged = transpose.node.input(0)?;
    let source = n.producer(merged).filter(is_view)?.node.input(0)?;
    let (from, to) = (n.shape(source)?, n.shape(n.output())?);
    let groups = analysis::merged(from, n.shape(merged)?)?;
    let order =
        transpose.perm()?.into_iter().map(|p| groups.get(usize::try_from(p).ok()?).cloned());
    let perm: Vec<usize> = order.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    let apart = perm.len() == to.len() && perm.iter().zip(to).all(|(&p, d)| from[p] == *d);
    apart.then(|| {
        let perm: Vec<i64> = perm.into_iter().map(|p| p as i64).collect();
        let attributes = Attributes::from_iter([("perm".into(), perm.into())]);
        n.become_op("Transpose", [source], attributes)
    })
}

/// `Transpose(x)` instead of `Squeeze(Transpose(Unsqueeze(x)))`.
fn removed(n: &NodeView) -> Option<Rewrite> {
    let moved = n.node.input(0).filter(|&v| n.node.is("Squeeze") && n.is_used_once(v))?;
    let transpose = n.producer(moved).filter(|t| t.node.is("Transpose"))?;
    let new = transpose.node.input(0).filter(|&v| n.is_used_once(v))?;
    let unsqueeze = n.producer(new).filter(|u| u.node.is("Unsqueeze"))?;
    let perm: Vec<usize> =
        transpose.perm()?.into_iter().map(|p| usize::try_from(p).ok()).collect::<Option<_>>()?;
    let axes = |s: &NodeView| {
        s.ints(1)?.iter().map(|&a| eval::axis(a, perm.len())).collect::<Option<Vec<usize>>>()
    };
    let (gone, mut added) = (axes(n)?, axes(&unsqueeze)?);
    let mut same = gone.iter().map(|&i| perm.get(i).copied()).collect::<Option<Vec<usize>>>()?;
    added.sort_unstable();
    same.sort_unstable();
    if same != added {
        return None;
    }
    let own = |p: usize| (p - added.iter().filter(|&&a| a < p).count()) as i64;
    let left = perm.iter().enumerate().filter(|(i, _)| !gone.contains(i));
    let perm: Vec<i64> = left.map(|(_, &p)| own(p)).collect();
    let attributes = Attributes::from_iter([("perm".into(), perm.into())]);
    Some(n.become_op("Transpose", [unsqueeze.node.input(0)], attributes))
}
