//! Sinks a transpose or reshape through element-wise nodes to another one behind them, and
//! transposes that leave the last dimension also through its normalizations.

use super::{NodeView, Rewrite, chain};
use crate::rewrite::NodeEdit;
use pt2onnx_ir::{Traits, Value, attrs};

/// At most this many nodes are between the two.
const FAR: usize = 16;

pub(super) fn rule(n: &NodeView) -> Option<Rewrite> {
    if !(n.node.is("Transpose") || n.node.traits().contains(Traits::SHAPE_ONLY)) {
        return None;
    }
    let mut value = n.node.input(0)?;
    let mut between = Vec::new();
    let mut normalised = false;
    loop {
        let made = n.producer(value).filter(|_| n.is_used_once(value) && between.len() < FAR)?;
        if let Some(&last) = between.first()
            && (!normalised || leaves_last(&made))
            && let Some(mut rewrite) = chain::moves(n, &made, last)
        {
            let source = made.node.input(0)?;
            rewrite.nodes.insert(0, (n.id, NodeEdit::Commute { between, source }));
            return Some(rewrite);
        }
        between.push(value);
        let elementwise = operand(&made);
        normalised |= elementwise.is_none();
        value = elementwise.or_else(|| {
            let last = leaves_last(n) && normalises_last(&made);
            last.then(|| made.node.input(0))?
        })?;
    }
}

/// Whether it is a `Transpose` that does not move the last dimension.
fn leaves_last(n: &NodeView) -> bool {
    let last = |perm: Vec<i64>| perm.last() == Some(&(perm.len() as i64 - 1));
    n.node.is("Transpose") && n.perm().is_some_and(last)
}

/// Whether it normalises the last dimension, and computes nothing else.
fn normalises_last(n: &NodeView) -> bool {
    let axis = match n.node.op() {
        "LayerNormalization" => attrs::LayerNormalization::read(n.node).map(|a| a.axis),
        "RMSNormalization" => attrs::RMSNormalization::read(n.node).map(|a| a.axis),
        _ => return false,
    };
    let vector = |v: &Value| n.shape(*v).is_some_and(|shape| shape.len() == 1);
    let weights = n.node.inputs().iter().skip(1).flatten().all(vector);
    axis.is_ok_and(|axis| axis == -1) && weights && n.node.outputs().len() == 1
}

/// The operand of a node that computes element by element.
fn operand(n: &NodeView) -> Option<Value> {
    let traits = n.node.traits();
    if traits.contains(Traits::ELEMENTWISE) && !traits.contains(Traits::BROADCASTING) {
        return n.node.input(0);
    }
    let number = |v: Value| n.model[v].constant().is_some_and(|t| t.numel() == 1 && t.rank() == 0);
    let (a, b) = (n.node.input(0)?, n.node.input(1)?);
    match traits.contains(Traits::NARY) && n.node.inputs().len() == 2 {
        true if number(b) => Some(a),
        true if number(a) => Some(b),
        _ => None,
    }
}
