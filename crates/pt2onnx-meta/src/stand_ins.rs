//! The values that rules return, and sizes.

use pt2onnx_ir::{Model, Type, Value};
use pt2onnx_lowering::{Cx, LowerError, Lowered};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// A tensor of that type.
pub(crate) fn typed(cx: &Cx, dtype: DType, sizes: &[Expr]) -> Value {
    cx.edit(|m| m.add_input(Model::MAIN, Some(Type::tensor(dtype, sizes))))
}

/// A tensor with the element type of `x`.
pub(crate) fn sized(cx: &Cx, x: Value, sizes: &[Expr]) -> Value {
    typed(cx, cx.dtype(x), sizes)
}

/// The sizes of `x`, with another one for dimension `axis`.
pub(crate) fn with_size(cx: &Cx, x: Value, axis: usize, size: Expr) -> Vec<Expr> {
    let mut sizes: Vec<Expr> = cx.shape(x).into_iter().collect();
    sizes.get_mut(axis).into_iter().for_each(|place| *place = size.clone());
    sizes
}

/// The sizes to which all of these broadcast.
pub(crate) fn broadcast(cx: &Cx, shapes: &[Vec<Expr>]) -> Vec<Expr> {
    let join = |a: Vec<Expr>, b: &Vec<Expr>| cx.broadcast_shapes(&a, b).into_iter().collect();
    shapes.iter().fold(Vec::new(), join)
}

/// The error that a rule cannot tell the type.
pub(crate) fn unknown<T>(why: &str) -> Lowered<T> {
    Err(LowerError::unsupported(why))
}

/// A new size, which depends on data.
pub(crate) fn fresh(cx: &Cx) -> Expr {
    Expr::symbol(&format!("{FRESH}{}", cx.unknown_dim()))
}

/// What symbols of such sizes begin with; no symbol of PyTorch has a space.
const FRESH: &str = "fresh ";

/// Whether a symbol stands for a new size, which depends on data.
pub fn is_fresh(symbol: &str) -> bool {
    symbol.starts_with(FRESH)
}
