//! Meta functions of ATen ops: the element types and the sizes of results, from those of the
//! operands.
//!
//! Layer 3. PyTorch's meta kernels tell the same. Rules are here for ops whose translation reads
//! what `torch.export` recorded of each result, which a TorchScript program does not have. A rule
//! is a function like a translation, and its parameters are bound in the same way, but it need not
//! take all of them. Its values have PyTorch's types: complex tensors are not real/imaginary pairs.
//! It returns values that only have a type.
//!
#![doc = include_str!("../README.md")]

mod create;
mod index;
mod linalg;
mod nn;
mod pointwise;
mod reduce;
mod same;
mod signal;
mod split;
mod stand_ins;
mod view;

use pt2onnx_lowering::AtenOp;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

pub use stand_ins::is_fresh;

/// The rule of an op, by the op's name.
pub fn rule(name: &str) -> Option<&'static AtenOp> {
    static RULES: OnceLock<FxHashMap<&'static str, &'static AtenOp>> = OnceLock::new();
    let rules = || tables().into_iter().flatten().map(|op| (op.name(), op)).collect();
    RULES.get_or_init(rules).get(name).copied()
}

/// The tables of all modules.
fn tables() -> [&'static [AtenOp]; 10] {
    [
        create::RULES,
        index::RULES,
        linalg::RULES,
        nn::RULES,
        pointwise::RULES,
        reduce::RULES,
        same::RULES,
        signal::RULES,
        split::RULES,
        view::RULES,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn rules_are_unique_and_fit_their_schemas() {
        let mut seen = HashSet::new();
        for op in tables().into_iter().flatten() {
            assert!(seen.insert(op.name()), "{} stands twice", op.name());
            // A rule need not take all parameters.
            let problem = op.check().err().filter(|e| !e.contains("the function does not take"));
            assert_eq!(problem, None);
        }
        assert!(seen.len() > 400);
    }
}
