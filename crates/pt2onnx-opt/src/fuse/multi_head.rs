//! Replaces attention by ONNX Runtime's own operator, which needs no transposed operands.

use super::broadcast::full_mask;
use crate::{
    analysis::{known, tensor_type},
    fusion::Fusion,
    masks::bools_of,
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Attribute, Attributes, Builder, Reduction, Shape, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// `com.microsoft.MultiHeadAttention` of float32 operands that are `(batch, length, heads, size)`
/// before they are transposed. For a query without keys it gives NaN, as the formula does; if the
/// formula gives zeros there, a `Where` is added.
pub(crate) fn multi_head_fusions() -> Result<Vec<Fusion>, PatternError> {
    Ok(vec![
        Fusion::new(
            "tr:Transpose(MatMul(?guard:Where(mask, s:Softmax(?masked:Where(mask, \
                      MatMul(?Mul(tq:Transpose(q), scale), tk:Transpose(k)), -inf)), 0), tv:Transpose(v)))",
            multi_head,
        )?,
        Fusion::new(
            "tr:Transpose(MatMul(Mul(s:Softmax(Add( \
                      MatMul(?Mul(tq:Transpose(q), scale), tk:Transpose(k)), bias)), kept), tv:Transpose(v)))",
            multi_head,
        )?,
    ])
}

fn multi_head(cx: &Builder, found: &Match) -> Option<Value> {
    let moved = |name, perm: &[i64]| {
        Some(attrs::Transpose::read(&found.node(cx, name)?).ok()?.perm? == perm)
    };
    let swapped = |name| moved(name, &[0, 2, 1, 3]);
    let last = matches!(attrs::Softmax::read(&found.node(cx, "s")?).ok()?.axis, -1 | 3);
    if !(swapped("tr")? && swapped("tq")? && swapped("tv")? && moved("tk", &[0, 2, 3, 1])? && last)
    {
        return None;
    }
    let operands = [found.value("q")?, found.value("k")?, found.value("v")?];
    let [q, k, v] = operands.map(|x| sizes(cx, x));
    let (q, k, v) = (q?, k?, v?);
    let heads = q[2].as_int()?;
    if [&k, &v].iter().any(|x| x[0] != q[0] || x[2] != q[2]) {
        return None;
    }
    let scale = match found.value("scale") {
        Some(_) => found.number(cx, "scale")? as f32,
        None => 1.0,
    };
    // A scale of 0 means the default scale.
    if !scale.is_normal() {
        return None;
    }
    // Zeros for hidden rows need the mask that hides them.
    let guarded = found.value("guard").is_some();
    if guarded && found.value("masked").is_none() {
        return None;
    }
    let (mask, factors) = match found.value("kept") {
        Some(kept) => (Some(bools_of(cx, found.value("bias")?, kept)?), true),
        None => (found.value("mask"), false),
    };
    let hidden = if factors { f64::from(f32::MIN) / 2.0 } else { f64::NEG_INFINITY };
    let added = match mask {
        Some(mask) => Some(four_dimensions(cx, mask, hidden)?),
        None => None,
    };
    let scores = [&q[0], &q[2], &q[1], &k[1]].map(Expr::clone);
    let bias = match added {
        Some(added) => Some(full_mask(cx, added, &scores)?),
        None => None,
    };
    let mut inputs = Vec::with_capacity(6);
    for x in operands {
        inputs.push(Some(flat(cx, x)?));
    }
    inputs.extend([None, None, bias]);
    let width = v[2].as_int()?.checked_mul(v[3].as_int()?)?;
    let ty = Type::tensor(DType::F32, [q[0].clone(), q[1].clone(), Expr::int(width)]);
    let attributes = Attributes::from_iter([
        ("num_heads".into(), Attribute::Int(heads)),
        ("scale".into(), Attribute::Float(scale)),
    ]);
    let op = "MultiHeadAttention";
    let mut y = cx.emit_custom("com.microsoft", op, &inputs, attributes, &[Some(ty)])[0];
    if let Some(added) = added.filter(|_| guarded || factors) {
        let any = sees_any(cx, added)?;
        // Factors of 0 keep the NaN of scores and values.
        y = if factors { cx.mul(y, cx.cast(any, DType::F32)) } else { cx.select(any, y, 0.0) };
    }
    let apart = cx.ints(&[0, 0, heads, v[3].as_int()?]);
    Some(cx.reshape_op(y, apart, attrs::Reshape::default()))
}

/// The sizes of a float32 operand, if it has four dimensions and all are known.
fn sizes(cx: &Builder, x: Value) -> Option<Shape> {
    let model = cx.model();
    let (dtype, shape) = tensor_type(&model, x)?;
    let fits = dtype == DType::F32 && shape.len() == 4 && shape.iter().all(known);
    fits.then(|| shape.clone())
}

/// `(batch, length, heads * size)`
fn flat(cx: &Builder, x: Value) -> Option<Value> {
    let width = cx.dim(x, 2).as_int()?.checked_mul(cx.dim(x, 3).as_int()?)?;
    let sizes = cx.ints(&[0, 0, width]);
    Some(cx.reshape_op(x, sizes, attrs::Reshape::default()))
}

/// The mask as numbers added to the scores, `hidden` for hidden keys, with four dimensions.
fn four_dimensions(cx: &Builder, mask: Value, hidden: f64) -> Option<Value> {
    let missing = 4usize.checked_sub(cx.known_shape(mask)?.len())?;
    let mask = cx.unsqueeze(mask, &(0..missing).collect::<Vec<_>>());
    Some(cx.select(mask, cx.scalar(0.0, DType::F32), hidden))
}

/// `(batch or 1, queries or 1, 1)`: whether a query sees any key, if the mask is the same for all
/// heads.
fn sees_any(cx: &Builder, added: Value) -> Option<Value> {
    let one = cx.dim(added, 1).as_int() == Some(1);
    let largest = cx.reduce(Reduction::Max, added, &[3], true);
    one.then(|| cx.equal(cx.squeeze(largest, &[1]), 0.0))
}
