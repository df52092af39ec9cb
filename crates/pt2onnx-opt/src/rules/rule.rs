//! Rules: a pattern and its replacement each.

use crate::Pattern;
use pt2onnx_ir::{Function, Model};
use std::sync::Arc;

/// The domain of functions that describe what is replaced.
pub(super) const PATTERN: &str = "pattern";

/// The domain of functions that replace it.
pub(super) const REPLACEMENT: &str = "replacement";

/// Rewriting rules, in ONNX's textual syntax: for each rule a function of the domain `pattern`, and
/// one of the same name of the domain `replacement`, with the same inputs and one output.
///
/// The body of the replacement replaces the nodes that the pattern finds. The inputs of the pattern
/// stand for any values, an attribute `@name` for any value of that attribute. Attributes that a
/// pattern does not give must have their default values.
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

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub pattern: Pattern,
    pub library: Arc<Model>,
    pub replacement: Function,
}

impl Rule {
    pub fn name(&self) -> &str {
        &self.replacement.name
    }
}

impl Rules {
    /// The names of the rules, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(Rule::name)
    }

    /// Adds other rules after these.
    pub fn extend(&mut self, more: Self) {
        self.rules.extend(more.rules);
    }
}
