//! Values that only have a type.

use crate::{Cx, LowerError, Lowered};
use pt2onnx_ir::{Model, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// A tensor of that type.
pub fn typed(cx: &Cx, dtype: DType, sizes: &[Expr]) -> Value {
    cx.edit(|m| m.add_input(Model::MAIN, Some(Type::tensor(dtype, sizes))))
}

/// A tensor with the element type of `x`.
pub fn sized(cx: &Cx, x: Value, sizes: &[Expr]) -> Value {
    typed(cx, cx.dtype(x), sizes)
}

/// The sizes of `x`, with another one for dimension `axis`.
pub fn with_size(cx: &Cx, x: Value, axis: usize, size: Expr) -> Vec<Expr> {
    let mut sizes = cx.shape(x);
    sizes.get_mut(axis).into_iter().for_each(|place| *place = size.clone());
    sizes
}

/// The sizes to which all of these broadcast.
pub fn broadcast(cx: &Cx, shapes: &[Vec<Expr>]) -> Vec<Expr> {
    shapes.iter().fold(Vec::new(), |a, b| cx.broadcast_shapes(&a, b))
}

/// The error that a type is not known.
pub fn unknown<T>(why: &str) -> Lowered<T> {
    Err(LowerError::unsupported(why))
}

/// A new size, which depends on data.
pub fn fresh(cx: &Cx) -> Expr {
    Expr::symbol(&format!("{FRESH}{}", cx.unknown_dim()))
}

/// The prefix of symbols of such sizes; no symbol of PyTorch has a space.
const FRESH: &str = "fresh ";

/// Whether a symbol is a size of [`fresh`].
pub fn is_fresh(symbol: &str) -> bool {
    symbol.starts_with(FRESH)
}
