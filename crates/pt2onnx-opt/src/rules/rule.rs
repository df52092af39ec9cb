//! Rules: a pattern and its replacement each.

use pt2onnx_ir::{Function, Model};
use std::sync::Arc;

/// The domain of functions that describe what is replaced.
pub(super) const PATTERN: &str = "pattern";

/// The domain of functions that replace it.
pub(super) const REPLACEMENT: &str = "replacement";

/// Rewriting rules, in ONNX's textual syntax: for each rule a function of the domain `pattern`, and
/// one of the same name of the domain `replacement`, with the same inputs and one output.
///
/// What the pattern finds is replaced by the body of the replacement. The inputs of the pattern
/// stand for any values, an attribute `@name` for any value of that attribute. What a pattern does
/// not say of a node's attributes must have its default value.
///
/// ```
/// use pt2onnx_ir::Model;
/// use pt2onnx_opt::{Options, Pass, Passes, Rules, optimize};
///
/// let rules: Rules = r#"
///     <domain: "pattern", opset_import: ["" : 20]>
///     relu_twice (x) => (y) { r = Relu (x) y = Relu (r) }
///     <domain: "replacement", opset_import: ["" : 20]>
///     relu_twice (x) => (y) { y = Relu (x) }"#
///     .parse()?;
/// let text = r#"<ir_version: 9, opset_import: ["" : 20]>
/// main_graph (float[n] x) => (float[n] y) { r = Relu (x) y = Relu (r) }"#;
/// let mut model: Model = text.parse()?;
/// let passes = Passes::none().with(Pass::of_rules("rules", rules));
/// optimize(&mut model, &Options { passes, ..Options::default() });
/// assert_eq!(model.nodes(Model::MAIN).count(), 1);
/// # Ok::<(), pt2onnx_ir::ParseError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub(super) rules: Vec<Rule>,
}

/// A pattern and its replacement, both in one library.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub library: Arc<Model>,
    pub pattern: Function,
    pub replacement: Function,
}

impl Rules {
    /// The names of the rules, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.pattern.name.as_str())
    }

    /// Adds other rules after these.
    pub fn extend(&mut self, more: Self) {
        self.rules.extend(more.rules);
    }
}
