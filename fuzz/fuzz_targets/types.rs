//! Types of operators for the interpreter of TorchScript: every operator returns what its first
//! tensor is.

use pt2onnx_fx::Node;
use pt2onnx_torchscript::types::{Facts, Outcome, Types};

/// Every operator returns what its first tensor is.
pub struct Same;

impl Types for Same {
    fn results(&mut self, node: &Node, facts: &mut Facts) -> Result<Vec<Outcome>, String> {
        let names = node.input_names();
        let meta = names.first().and_then(|name| facts.values.get(name)).cloned();
        meta.map(|meta| vec![Outcome::One(meta.into())]).ok_or_else(|| "no tensor".to_owned())
    }
}
