//! Rewrites a model step by step for an older opset.

use super::{
    Rewritten, absent,
    error::{Inexpressible, LegaliseError, Reason},
    exact::{sums, wrapping},
    insert_casts,
    nn::images,
    replace,
    semantics::conforms_to,
    steps::{self, When},
};
use crate::{OPSETS, Target};
use pt2onnx_ir::{
    Model, NodeId, Value, is_possible,
    schema::{self, OpSchema},
};
use pt2onnx_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

const ROUNDS: usize = 100;

/// Rewrites a model for an older opset and sets [`Model::opset`]. Only the main graph is rewritten.
///
/// # Errors
/// All nodes that the opset cannot express, and the lowest opset that can. The model is then partly
/// rewritten and not valid for any opset.
pub fn legalise(model: &mut Model, opset: u32) -> Result<(), LegaliseError> {
    legalise_for(model, opset, Target::Standard)
}

/// As [`legalise`]. Operators that the runtime does not support are also replaced by others, if
/// there is a rule for it.
///
/// # Errors
/// As [`legalise`].
pub fn legalise_for(model: &mut Model, opset: u32, target: Target) -> Result<(), LegaliseError> {
    lower(model, opset, target, schema::CANONICAL_OPSET)
}

/// As [`legalise`], of a model that was written for an opset before it was brought into the
/// canonical form, for a runtime.
///
/// # Errors
/// As [`legalise`].
pub(crate) fn legalise_from(
    model: &mut Model,
    written: u32,
    opset: u32,
    target: Target,
) -> Result<(), LegaliseError> {
    lower(model, opset, target, written)
}

fn lower(model: &mut Model, opset: u32, target: Target, written: u32) -> Result<(), LegaliseError> {
    if !OPSETS.contains(&opset) {
        return Err(LegaliseError::Opset(opset));
    }
    if !(opset..=schema::CANONICAL_OPSET).contains(&model.opset) {
        return Err(LegaliseError::Direction { from: model.opset, to: opset });
    }
    // Rewrites an `Identity` that makes an output, too.
    model.finish_outputs(Model::MAIN);
    let (levels, sums) = (FxHashMap::default(), FxHashSet::default());
    let known = model.all_nodes().iter().map(|n| n.index() + 1).max();
    let mut downgrade =
        Downgrade { opset, written, known: known.unwrap_or_default(), target, levels, sums };
    let mut failures = Vec::new();
    let mut failed = FxHashSet::default();
    for round in 1.. {
        let mut again = false;
        for node in model.nodes_in(&[Model::MAIN]) {
            let concerned = model.contains(node) && model[node].domain.is_empty();
            if !concerned || failed.contains(&node) {
                continue;
            }
            let place = if round == ROUNDS { model.describe(node) } else { String::new() };
            match downgrade.lower(model, node) {
                Ok(Rewritten::InPlace) => {}
                Ok(Rewritten::Surrounded | Rewritten::Replaced) if round < ROUNDS => again = true,
                Ok(Rewritten::Surrounded | Rewritten::Replaced) => {
                    let reason = "its older form is made of nodes that need older forms in turn";
                    let lowest = model.opset;
                    failures.push(Inexpressible { place, reason: reason.to_owned(), lowest });
                }
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
    failures.extend(impossible(model));
    if let Some(lowest) = failures.iter().map(|f| f.lowest).max() {
        return Err(LegaliseError::Nodes { opset, lowest, failures });
    }
    // Removes nodes that one step made and a later step left unused.
    let made = model.nodes_in(&[Model::MAIN]).into_iter().rev();
    for node in made.filter(|n| Some(n.index()) >= known) {
        if model.contains(node) && model.is_unused(node) {
            model.erase(node);
        }
    }
    model.opset = opset;
    Ok(())
}

/// A node with an output of impossible sizes, which an older form would make.
fn impossible(model: &Model) -> Option<Inexpressible> {
    model.nodes_in(&[Model::MAIN]).into_iter().find_map(|node| {
        let outputs = model[node].outputs();
        let wrong =
            outputs.iter().find(|v| model.shape(**v).is_some_and(|sizes| !is_possible(sizes)))?;
        let reason = format!("no tensor is {}", model[*wrong].ty.as_ref()?);
        Some(Inexpressible { place: model.describe(node), reason, lowest: model.opset })
    })
}

struct Downgrade {
    opset: u32,
    /// The opset that the model was written for.
    written: u32,
    /// Nodes below this index were there before.
    known: usize,
    target: Target,
    /// The opset of a node's form where it differs from the model's.
    levels: FxHashMap<NodeId, u32>,
    /// Sums of integers that are exact.
    sums: FxHashSet<Value>,
}

impl Downgrade {
    /// Rewrites one node for the opset; if the runtime does not support its operator, for one
    /// without that operator.
    fn lower(&mut self, model: &mut Model, id: NodeId) -> Result<Rewritten, Inexpressible> {
        // Nodes that cannot be rewritten stay.
        if self.target.is_ort()
            && let Ok(done @ Rewritten::Replaced) =
                wrapping::exact(model, id, self.opset, &mut self.sums)
        {
            return Ok(done);
        }
        if !self.levels.contains_key(&id)
            && let Some(done) = sums::exact(model, id, self.opset, self.target)
        {
            return Ok(done);
        }
        if self.opset < images::DROPPING && self.written >= images::DROPPING {
            images::windows(model, id);
        }
        let Some(&OpSchema { name: op, .. }) = forms(model, id).first() else {
            return Ok(Rewritten::InPlace);
        };
        if self.target.lacks(model, id)
            && let Some(done) = self.replace_lacking(model, id, op)
        {
            return Ok(done);
        }
        self.step_down(model, id, self.opset)
    }

    /// Replaces a node that the runtime does not support by other operators, or by the newest older
    /// form with a rule that leaves nothing that is lacking. Without one, the node stays: `fit`
    /// reports it.
    fn replace_lacking(&mut self, model: &mut Model, id: NodeId, op: &str) -> Option<Rewritten> {
        if let Some(emit) = absent::replacement(op)
            && let Ok(done) = replace(model, id, emit)
        {
            return Some(done);
        }
        if let Some(done) = sums::by_products(model, id, self.target.max_rank()) {
            return Some(done);
        }
        let forms = forms(model, id).iter().rev().map(|form| form.since);
        for since in forms.filter(|&at| steps::at(op, at).is_some_and(|s| s.down.is_some())) {
            let (before, level) = (model[id].clone(), self.levels.get(&id).copied());
            let done = self.step_down(model, id, since - 1);
            if let Ok(done) = done
                && (!model.contains(id) || model[id].op() != op || self.has(model, id))
            {
                return Some(done);
            }
            model.set_inputs(id, before.inputs());
            model[id].attributes = before.attributes;
            match level {
                Some(level) => self.levels.insert(id, level),
                None => self.levels.remove(&id),
            };
        }
        None
    }

    /// Whether the runtime supports a node, which has a form of the opset.
    fn has(&self, model: &Model, id: NodeId) -> bool {
        let form = schema::lookup(model[id].op(), self.opset);
        !self.target.lacks(model, id) && conforms_to(model, id, form).is_ok()
    }

    fn step_down(
        &mut self,
        model: &mut Model,
        id: NodeId,
        opset: u32,
    ) -> Result<Rewritten, Inexpressible> {
        let forms = forms(model, id);
        let newest = self.levels.get(&id).copied().unwrap_or(model.opset);
        let mut done = Rewritten::InPlace;
        let steps = forms.iter().rev().map(|form| (form.name, form.since));
        for (op, since) in steps.filter(|&(_, since)| opset < since && since <= newest) {
            let failure = |model: &Model, reason: String| Inexpressible {
                place: model.describe(id),
                reason,
                lowest: since,
            };
            let older = schema::lookup(op, since - 1);
            let mut fit = conforms_to(model, id, older);
            let step = steps::at(op, since).filter(|step| match step.when {
                When::IfUnsupported => fit.is_err(),
                When::NegativeIndices(input) => {
                    fit.is_err() || !self.counts(model, id, since, input)
                }
                When::Superset | When::Always => true,
            });
            if let Some(down) = step.and_then(|step| step.down) {
                match down.rewrite(model, id).map_err(|Reason(reason)| failure(model, reason))? {
                    Rewritten::Replaced => return Ok(Rewritten::Replaced),
                    Rewritten::Surrounded => done = Rewritten::Surrounded,
                    Rewritten::InPlace => {}
                }
                // The node has another operator now, which has its own steps.
                if model[id].op() != op {
                    self.levels.insert(id, since - 1);
                    return Ok(Rewritten::Surrounded);
                }
                fit = conforms_to(model, id, older);
            }
            if fit.is_err()
                && let Some((newer, older)) = schema::lookup(op, since).zip(older)
            {
                drop_defaults(model, id, newer, older);
                fit = conforms_to(model, id, Some(older));
                if fit.is_err() && insert_casts::casts(model, id, older) {
                    done = Rewritten::Surrounded;
                    fit = conforms_to(model, id, Some(older));
                }
            }
            fit.map_err(|reason| failure(model, reason))?;
            self.levels.insert(id, since - 1);
        }
        Ok(done)
    }

    /// Whether a node was written in the older form, so that its computed indices are of that form.
    fn counts(&self, model: &Model, id: NodeId, since: u32, input: usize) -> bool {
        let computed = |v: Value| model[v].constant().is_none();
        self.written < since
            && id.index() < self.known
            && model[id].input(input).is_some_and(computed)
    }
}

fn forms(model: &Model, id: NodeId) -> &'static [OpSchema] {
    schema::versions(model[id].op())
}

fn drop_defaults(model: &mut Model, id: NodeId, newer: &OpSchema, older: &OpSchema) {
    model[id].attributes.retain(|(name, value)| {
        let default = newer.attribute(name).and_then(|a| a.default.as_ref());
        older.attribute(name).is_some()
            || !default.is_some_and(|d| value.equals(&d.into(), Tensor::same))
    });
}
