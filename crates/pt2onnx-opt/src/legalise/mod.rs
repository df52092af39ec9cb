//! Legalisation: from the canonical opset down to the one a runtime asks for, exactly or not at all.
//!
//! Every version of an operator is a step. A node takes a step down if the older form accepts it as it is and means
//! the same; else the rule of that operator and step rewrites it; else the model needs a newer opset.

mod activation;
mod attention;
mod axes;
mod bits;
mod bridge;
mod comparison;
mod einsum;
mod forms;
mod images;
mod indexing;
mod integers;
mod loss;
mod normalization;
mod padding;
mod quantization;
mod random;
mod resample;
mod rotary;
mod rules;
mod running;
mod scatter;
mod shapes;
mod signal;
mod slicing;
mod sorting;
#[cfg(test)]
mod steps;

use crate::Target;
use pt2onnx_ir::{
    Attribute, Builder, InsertPoint, Model, Node, NodeId, Value, conforms,
    schema::{self, AttributeDefault, OpSchema},
};
use pt2onnx_symbolic::Constraints;
use rules::When;
use rustc_hash::{FxHashMap, FxHashSet};
use std::{fmt, ops::RangeInclusive};

/// The opsets that [`legalise`] goes to.
pub const OPSETS: RangeInclusive<u32> = 9..=schema::CANONICAL_OPSET;

/// Why a model cannot be taken to an opset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LegaliseError {
    /// The opset is not one that this version writes.
    #[error("opset {0} is not supported: it must be one of {first} to {last}", first = OPSETS.start(), last = OPSETS.end())]
    Opset(u32),
    /// The model is for a newer opset than the canonical one, or for an older one than it is asked to become.
    #[error("a model of opset {from} cannot be taken to opset {to}")]
    Direction {
        /// The model's opset.
        from: u32,
        /// The opset asked for.
        to: u32,
    },
    /// Some nodes have no form at that opset.
    #[error("the model needs opset {lowest}, opset {opset} cannot express:{}", List(failures))]
    Nodes {
        /// The opset asked for.
        opset: u32,
        /// The lowest opset that works.
        lowest: u32,
        /// Every node in the way.
        failures: Vec<Failure>,
    },
}

/// A node that an opset cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The node, with the source line it comes from if that is known.
    pub place: String,
    /// What is in the way.
    pub reason: String,
    /// The lowest opset that has it.
    pub lowest: u32,
}

struct List<'a>(&'a [Failure]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Failure { place, reason, lowest } in self.0 {
            write!(f, "\n  {place}: {reason} (opset {lowest} can)")?;
        }
        Ok(())
    }
}

/// Takes a model down to `opset` and sets [`Model::opset`].
///
/// # Errors
/// Every node that has no form there, and the lowest opset that would do. The model is then in no opset's form: throw
/// it away.
pub fn legalise(model: &mut Model, opset: u32) -> Result<(), LegaliseError> {
    legalise_for(model, opset, Target::Standard)
}

/// As [`legalise`]; operators that the runtime lacks are put together from others as well, where there is a rule for it.
///
/// # Errors
/// As [`legalise`].
pub fn legalise_for(model: &mut Model, opset: u32, target: Target) -> Result<(), LegaliseError> {
    if !OPSETS.contains(&opset) {
        return Err(LegaliseError::Opset(opset));
    }
    if !(opset..=schema::CANONICAL_OPSET).contains(&model.opset) {
        return Err(LegaliseError::Direction { from: model.opset, to: opset });
    }
    let mut descent = Descent { opset, target, levels: FxHashMap::default() };
    let mut failures = Vec::new();
    let mut failed = FxHashSet::default();
    let known = model.all_nodes().iter().map(|n| n.index() + 1).max();
    loop {
        let mut again = false;
        for node in model.graph_nodes() {
            let concerned = model.contains(node) && model[node].domain.is_empty();
            if !concerned || failed.contains(&node) {
                continue;
            }
            match descent.lower(model, node) {
                Ok(Done::Kept) => {}
                Ok(Done::Fed | Done::Replaced) => again = true,
                Err(failure) => {
                    failed.insert(node);
                    failures.push(failure);
                }
            }
        }
        if !again {
            break;
        }
    }
    if let Some(lowest) = failures.iter().map(|f| f.lowest).max() {
        return Err(LegaliseError::Nodes { opset, lowest, failures });
    }
    // What was made for a step, and another step did without.
    let made = model.graph_nodes().into_iter().rev();
    for node in made.filter(|n| Some(n.index()) >= known) {
        if model.contains(node) && model.is_unused(node) {
            model.erase(node);
        }
    }
    model.opset = opset;
    Ok(())
}

/// Whether a node that was written for opset `written` means the same in `other`: where forms of its operator come and go
/// between them, all of them take it, and what it says has kept its meaning.
pub fn means_the_same(model: &Model, node: NodeId, written: u32, other: u32) -> bool {
    let op = model[node].op();
    let (low, high) = (written.min(other), written.max(other));
    let since = |opset| schema::lookup(op, opset).map(|s| s.since);
    if !model[node].domain.is_empty() || (since(low).is_some() && since(low) == since(high)) {
        return true;
    }
    let steps = schema::versions(op).iter().map(|s| s.since);
    let mut between = steps.filter(|s| (low + 1..=high).contains(s));
    // What changed before the oldest opset that is written, no rule tells.
    low >= *OPSETS.start()
        && fits(model, node, schema::lookup(op, low)).is_ok()
        && between.all(|step| {
            let kept = rules::at(op, step).is_none_or(|r| match r.when {
                When::Needed => true,
                When::Wider => written == low,
                When::Always => false,
            });
            kept && fits(model, node, schema::lookup(op, step)).is_ok()
        })
}

/// What became of a node.
enum Done {
    /// It stands, in the form of an older opset.
    Kept,
    /// It stands so, and other nodes, in the canonical form, feed it or take what it gives.
    Fed,
    /// Other nodes, in the canonical form, do what it did.
    Replaced,
}

struct Descent {
    opset: u32,
    target: Target,
    /// The opset whose form a node has, where that is not the model's.
    levels: FxHashMap<NodeId, u32>,
}

impl Descent {
    /// Takes one node down to the opset, or below where the runtime lacks its operator.
    fn lower(&mut self, model: &mut Model, id: NodeId) -> Result<Done, Failure> {
        let op = model[id].op().to_owned();
        let first = schema::versions(&op).first().map_or(0, |s| s.since);
        let without = rules::at(&op, first).is_some() && self.target.lacks(model, id);
        if without {
            let (before, level) = (model[id].clone(), self.levels.get(&id).copied());
            let done = self.descend(model, id, first - 1);
            if let Ok(done) = done
                && (!model.contains(id) || model[id].op() != op)
            {
                return Ok(done);
            }
            // The runtime's pass tells what is in the way.
            model.set_inputs(id, before.inputs());
            model[id].attributes = before.attributes;
            match level {
                Some(level) => self.levels.insert(id, level),
                None => self.levels.remove(&id),
            };
        }
        self.descend(model, id, self.opset)
    }

    /// Takes one node down, step by step.
    fn descend(&mut self, model: &mut Model, id: NodeId, opset: u32) -> Result<Done, Failure> {
        let op = model[id].op().to_owned();
        let newest = self.levels.get(&id).copied().unwrap_or(model.opset);
        let mut done = Done::Kept;
        let steps = schema::versions(&op).iter().rev().map(|s| s.since);
        for since in steps.filter(|&s| opset < s && s <= newest) {
            let failure = |model: &Model, reason: String| Failure {
                place: model.describe(id),
                reason,
                lowest: since,
            };
            let older = schema::lookup(&op, since - 1);
            let mut fit = fits(model, id, older);
            let rule = rules::at(&op, since);
            if let Some(rule) = rule.filter(|r| !matches!(r.when, When::Needed) || fit.is_err()) {
                match (rule.apply)(model, id).map_err(|reason| failure(model, reason))? {
                    Done::Replaced => return Ok(Done::Replaced),
                    Done::Fed => done = Done::Fed,
                    Done::Kept => {}
                }
                // As another operator, which has steps of its own.
                if model[id].op() != op {
                    self.levels.insert(id, since - 1);
                    return Ok(Done::Fed);
                }
                fit = fits(model, id, older);
            }
            if fit.is_err()
                && let Some((newer, older)) = schema::lookup(&op, since).zip(older)
            {
                drop_defaults(model, id, newer, older);
                fit = fits(model, id, Some(older));
                if fit.is_err() && bridge::casts(model, id, older) {
                    done = Done::Fed;
                    fit = fits(model, id, Some(older));
                }
            }
            fit.map_err(|reason| failure(model, reason))?;
            self.levels.insert(id, since - 1);
        }
        Ok(done)
    }
}

/// Whether a node fits an older form of its operator.
fn fits(model: &Model, id: NodeId, schema: Option<&OpSchema>) -> Result<(), String> {
    match schema.filter(|s| !s.deprecated) {
        Some(schema) => conforms(model, &model[id], schema),
        None => Err(format!("there is no {}", model[id].op())),
    }
}

/// Takes away attributes that `older` lacks, where they say what holds without them.
fn drop_defaults(model: &mut Model, id: NodeId, newer: &OpSchema, older: &OpSchema) {
    model[id].attributes.retain(|(name, value)| {
        let default = newer.attribute(name).and_then(|a| a.default.as_ref());
        older.attribute(name).is_some() || !default.is_some_and(|d| says(value, d))
    });
}

fn says(value: &Attribute, default: &AttributeDefault) -> bool {
    match (value, default) {
        (Attribute::Int(a), AttributeDefault::Int(b)) => a == b,
        (Attribute::Float(a), AttributeDefault::Float(b)) => a.to_bits() == b.to_bits(),
        (Attribute::String(a), AttributeDefault::String(b)) => a == b,
        (Attribute::Ints(a), AttributeDefault::Ints(b)) => a == b,
        (Attribute::Floats(a), AttributeDefault::Floats(b)) => a == b,
        _ => false,
    }
}

/// Replaces a node by what `emit` builds in its place: one value for each of its outputs, in the canonical form.
fn replace(
    model: &mut Model,
    id: NodeId,
    emit: impl FnOnce(&Builder, &Node) -> Result<Vec<Value>, String>,
) -> Result<Done, String> {
    let node = model[id].clone();
    let cx = Builder::new(model, InsertPoint::Before(id), Constraints::default());
    cx.set_origins(&node.origins);
    for value in node.inputs().iter().flatten() {
        cx.bind_dims(*value);
    }
    let made = emit(&cx, &node)?;
    if let Some(fault) = cx.take_diagnostics().first() {
        return Err(fault.to_string());
    }
    drop(cx);
    for (&old, new) in node.outputs().iter().zip(made) {
        if model[new].name.is_none() && model.producer(new).is_some() {
            model[new].name = model[old].name.take();
            model[new].ty = model[old].ty.clone().or(model[new].ty.clone());
        }
        model.replace_all_uses(old, new);
    }
    match model.erase(id) {
        true => Ok(Done::Replaced),
        false => Err("not all of its outputs have an older form".to_owned()),
    }
}
