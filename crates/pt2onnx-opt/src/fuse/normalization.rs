//! Checks that the fusions of normalizations share.

use super::{Because, NoFusion};
use crate::{Match, eval};
use pt2onnx_ir::{Builder, Model, Node, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// Input, first axis and epsilon of a normalization over the last dimensions. `n` normalizes `x` by
/// the mean `m`; `c`, if found, casts back to the type that `x` was cast from.
pub(super) fn normalised(cx: &Builder, found: &Match) -> Result<(Value, i64, f32), NoFusion> {
    let x = found.get("x")?;
    let epsilon = found.number(cx, "epsilon").because("epsilon is not a constant")? as f32;
    let mean = found.get_node(cx, "m")?;
    let model = cx.model();
    let is_single = |v: Value| model.tensor_type(v).is_some_and(|(d, _)| d == DType::F32);
    let single = is_single(x) && is_single(found.get("n")?);
    single.because("it is not computed in float32, or ranks are not known")?;
    let last = || {
        let (_, shape) = model.tensor_type(x)?;
        let (axes, keeps) = reduced(&model, &mean)?;
        let first = shape.len().checked_sub(axes.len())?;
        let last = axes.iter().copied().eq(first..shape.len());
        (last && keeps && !axes.is_empty()).then_some(axes.len())
    };
    let count = last().because("the mean is not one over the last dimensions")?;
    let source = match found.value("c") {
        None => Some(x),
        Some(cast) => uncast(&model, x, cast),
    };
    let source = source.because("the result is not cast to the type that the input had")?;
    Ok((source, -(count as i64), epsilon))
}

/// The value that `x` is cast from, if it is a half of the type of `cast`.
fn uncast(model: &Model, x: Value, cast: Value) -> Option<Value> {
    let (to, _) = model.tensor_type(cast)?;
    let before = &model[model.producer(x)?];
    let source = before.input(0).filter(|_| before.is("Cast"))?;
    let (from, _) = model.tensor_type(source)?;
    (from == to && matches!(from, DType::F16 | DType::BF16)).then_some(source)
}

/// Axes of a reduction, in order, and whether they are kept. Older forms have an attribute.
pub(super) fn reduced(model: &Model, node: &Node) -> Option<(Vec<usize>, bool)> {
    let (_, shape) = model.tensor_type(node.input(0)?)?;
    let given = match node.input(1) {
        Some(axes) => model[axes].constant()?.to_vec::<i64>()?,
        None => node.read("axes").ok()??,
    };
    let front = |a: i64| pt2onnx_symbolic::axis(a, shape.len());
    let mut axes: Vec<usize> = given.into_iter().map(front).collect::<Option<_>>()?;
    axes.sort_unstable();
    Some((axes, attrs::ReduceMean::read(node).ok()?.keepdims))
}

/// An error unless scale or bias has the type of `x` and the sizes of the normalized dimensions.
pub(super) fn fits(cx: &Builder, scale: Value, x: Value, axis: i64) -> Result<(), NoFusion> {
    let model = cx.model();
    let types = model.tensor_type(scale).zip(model.tensor_type(x));
    let fits = types.is_some_and(|((a, scale), (b, x))| {
        let normalised = eval::axis(axis, x.len()).and_then(|first| x.get(first..));
        a == b && normalised == Some(scale) && scale.iter().all(Expr::is_static)
    });
    fits.because("scale or bias has another type, or other sizes than the normalized dimensions")
}
