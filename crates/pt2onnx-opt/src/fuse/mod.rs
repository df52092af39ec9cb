//! Fusions: several nodes that one operator of ONNX does.
//!
//! A [`Fusion`] is a pattern and what takes its place. It happens only where the opset that is written has that
//! operator, and where nothing else needs what the nodes in between make: no fusion makes a model larger.

mod activation;
mod attention;
mod batch_norm;
mod linear;
mod multi_head;
mod normalization;
mod padding;
mod pattern;
mod rotary;

pub(crate) use activation::{CLIP, GELU, HARD_SWISH};
pub(crate) use attention::{ATTENTION, cache};
pub(crate) use batch_norm::BATCH_NORM;
pub(crate) use linear::GEMM;
pub(crate) use multi_head::MULTI_HEAD;
pub(crate) use normalization::{INSTANCE_NORM, LAYER_NORM, RMS_NORM};
pub(crate) use padding::PAD;
pub(crate) use rotary::ROTARY;

use crate::{Changed, Options, aside};
use pattern::{Found, Pattern};
use pt2onnx_ir::{
    Attribute, Builder, InsertPoint, Model, Node, NodeId, OpSet, OriginId, Value, conforms, schema,
};
use pt2onnx_symbolic::{Constraints, Expr};
use smallvec::SmallVec;

/// Nodes and what takes their place.
pub(crate) struct Fusion {
    /// The lowest opset whose operators say it.
    pub since: u32,
    /// What is looked for, each with what it becomes.
    pub rules: &'static [Rule],
}

/// A pattern and its rewrite.
pub(crate) struct Rule {
    /// See [`pattern`].
    pub pattern: &'static str,
    /// What takes the place of the pattern's last output, of the same type; `None` where a precondition does not hold.
    pub rewrite: fn(&Builder, &Seen) -> Option<Value>,
}

/// What a rewrite sees of the nodes that were found.
pub(crate) struct Seen<'a> {
    found: &'a Found,
    /// The last node's output.
    output: Value,
}

impl Seen<'_> {
    /// The value that the pattern gives a name.
    fn value(&self, name: &str) -> Option<Value> {
        self.found.get(name)
    }

    /// A copy of the node that makes the value of that name.
    fn node(&self, cx: &Builder, name: &str) -> Option<Node> {
        let model = cx.model();
        Some(model[model.producer(self.value(name)?)?].clone())
    }

    /// The number that a float constant has as its only element.
    fn number(&self, cx: &Builder, name: &str) -> Option<f64> {
        let number = pattern::number_of(&cx.model(), self.value(name)?);
        number.map(|(_, n)| n)
    }

    /// Whether the last output has surely the sizes of the value: no operand is broadcast beyond it.
    fn keeps_shape(&self, cx: &Builder, value: Value) -> bool {
        let shapes = cx.known_shape(value).zip(cx.known_shape(self.output));
        shapes.is_some_and(|(a, b)| a == b && a.iter().all(crate::cleanup::known))
    }
}

/// `x` broadcast to sizes, which may be known at run time only: then they come from the graph's inputs.
fn expanded(cx: &Builder, x: Value, sizes: &[Expr]) -> Value {
    if sizes.iter().any(|s| !s.is_static()) {
        let inputs = cx.model().inputs().to_vec();
        inputs.into_iter().for_each(|input| cx.bind_dims(input));
    }
    cx.expand(x, sizes)
}

/// The float attribute, else its default.
fn float(node: &Node, name: &str, default: f32) -> f32 {
    match node.attribute(name) {
        Some(Attribute::Float(f)) => *f,
        _ => default,
    }
}

/// The list attribute, if given.
fn ints<'a>(node: &'a Node, name: &str) -> Option<&'a [i64]> {
    match node.attribute(name)? {
        Attribute::Ints(list) => Some(list),
        _ => None,
    }
}

pub(crate) fn run(model: &mut Model, options: &Options, fusion: &Fusion) -> Changed {
    if fusion.since > options.opset.min(model.opset) {
        return false;
    }
    let rules: Vec<(Vec<&str>, Pattern, &Rule)> = fusion
        .rules
        .iter()
        .filter_map(|rule| {
            let pattern = Pattern::parse(rule.pattern)?;
            Some((pattern.ends(), pattern, rule))
        })
        .collect();
    let ends: OpSet = rules.iter().flat_map(|r| &r.0).copied().collect();
    let mut changed = false;
    for id in model.graph_nodes() {
        if !model.may_be(id, ends) || !model[id].domain.is_empty() {
            continue;
        }
        let candidates = rules.iter().filter(|r| r.0.contains(&model[id].op()));
        let matches: Vec<_> = candidates
            .filter_map(|(_, pattern, rule)| Some((pattern.find(model, id)?, *rule)))
            .collect();
        changed |= matches.into_iter().any(|(found, rule)| apply(model, id, &found, rule));
    }
    changed
}

/// Puts what the rule makes in the place of what was found.
fn apply(model: &mut Model, last: NodeId, found: &Found, rule: &Rule) -> Changed {
    // The last node's first: it is their result that is made.
    let mut origins: SmallVec<[OriginId; 1]> = SmallVec::new();
    for &node in &found.nodes {
        for origin in &model[node].origins {
            if !origins.contains(origin) {
                origins.push(*origin);
            }
        }
    }
    let before = model.prev(last);
    let output = model[last].outputs()[0];
    let cx = Builder::new(model, InsertPoint::Before(last), Constraints::default());
    cx.set_origins(&origins);
    let made = (rule.rewrite)(&cx, &Seen { found, output });
    let sound = cx.take_diagnostics().is_empty();
    drop(cx);
    let new = new_nodes(model, before, last);
    let Some(value) = made.filter(|_| sound && new.iter().all(|&n| legal(model, n))) else {
        for node in new.into_iter().rev() {
            model.erase(node);
        }
        return false;
    };
    if model[value].name.is_none() && model.producer(value).is_some() {
        model[value].name = model[output].name.take();
        model[value].ty = model[output].ty.clone();
    }
    model.replace_all_uses(output, value);
    // Those that several of the others use go after them.
    while found.nodes.iter().any(|&n| model.contains(n) && model.erase(n)) {}
    true
}

/// The nodes between two neighbours of before.
fn new_nodes(model: &Model, before: Option<NodeId>, last: NodeId) -> Vec<NodeId> {
    let mut new: Vec<NodeId> = std::iter::successors(model.prev(last), |&n| model.prev(n))
        .take_while(|&n| Some(n) != before)
        .collect();
    new.reverse();
    new
}

/// Whether a node has the form of the model's opset: rewrites write the newest. Other domains have none.
fn legal(model: &Model, id: NodeId) -> bool {
    let node = &model[id];
    let schema = schema::lookup(node.op(), model.opset);
    let fits = schema.is_some_and(|s| conforms(model, node, s).is_ok());
    !node.domain.is_empty() || fits && aside::holds_in(model, id, model.opset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_are_read() {
        for fusion in [
            &ATTENTION,
            &BATCH_NORM,
            &CLIP,
            &GELU,
            &GEMM,
            &HARD_SWISH,
            &LAYER_NORM,
            &MULTI_HEAD,
            &PAD,
            &RMS_NORM,
            &ROTARY,
        ] {
            for rule in fusion.rules {
                assert!(Pattern::parse(rule.pattern).is_some(), "{}", rule.pattern);
            }
        }
    }
}
