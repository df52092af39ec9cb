//! Finding values by their current or original names.

use pt2onnx_ir::{Def, Model, ORIGINAL_NAME, RegionId, Value, ValueData};
use rustc_hash::FxHashSet;

/// Metadata key of a renamed weight, for its name in a state dict. The key above has the name of its placeholder.
pub(super) const TARGET: &str = "pkg.pt2onnx.target";

/// Finds a value by its current or original name. Inputs and outputs come first, values in other scopes of names last.
pub(crate) fn find(model: &Model, name: &str) -> Option<Value> {
    let ends = || model.inputs().iter().copied().chain(model.output_values());
    let is = |v: &Value| model[*v].name.as_deref() == Some(name);
    let was = |v: &Value| original(&model[*v]) == Some(name);
    let live = || model.values().map(|(v, _)| v).filter(|v| lives(model, *v));
    let own = || {
        let inner = other_scopes(model);
        live().filter(is).find(|v| !region(model, *v).is_some_and(|r| inner.contains(&r)))
    };
    ends().find(is).or_else(|| ends().find(was)).or_else(own).or_else(|| live().find(is))
}

/// The bodies of functions and of operators of other domains, and the bodies of nodes in them.
fn other_scopes(model: &Model) -> FxHashSet<RegionId> {
    let nodes = model.graph_nodes().into_iter().map(|n| &model[n]);
    let foreign = nodes.filter(|n| !n.domain.is_empty()).flat_map(|n| n.regions());
    let functions = model.functions.iter().map(|f| f.body);
    let bodies: Vec<RegionId> = functions.chain(foreign).collect();
    let nodes = model.nodes_in(&bodies).into_iter();
    bodies.into_iter().chain(nodes.flat_map(|n| model[n].regions())).collect()
}

/// The region that a value is defined in; `None` for a constant.
fn region(model: &Model, value: Value) -> Option<RegionId> {
    match model[value].def() {
        Def::Node(node, _) => model.contains(*node).then(|| model[*node].region()),
        Def::Input(region, _) => Some(*region),
        Def::Constant(_) => None,
    }
}

fn lives(model: &Model, value: Value) -> bool {
    match model[value].def() {
        Def::Node(node, _) => model.contains(*node),
        Def::Constant(_) => model[value].uses().len() > 0,
        Def::Input(..) => true,
    }
}

pub(super) fn original(data: &ValueData) -> Option<&str> {
    entry(data, ORIGINAL_NAME)
}

/// The name of a renamed weight in a state dict.
pub(crate) fn target(data: &ValueData) -> Option<&str> {
    entry(data, TARGET)
}

/// The entry of a value's metadata under a key.
pub(crate) fn entry<'a>(data: &'a ValueData, key: &str) -> Option<&'a str> {
    let entry = data.metadata.iter().find(|(k, _)| k == key);
    entry.map(|(_, value)| &**value)
}

pub(super) fn called(data: &ValueData) -> String {
    data.name.as_deref().unwrap_or_default().to_owned()
}
