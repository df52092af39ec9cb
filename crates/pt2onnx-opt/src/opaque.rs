//! Opaque nodes: in models of any opset, nodes that mean something else in the canonical form.
//!
//! Passes know each operator in its canonical form. While they run, other nodes are in a separate
//! domain, so that no pass mistakes them.

use crate::{
    GraphMut, OPTIMISED_OPSETS,
    legalise::{Inexpressible, means_the_same, upgrade},
};
use pt2onnx_ir::{
    Attribute, FunctionIndex, Model, Node, NodeId, RegionId,
    schema::{self, CANONICAL_OPSET},
};
use rustc_hash::FxHashSet;
use std::{borrow::Cow, ops::RangeInclusive};

/// The domain of opaque nodes.
const DOMAIN: &str = "pt2onnx.opaque";

pub(crate) fn is_opaque(node: &Node) -> bool {
    node.domain == DOMAIN
}

/// Calls `work` with the main graph and then with each function's body. Graphs of other than the
/// [`OPTIMISED_OPSETS`] are left out.
pub(crate) fn each_graph(model: &mut Model, work: impl FnMut(&mut GraphMut<'_>)) {
    each_graph_of(&OPTIMISED_OPSETS, model, work);
}

/// As [`each_graph`], for graphs of these opsets.
pub(crate) fn each_graph_of(
    opsets: &RangeInclusive<u32>,
    model: &mut Model,
    mut work: impl FnMut(&mut GraphMut<'_>),
) {
    let mut graphs = vec![(Model::MAIN, model.opset)];
    graphs.extend(model.functions.iter().map(|f| {
        let own = f.imports.get("").copied();
        let opset = own.unwrap_or(if f.imports.is_empty() { model.opset } else { 0 });
        (f.body, opset)
    }));
    graphs.retain(|(_, opset)| opsets.contains(opset));
    let mut hidden = false;
    let functions = model.function_index();
    for &(region, opset) in &graphs {
        hidden |= hide(model, &functions, region, opset);
    }
    let imported = hidden && model.imports.insert(DOMAIN.to_owned(), 1).is_none();
    for (region, opset) in graphs {
        work(&mut GraphMut::of(model, region, opset));
    }
    if imported {
        model.imports.shift_remove(DOMAIN);
    }
    if hidden {
        for id in model.all_nodes() {
            if is_opaque(&model[id]) {
                model[id].domain = Cow::Borrowed("");
            }
        }
    }
}

/// How opaque nodes become nodes of the canonical form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raising {
    /// The opset that they were written for.
    pub written: u32,
    /// Whether only those are taken that legalisation can make the older ones again.
    pub alike: bool,
}

/// Makes an opaque node one of the canonical form, if it is not in the body of an opaque node.
pub(crate) fn raise(model: &mut Model, id: NodeId, raising: Raising) {
    if !is_opaque(&model[id]) {
        return;
    }
    model[id].domain = Cow::Borrowed("");
    // The model's claims about the outputs do not apply to nodes that replace this one.
    let outputs = model[id].outputs().to_vec();
    let claims: Vec<_> = outputs.iter().map(|&v| model[v].ty.take()).collect();
    if upgrade(model, id, raising.written, raising.alike).is_err() {
        model[id].domain = Cow::Borrowed(DOMAIN);
    }
    if model.contains(id) {
        outputs.into_iter().zip(claims).for_each(|(v, claim)| model[v].ty = claim);
    }
}

/// The opaque nodes of a graph, and why each has no canonical form.
pub(crate) fn failures(graph: &mut GraphMut<'_>, written: u32) -> Vec<Inexpressible> {
    let model = &mut *graph.model;
    let mut failures = Vec::new();
    for id in model.nodes_in(&[graph.region]) {
        // Operators that ONNX never had are the same at each opset.
        if !is_opaque(&model[id]) || schema::versions(model[id].op()).is_empty() {
            continue;
        }
        model[id].domain = Cow::Borrowed("");
        let reason = upgrade(model, id, written, false).err();
        let reason = reason.unwrap_or_else(|| "it is in the body of such a node".to_owned());
        failures.push(Inexpressible { place: model.describe(id), reason, lowest: written });
        model[id].domain = Cow::Borrowed(DOMAIN);
    }
    failures
}

/// Makes nodes opaque; returns whether there are any. The bodies of an opaque node stay unchanged:
/// only the node knows whether they may use values of the graph around it.
fn hide(model: &mut Model, functions: &FunctionIndex, region: RegionId, opset: u32) -> bool {
    let (mut any, mut bodies) = (false, FxHashSet::default());
    for id in model.nodes_in(&[region]) {
        let node = &model[id];
        let own = node.domain.is_empty();
        if own && !bodies.contains(&node.region()) && understood(model, functions, id, opset) {
            continue;
        }
        bodies.extend(node.regions());
        if own {
            model[id].domain = Cow::Borrowed(DOMAIN);
            any = true;
        }
    }
    any
}

/// Whether a node of that opset means the same in the canonical form.
fn understood(model: &Model, functions: &FunctionIndex, id: NodeId, opset: u32) -> bool {
    let node = &model[id];
    // A reference to an attribute of the function has no known value in the function's body.
    let known = node.attributes.iter().all(|(_, a)| {
        !matches!(a, Attribute::Reference { .. } | Attribute::Bytes(_) | Attribute::BytesList(_))
    });
    let own = || functions.called(model, node).is_none();
    known && own() && same(model, id, opset, CANONICAL_OPSET)
}

pub(crate) fn holds_in(model: &Model, id: NodeId, opset: u32) -> bool {
    same(model, id, CANONICAL_OPSET, opset)
}

fn same(model: &Model, id: NodeId, written: u32, other: u32) -> bool {
    if written.max(other) <= CANONICAL_OPSET {
        return means_the_same(model, id, written, other);
    }
    // There are no rules for what changed after the canonical opset.
    let since = |opset| schema::lookup(model[id].op(), opset).map(|s| s.since);
    since(written).is_some() && since(written) == since(other)
}
