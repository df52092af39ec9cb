//! `Expand`, and other shapes of one element, before an operator that broadcasts by itself.

use super::{NodeView, Rewrite, known};
use pt2onnx_ir::{Shape, Traits, Value};

/// The operator takes the operand of `Expand`, or the element that is reshaped, if the result has
/// the same sizes then.
pub(super) fn rule(n: &NodeView) -> Option<Rewrite> {
    let narrow = |v: Value| {
        let made = n.producer(v)?;
        let x = made.node.input(0)?;
        let single = || n.shape(x).is_some_and(|s| s.iter().all(|d| d.as_int() == Some(1)));
        let shaped = made.node.is("Reshape") || made.node.is("Squeeze");
        (made.node.is("Expand") || shaped && single()).then_some(x)
    };
    if !n.node.traits().contains(Traits::BROADCASTING) {
        return None;
    }
    n.node.inputs().iter().enumerate().find_map(|(i, v)| {
        let narrow = narrow((*v)?)?;
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
    }) && shapes.iter().map(|s| s.len()).max() == Some(whole.len())
}
