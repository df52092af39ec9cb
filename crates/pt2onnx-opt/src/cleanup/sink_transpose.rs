//! Sinks a transpose or reshape through element-wise nodes to another one behind them.

use super::{NodeView, Rewrite, chain};
use crate::rewrite::NodeEdit;
use pt2onnx_ir::{Traits, Value};

/// At most this many nodes are between the two.
const FAR: usize = 16;

pub(super) fn rule(n: &NodeView) -> Option<Rewrite> {
    if !(n.node.is("Transpose") || n.node.traits().contains(Traits::SHAPE_ONLY)) {
        return None;
    }
    let mut value = n.node.input(0)?;
    let mut between = Vec::new();
    loop {
        let made = n.producer(value).filter(|_| n.is_used_once(value) && between.len() < FAR)?;
        if let Some(&last) = between.first()
            && let Some(mut rewrite) = chain::moves(n, &made, last)
        {
            let source = made.node.input(0)?;
            rewrite.nodes.insert(0, (n.id, NodeEdit::Commute { between, source }));
            return Some(rewrite);
        }
        between.push(value);
        value = operand(&made)?;
    }
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
