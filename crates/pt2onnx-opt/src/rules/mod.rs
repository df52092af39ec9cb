//! Rewriting rules as text: functions that describe what is replaced, and functions that replace
//! it.

mod emit;
mod find;
mod read;
mod rule;

pub use rule::Rules;

use crate::{
    fusion,
    graph::{Changed, GraphMut},
    pass::{Level, Options, Pass},
};
use pt2onnx_ir::ParseError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often the rules of a pass are applied at most: rules that make what they replace would never
/// end.
const MAX_APPLIED: usize = 1 << 16;

impl std::str::FromStr for Rules {
    type Err = ParseError;

    /// Reads rules.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        read::rules(text)
    }
}

impl Pass {
    /// A pass that applies rules, whatever the level. The first rule that fits is applied to each
    /// node.
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
