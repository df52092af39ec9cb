//! Two transposes with nodes between them that compute element by element: the first one moves to the second one.

use super::seen::{Action, Seen};
use crate::elementwise::{is_broadcasting, is_unary};
use pt2onnx_ir::Value;

/// At most this many nodes are between the two.
const FAR: usize = 16;

pub(super) fn rule(n: &Seen) -> Option<Action> {
    let outer = Some(n).filter(|n| n.node.is("Transpose"))?.perm()?;
    let mut value = n.node.input(0)?;
    let mut between = Vec::new();
    loop {
        let made = n.producer(value).filter(|_| n.is_used_once(value) && between.len() < FAR)?;
        if made.node.is("Transpose") {
            let inner = made.perm()?;
            let joined = outer.iter().map(|&p| inner.get(usize::try_from(p).ok()?).copied());
            let joined = joined.collect::<Option<Vec<i64>>>()?;
            let source = made.node.input(0)?;
            return (!between.is_empty()).then_some(Action::Meet(between, source, joined));
        }
        between.push(value);
        value = operand(&made)?;
    }
}

/// The operand of a node that computes element by element.
fn operand(n: &Seen) -> Option<Value> {
    let op = n.node.op();
    if is_unary(op) {
        return n.node.input(0);
    }
    let number = |v: Value| n.model[v].constant().is_some_and(|t| t.numel() == 1 && t.rank() == 0);
    let (a, b) = (n.node.input(0)?, n.node.input(1)?);
    match is_broadcasting(op) && n.node.inputs().len() == 2 {
        true if number(b) => Some(a),
        true if number(a) => Some(b),
        _ => None,
    }
}
