//! A transpose of merged dimensions that are taken apart again behind it: it moves the dimensions themselves.

use super::seen::{Action, Seen};
use crate::facts::known;
use pt2onnx_ir::Attributes;
use pt2onnx_symbolic::Expr;
use std::ops::Range;

/// `Transpose(x)` instead of `Reshape(Transpose(Reshape(x)))`.
pub(super) fn rule(n: &Seen) -> Option<Action> {
    let is_view = |n: &Seen| matches!(n.node.op(), "Reshape" | "Flatten") && !n.checks_sizes();
    let moved = n.node.input(0).filter(|&v| is_view(n) && n.is_used_once(v))?;
    let transpose = n.producer(moved).filter(|t| t.node.is("Transpose"))?;
    let merged = transpose.node.input(0)?;
    let source = n.producer(merged).filter(is_view)?.node.input(0)?;
    let (from, to) = (n.shape(source)?, n.shape(n.output())?);
    let groups = groups(from, n.shape(merged)?)?;
    let order =
        transpose.perm()?.into_iter().map(|p| groups.get(usize::try_from(p).ok()?).cloned());
    let perm: Vec<usize> = order.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    let apart = perm.len() == to.len() && perm.iter().zip(to).all(|(&p, d)| from[p] == *d);
    apart.then(|| {
        let perm: Vec<i64> = perm.into_iter().map(|p| p as i64).collect();
        let attributes = Attributes::from_iter([("perm".into(), perm.into())]);
        Action::Become("Transpose", vec![Some(source)], Box::new(attributes))
    })
}

/// The dimensions that each merged one consists of.
fn groups(from: &[Expr], merged: &[Expr]) -> Option<Vec<Range<usize>>> {
    if !from.iter().chain(merged).all(|d| known(d) && d.as_int() != Some(0)) {
        return None;
    }
    let mut at = 0;
    let mut groups = Vec::new();
    for size in merged {
        let start = at;
        while Expr::product(from[start..at].iter().cloned()) != *size {
            at += 1;
            from.get(at - 1)?;
        }
        groups.push(start..at);
    }
    let ones = from[at..].iter().all(|d| d.as_int() == Some(1));
    groups.last_mut().filter(|_| ones)?.end = from.len();
    Some(groups)
}
