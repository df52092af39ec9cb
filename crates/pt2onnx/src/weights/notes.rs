//! Metadata about the program's tensors that a model without weights does not have under their
//! names. `apply_weights` reads it.

use pt2onnx_ir::Model;
use pt2onnx_report::fingerprint;
use pt2onnx_tensor::Tensor;
use std::collections::BTreeMap;

/// The key in the model's metadata.
const KEY: &str = "pkg.pt2onnx.weights";

/// Tensors of the program that the model does not hold under their names.
#[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub(super) struct Notes {
    /// Tensors that nothing in the model depends on, and constants of the program, with the hash of
    /// their elements: the model depends on these, but holds what was computed from them.
    pub unused: BTreeMap<String, Option<String>>,
    /// Other names of tied weights, and the names under which the model holds these.
    pub tied: BTreeMap<String, String>,
}

impl Notes {
    /// The notes of a model; empty if it has none.
    pub fn of(model: &Model) -> Self {
        let entry = model.metadata.iter().find(|(key, _)| &**key == KEY);
        entry.and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    pub fn write(&self, model: &mut Model) {
        if *self != Self::default() {
            let text = serde_json::to_string(self).unwrap_or_default();
            model.metadata.push((KEY.into(), text.into()));
        }
    }

    /// Whether the model does not depend on a tensor of the program.
    pub fn ignores(&self, name: &str, tensor: &Tensor) -> bool {
        match self.unused.get(name) {
            Some(Some(hash)) => *hash == fingerprint(tensor),
            Some(None) => true,
            None => false,
        }
    }
}
