//! Rules of the results' types, for ops whose lowering needs PyTorch's record.
//!
//! A rule is a function as a lowering is, and its parameters are bound in the same way, but it need not take all of them. Its values
//! have the types of PyTorch: complex tensors are not pairs. It returns stand-ins ([`typed`]).

mod create;
mod index;
mod linalg;
mod nn;
mod pointwise;
mod reduce;
mod same;
mod signal;
mod split;
mod view;

use crate::{AtenOp, Cx, LowerError, Lowered};
use pt2onnx_ir::{Model, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// The rule of an op, by the op's name.
pub(super) fn rule(name: &str) -> Option<&'static AtenOp> {
    static RULES: OnceLock<FxHashMap<&'static str, &'static AtenOp>> = OnceLock::new();
    let rules = || tables().into_iter().flatten().map(|op| (op.name(), op)).collect();
    RULES.get_or_init(rules).get(name).copied()
}

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

/// A tensor of that type.
fn typed(cx: &Cx, dtype: DType, sizes: &[Expr]) -> Value {
    cx.edit(|m| m.add_input(Model::MAIN, Some(Type::tensor(dtype, sizes))))
}

/// A tensor with the element type of `x`.
fn sized(cx: &Cx, x: Value, sizes: &[Expr]) -> Value {
    typed(cx, cx.dtype(x), sizes)
}

/// The sizes of `x`, with another one for dimension `axis`.
fn with_size(cx: &Cx, x: Value, axis: usize, size: Expr) -> Vec<Expr> {
    let mut sizes: Vec<Expr> = cx.shape(x).into_iter().collect();
    sizes.get_mut(axis).into_iter().for_each(|place| *place = size.clone());
    sizes
}

/// The sizes to which all of these broadcast.
fn broadcast(cx: &Cx, shapes: &[Vec<Expr>]) -> Vec<Expr> {
    let join = |a: Vec<Expr>, b: &Vec<Expr>| cx.broadcast_shapes(&a, b).into_iter().collect();
    shapes.iter().fold(Vec::new(), join)
}

fn unknown<T>(why: &str) -> Lowered<T> {
    Err(LowerError::unsupported(why))
}

/// A new size, which depends on data.
fn fresh(cx: &Cx) -> Expr {
    Expr::symbol(&format!("{FRESH}{}", cx.unknown_dim()))
}

const FRESH: &str = "fresh ";

/// Whether a symbol is one of [`fresh`].
pub(super) fn is_fresh(symbol: &str) -> bool {
    symbol.starts_with(FRESH)
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
