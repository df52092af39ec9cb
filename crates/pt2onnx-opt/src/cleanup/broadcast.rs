//! `Expand` before an operator that broadcasts by itself.

use super::{NodeView, Rewrite, known};
use pt2onnx_ir::{Shape, Traits, Value};

/// The operator takes the operand of `Expand`, if the result has the same sizes then.
pub(super) fn rule(n: &NodeView) -> Option<Rewrite> {
    let expand = |v: Value| n.producer(v).filter(|p| p.node.is("Expand"))?.node.input(0);
    if !n.node.traits().contains(Traits::BROADCASTING) {
        return None;
    }
    n.node.inputs().iter().enumerate().find_map(|(i, v)| {
        let narrow = expand((*v)?)?;
        let mut taken = n.node.inputs().to_vec();
        taken[i] = Some(narrow);
        let shapes = taken.iter().map(|v| n.shape((*v)?)).collect::<Option<Vec<_>>>()?;
        covers(&shapes, n.shape(n.output())?).then(|| n.set_input(i, narrow))
    })
}

fn covers(shapes: &[&Shape], whole: &Shape) -> bool {
    (0..whole.len()).all(|from_end| {
        let dim = |s: &Shape| s.len().checked_sub(from_end + 1).and_then(|i| s.get(i).cloned());
        let Some(wanted) = dim(whole) else { return false };
        wanted.as_int() == Some(1)
            || known(&wanted) && shapes.iter().any(|s| dim(s).as_ref() == Some(&wanted))
    }) && shapes.iter().any(|s| s.len() == whole.len())
}
