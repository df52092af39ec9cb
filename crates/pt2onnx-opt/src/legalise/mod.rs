//! Legalisation: from the canonical opset down to the one a runtime asks for, exactly or not at all.
//!
//! Every version of an operator is a step. A node takes a step down if the older form accepts it as it is and means
//! the same; else the rule of that operator and step rewrites it; else the model needs a newer opset.

mod activation;
mod attention;
mod normalization;
mod padding;
mod rules;

use crate::rewrite;
use pt2onnx_ir::{
    Attribute, Builder, InsertPoint, Model, Node, NodeId, Value, conforms,
    schema::{self, AttributeDefault, OpSchema},
};
use pt2onnx_symbolic::Constraints;
use rules::When;
use rustc_hash::FxHashMap;
use std::{fmt, ops::RangeInclusive};

/// The opsets that [`legalise`] goes to.
pub const OPSETS: RangeInclusive<u32> = 18..=schema::CANONICAL_OPSET;

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
    #[error(
        "the model needs opset {lowest}, opset {opset} cannot express:{}",
        List(failures)
    )]
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
        for Failure {
            place,
            reason,
            lowest,
        } in self.0
        {
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
    if !OPSETS.contains(&opset) {
        return Err(LegaliseError::Opset(opset));
    }
    if !(opset..=schema::CANONICAL_OPSET).contains(&model.opset) {
        return Err(LegaliseError::Direction {
            from: model.opset,
            to: opset,
        });
    }
    let mut descent = Descent {
        target: opset,
        levels: FxHashMap::default(),
    };
    let mut failures = Vec::new();
    loop {
        let mut again = false;
        for node in model.graph_nodes() {
            if !model.contains(node) || !model[node].domain.is_empty() {
                continue;
            }
            match descent.lower(model, node) {
                Ok(Done::Replaced) => again = true,
                Ok(Done::Kept) => {}
                Err(failure) => failures.push(failure),
            }
        }
        if let Some(lowest) = failures.iter().map(|f| f.lowest).max() {
            return Err(LegaliseError::Nodes {
                opset,
                lowest,
                failures,
            });
        }
        if !again {
            break;
        }
    }
    model.opset = opset;
    Ok(())
}

/// Whether a node means the same in both opsets as it is written: where forms of its operator come and go between them, all of
/// them take it, and what it says has kept its meaning.
pub fn means_the_same(model: &Model, node: NodeId, one: u32, other: u32) -> bool {
    let op = &model[node].op;
    let (low, high) = (one.min(other), one.max(other));
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
            let changed = |r: &&rules::Rule| r.since == step && matches!(r.when, When::Always);
            let kept = !rules::of(op).iter().any(|r| changed(&r));
            kept && fits(model, node, schema::lookup(op, step)).is_ok()
        })
}

/// What became of a node.
enum Done {
    /// It stands, in the form of an older opset.
    Kept,
    /// Other nodes, in the canonical form, do what it did.
    Replaced,
}

struct Descent {
    target: u32,
    /// The opset whose form a node has, where that is not the model's.
    levels: FxHashMap<NodeId, u32>,
}

impl Descent {
    /// Takes one node down, step by step.
    fn lower(&mut self, model: &mut Model, id: NodeId) -> Result<Done, Failure> {
        let op = model[id].op.clone();
        let mut level = self.levels.get(&id).copied().unwrap_or(model.opset);
        let rules = rules::of(&op);
        if rules.is_empty() && fits(model, id, schema::lookup(&op, self.target)).is_ok() {
            return Ok(Done::Kept);
        }
        let newest = level;
        let steps = schema::versions(&op).iter().rev().map(|s| s.since);
        for since in steps.filter(|&s| self.target < s && s <= newest) {
            let failure = |model: &Model, reason: String| Failure {
                place: model.describe(id),
                reason,
                lowest: since,
            };
            let older = schema::lookup(&op, since - 1);
            let rule = rules.iter().find(|r| r.since == since);
            let mut fit = fits(model, id, older);
            if let Some(rule) = rule.filter(|r| matches!(r.when, When::Always) || fit.is_err()) {
                match (rule.apply)(model, id).map_err(|reason| failure(model, reason))? {
                    Done::Replaced => return Ok(Done::Replaced),
                    Done::Kept => fit = fits(model, id, older),
                }
            }
            if fit.is_err()
                && let Some((newer, older)) = schema::lookup(&op, since).zip(older)
            {
                drop_defaults(model, id, newer, older);
                fit = fits(model, id, Some(older));
            }
            fit.map_err(|reason| failure(model, reason))?;
            level = since - 1;
            self.levels.insert(id, level);
        }
        Ok(Done::Kept)
    }
}

/// Whether a node fits an older form of its operator.
fn fits(model: &Model, id: NodeId, schema: Option<&OpSchema>) -> Result<(), String> {
    match schema.filter(|s| !s.deprecated) {
        Some(schema) => conforms(model, &model[id], schema),
        None => Err(format!("there is no {}", model[id].op)),
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
    let made = emit(&cx, &node)?;
    if let Some(fault) = cx.take_faults().first() {
        return Err(fault.to_string());
    }
    drop(cx);
    for (&old, new) in node.outputs().iter().zip(made) {
        if model[new].name.is_none() && model.producer(new).is_some() {
            model[new].name = model[old].name.take();
            model[new].ty = model[old].ty.clone().or(model[new].ty.clone());
        }
        rewrite::substitute(model, old, new);
    }
    model.erase(id);
    Ok(Done::Replaced)
}
