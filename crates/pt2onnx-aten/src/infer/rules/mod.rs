//! Rules of the results' types, for ops whose lowering needs PyTorch's record.
//!
//! A rule is a function as a lowering is, and its parameters are bound in the same way, but it need not take all of them. Its values
//! have the types of PyTorch: complex tensors are not pairs. It returns stand-ins ([`typed`]).

mod dtypes;

use crate::{AtenOp, Cx};
use pt2onnx_ir::{Model, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// The rule of an op, by the op's name.
pub(super) fn rule(name: &str) -> Option<&'static AtenOp> {
    static RULES: OnceLock<FxHashMap<&'static str, &'static AtenOp>> = OnceLock::new();
    let tables = || tables().into_iter().flatten().map(|op| (op.name(), op)).collect();
    RULES.get_or_init(tables).get(name).copied()
}

fn tables() -> [&'static [AtenOp]; 1] {
    [dtypes::RULES]
}

/// A tensor of that type.
fn typed(cx: &Cx, dtype: DType, sizes: &[Expr]) -> Value {
    cx.edit(|m| m.add_input(Model::MAIN, Some(Type::tensor(dtype, sizes))))
}

/// A new size, which depends on data.
fn fresh(cx: &Cx) -> Expr {
    Expr::symbol(&format!("{FRESH}{}", cx.unknown_dim()))
}

const FRESH: &str = "fresh ";

/// Whether a symbol is one of [`fresh`].
pub(super) fn is_fresh(symbol: &Expr) -> bool {
    symbol.as_symbol().is_some_and(|s| s.starts_with(FRESH))
}
