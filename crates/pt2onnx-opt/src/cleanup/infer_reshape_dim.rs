//! A `Reshape` with one computed size that is not known: -1 infers it.

use super::{NodeView, Rewrite};
use crate::analysis;
use pt2onnx_ir::Value;

/// `Reshape` to `[4, -1]` instead of `Concat([4], size)`. Any other size would not fit the number
/// of elements, and a 0 that copies a size copies the one that is left.
pub(super) fn rule(n: &NodeView) -> Option<Rewrite> {
    let target = n.node.input(1).filter(|_| n.node.is("Reshape") && !n.checks_sizes())?;
    if n.model[target].constant().is_some() {
        return None;
    }
    let concat = n.producer(target).filter(|made| made.node.is("Concat"));
    let parts: Vec<Value> = match &concat {
        Some(concat) => concat.node.inputs().iter().copied().collect::<Option<_>>()?,
        None => vec![target],
    };
    let mut sizes = Vec::new();
    for part in parts {
        match n.model[part].constant() {
            Some(known) => sizes.extend(known.to_vec::<i64>()?),
            None => {
                let chosen = analysis::are_chosen(n.model, part);
                let one = n.model.shape(part)?;
                let single = one.len() == 1 && one[0].as_int() == Some(1);
                if !single || chosen {
                    return None;
                }
                sizes.push(-1);
            }
        }
    }
    let others = sizes.iter().filter(|&&s| s > 0).count();
    let x = n.node.input(0)?;
    (others + 1 == sizes.len()).then(|| n.become_view("Reshape", x, &sizes))
}
