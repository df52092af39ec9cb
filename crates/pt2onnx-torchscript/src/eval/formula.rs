//! Formulas of several operators, written in the language of archives.

use crate::{
    eval::{Env, Evaluator, Flow, Step, unbound},
    value::Value,
};
use pt2onnx_torchscript_archive::syntax::{self, Function};
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock};

/// By name.
static FORMULAS: LazyLock<FxHashMap<String, Arc<Function>>> = LazyLock::new(|| {
    let file = syntax::parse_without_places(include_str!("formulas.txt"));
    let functions = file.map(|file| file.functions).unwrap_or_default().into_iter();
    functions.map(|function| (function.name.to_string(), function)).collect()
});

impl Evaluator<'_> {
    /// The result of a function of `formulas.txt`. Its nodes come from where the evaluator is.
    pub(crate) fn formula(&mut self, name: &str, args: Vec<Value>) -> Step<Value> {
        let Some(function) = FORMULAS.get(name).filter(|f| f.params.len() == args.len()) else {
            return unbound(name);
        };
        let names = function.params.iter().map(|param| param.name.clone());
        let mut env: Env = names.zip(args).collect();
        match self.deeper(|ev| ev.block(&function.body, &mut env))? {
            Flow::Return(value) => Ok(value),
            Flow::Next => Ok(Value::None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_formulas_can_be_parsed() {
        let text = include_str!("formulas.txt");
        let defined = text.lines().filter(|line| line.starts_with("def "));
        assert_eq!(FORMULAS.len(), defined.count());
    }
}
