//! Finding values by their current or original names.

use pt2onnx_ir::{Def, Model, ORIGINAL_NAME, Value, ValueData};

/// Metadata key of a renamed weight, for its name in a state dict. The key above has the name of
/// its placeholder.
pub(super) const TARGET: &str = "pkg.pt2onnx.target";

/// Finds a value by its current or original name. Inputs and outputs come first, values in other
/// scopes of names last.
pub(crate) fn find(model: &Model, name: &str) -> Option<Value> {
    let ends = || model.inputs().iter().copied().chain(model.output_values());
    let is = |v: &Value| model[*v].name.as_deref() == Some(name);
    let was = |v: &Value| original(&model[*v]) == Some(name);
    let live = || model.values().map(|(v, _)| v).filter(|v| lives(model, *v));
    let own = || {
        let scopes = model.scopes();
        live().filter(is).find(|v| scopes.has_main(*v))
    };
    ends().find(is).or_else(|| ends().find(was)).or_else(own).or_else(|| live().find(is))
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
