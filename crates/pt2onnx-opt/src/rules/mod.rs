//! Rewriting rules as text: functions that describe what is replaced, and functions that replace
//! it.

mod emit;
mod read;
mod rule;

pub use rule::Rules;

use crate::{Fusion, Level, Pass};
use pt2onnx_ir::ParseError;
use std::sync::Arc;

impl std::str::FromStr for Rules {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        read::rules(text)
    }
}

impl Pass {
    /// A pass that applies rules, whatever the level. The first rule that fits is applied to each
    /// node.
    pub fn of_rules(name: &'static str, rules: Rules) -> Self {
        let fusions = rules.rules.into_iter().map(|rule| {
            let (pattern, rule) = (rule.pattern.clone(), Arc::new(rule));
            let name = rule.name().into();
            Fusion::of_rule(name, pattern, move |cx, found| emit::emit(cx, &rule, found))
        });
        Self::of_fusions(name, fusions)
            .level(Level::Off)
            .description("Replaces what the rules of the user describe.")
    }
}
