//! Replaces attention by ONNX Runtime's own operator, which needs no transposed operands.

use super::{Because, Fusion, Match, Measure, NoFusion, Pass, Patterns, Run, broadcast::full_mask};
use crate::{Target, analysis::known, masks::bools_of};
use pt2onnx_ir::{Attribute, Attributes, Builder, Reduction, Shape, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static MULTI_HEAD: Pass = Pass {
    name: "multi-head",
    description: "Replaces the formula of attention by com.microsoft.MultiHeadAttention, for the \
                  targets `ort` and `ort-genai`.",
    precondition: "Queries, keys and values are float32 and transposed from `(batch, length, \
                   heads, size)`. There is no mask, a causal mask, or a boolean mask that is the \
                   same for all heads.",
    lowers: Measure::Operators(&["Softmax"]),
    targets: Target::CONTRIB,
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// `com.microsoft.MultiHeadAttention` of float32 operands that are `(batch, length, heads, size)`
/// before they are transposed. For a query without keys it gives NaN, as the formula does; if the
/// formula gives zeros there, a `Where` is added.
fn fusions() -> Patterns {
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

fn multi_head(cx: &Builder, found: &Match) -> Result<Value, NoFusion> {
    let moved = |name, perm: &[i64]| {
        let node = found.node(cx, name)?;
        Some(attrs::Transpose::read(&node).ok()?.perm? == perm)
    };
    let swapped = |name| moved(name, &[0, 2, 1, 3]) == Some(true);
    let right = swapped("tr") && swapped("tq") && swapped("tv");
    (right && moved("tk", &[0, 2, 3, 1]) == Some(true))
        .because("operands are transposed otherwise")?;
    let softmax = attrs::Softmax::read(&found.get_node(cx, "s")?).ok();
    let last = softmax.is_some_and(|s| matches!(s.axis, -1 | 3));
    last.because("the softmax is not over the keys")?;
    let operands = [found.get("q")?, found.get("k")?, found.get("v")?];
    let [q, k, v] =
        operands.map(|x| sizes(cx, x).because("operands are not float32 of known sizes"));
    let (q, k, v) = (q?, k?, v?);
    let heads = q[2].as_int().because("the number of heads is not known")?;
    let fit = [&k, &v].iter().all(|x| x[0] == q[0] && x[2] == q[2]);
    fit.because("the operands have different batches or heads")?;
    let scale = match found.value("scale") {
        Some(_) => found.number(cx, "scale").because("the scale is not a number")? as f32,
        None => 1.0,
    };
    // A scale of 0 means the default scale.
    scale.is_normal().because("the scale is 0 or not finite")?;
    let guarded = found.value("guard").is_some();
    (!guarded || found.value("masked").is_some()).because(UNHIDDEN)?;
    attended(cx, found, operands, [&q, &k, &v], heads, scale, guarded)
}

const UNHIDDEN: &str = "zeros for hidden queries need the mask that hides them";

/// The operator between reshapes.
fn attended(
    cx: &Builder,
    found: &Match,
    operands: [Value; 3],
    [q, k, v]: [&Shape; 3],
    heads: i64,
    scale: f32,
    guarded: bool,
) -> Result<Value, NoFusion> {
    let (mask, factors) = match found.value("kept") {
        Some(kept) => {
            let bools = bools_of(cx, found.get("bias")?, kept);
            (Some(bools.because("the mask does not hide the keys whose factor is 0")?), true)
        }
        None => (found.value("mask"), false),
    };
    let hidden = if factors { f64::from(f32::MIN) / 2.0 } else { f64::NEG_INFINITY };
    let wide = |mask| four_dimensions(cx, mask, hidden).because("the mask has unknown dimensions");
    let added = mask.map(wide).transpose()?;
    let scores = [&q[0], &q[2], &q[1], &k[1]].map(Expr::clone);
    let full = |added| full_mask(cx, added, &scores).because("the mask does not fit the scores");
    let bias = added.map(full).transpose()?;
    let mut inputs = Vec::with_capacity(6);
    for x in operands {
        inputs.push(Some(flat(cx, x).ok_or(NoFusion::NoMatch)?));
    }
    inputs.extend([None, None, bias]);
    let depth = v[3].as_int().because("the size of values is not known")?;
    let width = heads.checked_mul(depth).ok_or(NoFusion::NoMatch)?;
    let ty = Type::tensor(DType::F32, [q[0].clone(), q[1].clone(), Expr::int(width)]);
    let attributes = Attributes::from_iter([
        ("num_heads".into(), Attribute::Int(heads)),
        ("scale".into(), Attribute::Float(scale)),
    ]);
    let op = "MultiHeadAttention";
    let mut y = cx.emit_custom("com.microsoft", op, &inputs, attributes, &[Some(ty)])[0];
    if let Some(added) = added.filter(|_| guarded || factors) {
        let any = sees_any(cx, added).because("the mask is not the same for all heads")?;
        // Factors of 0 keep the NaN of scores and values.
        y = if factors { cx.mul(y, cx.cast(any, DType::F32)) } else { cx.select(any, y, 0.0) };
    }
    let apart = cx.ints(&[0, 0, heads, depth]);
    Ok(cx.reshape_op(y, apart, attrs::Reshape::default()))
}

fn sizes(cx: &Builder, x: Value) -> Option<Shape> {
    let model = cx.model();
    let (dtype, shape) = model.tensor_type(x)?;
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

/// `(batch or 1, queries or 1, 1)`: whether a query sees any key, if all heads have one mask.
fn sees_any(cx: &Builder, added: Value) -> Option<Value> {
    let one = cx.dim(added, 1).as_int() == Some(1);
    let largest = cx.reduce(Reduction::Max, added, &[3], true);
    one.then(|| cx.equal(cx.squeeze(largest, &[1]), 0.0))
}
