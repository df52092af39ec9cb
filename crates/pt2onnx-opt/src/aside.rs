//! Models of any opset: passes know operators by their canonical form, so that nodes which mean something else there are
//! set aside for as long as passes run. They get a domain of their own, of which no pass knows anything.

use crate::legalise::means_the_same;
use pt2onnx_ir::{
    Attribute, Model, NodeId, RegionId,
    schema::{self, CANONICAL_OPSET, NEWEST_OPSET},
};
use rustc_hash::FxHashSet;
use std::{borrow::Cow, ops::RangeInclusive};

/// The domain of nodes that are set aside.
const DOMAIN: &str = "pt2onnx.aside";

/// The opsets whose operators are known well enough: before opset 9 they came and went, behind the newest nobody knows.
pub const OPTIMISED_OPSETS: RangeInclusive<u32> = 9..=NEWEST_OPSET;

/// Lets `work` see the main graph and then each function's body ([`Model::with_root`]), all nodes that do not have the
/// canonical form set aside. Graphs of other than the [`OPTIMISED_OPSETS`] it does not see.
pub(crate) fn each_graph(model: &mut Model, mut work: impl FnMut(&mut Model)) {
    let mut graphs = vec![(Model::MAIN, model.opset)];
    graphs.extend(model.functions.iter().map(|f| {
        let own = f.imports.get("").copied();
        let opset = own.unwrap_or(if f.imports.is_empty() { model.opset } else { 0 });
        (f.body, opset)
    }));
    graphs.retain(|(_, opset)| OPTIMISED_OPSETS.contains(opset));
    let mut aside = false;
    for &(root, opset) in &graphs {
        aside |= set_aside(model, root, opset);
    }
    let imported = aside && model.imports.insert(DOMAIN.to_owned(), 1).is_none();
    for (root, opset) in graphs {
        model.with_root(root, opset, &mut work);
    }
    if imported {
        model.imports.shift_remove(DOMAIN);
    }
    if aside {
        for id in model.all_nodes() {
            if model[id].domain == DOMAIN {
                model[id].domain = Cow::Borrowed("");
            }
        }
    }
}

/// Returns whether there are such nodes. What a node owns stays as it is with it: whether its bodies may use values of the graph
/// around, only it knows.
fn set_aside(model: &mut Model, root: RegionId, opset: u32) -> bool {
    let (mut any, mut theirs) = (false, FxHashSet::default());
    for id in model.nodes_in(&[root]) {
        let node = &model[id];
        let own = node.domain.is_empty();
        if own && !theirs.contains(&node.region()) && understood(model, id, opset) {
            continue;
        }
        theirs.extend(node.regions());
        if own {
            model[id].domain = Cow::Borrowed(DOMAIN);
            any = true;
        }
    }
    any
}

/// Whether the node, which is written for that opset, is what passes take it for.
fn understood(model: &Model, id: NodeId, opset: u32) -> bool {
    let node = &model[id];
    // What is said where a function is called is not known in its body.
    let said = node.attributes.iter().all(|(_, a)| {
        !matches!(a, Attribute::Reference { .. } | Attribute::Bytes(_) | Attribute::BytesList(_))
    });
    let own = || !model.functions.iter().any(|f| f.is_called_by(node));
    said && own() && same(model, id, opset, CANONICAL_OPSET)
}

/// Whether a node in the canonical form means the same in an opset.
pub(crate) fn holds_in(model: &Model, id: NodeId, opset: u32) -> bool {
    same(model, id, CANONICAL_OPSET, opset)
}

fn same(model: &Model, id: NodeId, written: u32, other: u32) -> bool {
    if written.max(other) <= CANONICAL_OPSET {
        return means_the_same(model, id, written, other);
    }
    // What changed since, no rule tells.
    let since = |opset| schema::lookup(model[id].op(), opset).map(|s| s.since);
    since(written).is_some() && since(written) == since(other)
}
