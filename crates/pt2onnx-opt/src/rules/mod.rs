//! Rewriting rules as text: functions that describe what is replaced, and functions that replace it.

mod emit;
mod find;
mod read;

use crate::{
    fusion,
    graph::{Changed, GraphMut},
    pass::{Level, Options, Pass},
};
use pt2onnx_ir::{Function, Model, ParseError};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// How often the rules of a pass are applied at most: rules that make what they replace would never end.
const MAX_APPLIED: usize = 1 << 16;

/// The domain of functions that describe what is replaced.
const PATTERN: &str = "pattern";

/// The domain of functions that replace it.
const REPLACEMENT: &str = "replacement";

/// Rewriting rules, in ONNX's textual syntax: for each rule a function of the domain `pattern`, and one of the same name of the domain
/// `replacement`, with the same inputs and one output.
///
/// What the pattern finds is replaced by the body of the replacement. The inputs of the pattern stand for any values, an attribute
/// `@name` for any value of that attribute. What a pattern does not say of a node's attributes must have its default value.
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
    rules: Vec<Rule>,
}

/// A pattern and its replacement, both in one library.
#[derive(Clone, Debug)]
struct Rule {
    library: Arc<Model>,
    pattern: Function,
    replacement: Function,
}

impl std::str::FromStr for Rules {
    type Err = ParseError;

    /// Reads rules.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        read::rules(text)
    }
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

impl Pass {
    /// A pass that applies rules, whatever the level. The first rule that fits is applied to each node.
    pub fn of_rules(name: &'static str, rules: Rules) -> Self {
        let applied = AtomicUsize::new(0);
        Self::new(name, move |graph, _: &Options| apply(graph, &rules, &applied))
            .level(Level::Off)
            .description("Replaces what the rules of the user describe.")
    }
}

fn apply(graph: &mut GraphMut<'_>, rules: &Rules, applied: &AtomicUsize) -> Changed {
    let mut changed = false;
    for node in graph.nodes() {
        for rule in &rules.rules {
            if !graph.model.contains(node) || applied.load(Ordering::Relaxed) >= MAX_APPLIED {
                break;
            }
            let Some(found) = find::find(graph.model, rule, node) else {
                continue;
            };
            let (nodes, output) = (found.nodes.clone(), found.output);
            if fusion::replace(graph, &nodes, output, |cx| emit::emit(cx, rule, &found)) {
                applied.fetch_add(1, Ordering::Relaxed);
                changed = true;
                break;
            }
        }
    }
    changed
}
