//! Fuses formulas of attention: products of queries and keys, a scale, a mask, a softmax, and the
//! product with the values.

use super::{
    Because, Fusion, Fusions, Match, Measure, NoFusion, Pass, Patterns, Run, attention_cache,
    broadcast::full_mask,
};
use crate::{
    Target,
    analysis::known,
    masks::{bools_of, has_keys, is_causal, is_choice},
};
use pt2onnx_ir::{Builder, Model, Reduction, Shape, Value, attrs, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static ATTENTION: Pass = Pass {
    name: "attention",
    since: 23,
    description: "Replaces the formula of attention by Attention (opset 23), with scale, mask, \
                  causal mask and shared heads.",
    precondition: "Sizes are known to match. A mask that may hide all keys of a query hides them \
                   by -inf, and the formula gives zeros for that query.",
    any_opset: &[Target::OrtGenai],
    lowers: Measure::Operators(&["Softmax", "Mul", "Expand", "Concat"]),
    run: Run::FusionsThen(Fusions::new(fusions), attention_cache::run),
    ..Pass::FUSION
};

/// Attention of four-dimensional operands. For a query without keys, `Attention` gives zeros: the
/// formula must do the same, or the mask must leave each query a key. The formula that multiplies
/// its weights by 0 gives NaN where a score of such a query is NaN: its mask is added as numbers,
/// and the result is multiplied.
fn fusions() -> Patterns {
    Ok(vec![
        Fusion::new(
            "MatMul(?c:Cast(?guard:Where(allowed, s:Softmax(?masked:Where(allowed, ?Add(?h:Cast(?Mul(?Div( \
                      MatMul(q, ?Mul(t:Transpose(k), right)), over), scale)), bias), -inf)), 0)), v)",
            attention,
        )?,
        Fusion::new(
            "MatMul(?c:Cast(guard:Where(Equal(?r:ReduceMax(b:Add(?h:Cast(MatMul(q, t:Transpose(k))), bias)), -inf), 0, \
                      s:Softmax(b:Add(?h:Cast(MatMul(q, t:Transpose(k))), bias)))), v)",
            attention,
        )?,
        Fusion::new(
            "MatMul(?c:Cast(Mul(s:Softmax(Add(?h:Cast(MatMul(q, t:Transpose(k))), bias)), kept)), v)",
            attention,
        )?,
        Fusion::new("a:Attention(Mul(x, scale))", |cx, found| scaled(cx, found, 0))?,
        Fusion::new("a:Attention(q, Mul(x, scale))", |cx, found| scaled(cx, found, 1))?,
        Fusion::new(
            "a:Attention(q, \
                {Reshape(ek:Expand(uk:Unsqueeze(k))) | Squeeze(ek:Expand(uk:Unsqueeze(k)))}, \
                {Reshape(ev:Expand(uv:Unsqueeze(v))) | Squeeze(ev:Expand(uv:Unsqueeze(v)))})",
            grouped,
        )?,
        Fusion::new("a:Attention(q, k, v, mask)", causal)?,
    ])
}

/// The attribute instead of a causal mask.
fn causal(cx: &Builder, found: &Match) -> Result<Value, NoFusion> {
    let (node, mask) = (found.get_node(cx, "a")?, found.get("mask")?);
    let [rows, columns] = [found.get("q")?, found.get("k")?].map(|x| length(cx, x));
    let free =
        attrs::Attention::read(&node).is_ok_and(|a| !a.is_causal) && node.inputs().len() == 4;
    let lengths = rows.zip(columns).filter(|_| free).ok_or(NoFusion::NoMatch)?;
    // Most masks hide something else.
    if !is_causal(&cx.model(), mask, &lengths.0, &lengths.1) {
        return Err(NoFusion::NoMatch);
    }
    let attributes = node.attributes.iter().cloned();
    let attributes = attributes.chain([("is_causal".into(), 1.into())]);
    Ok(cx.emit1("Attention", &node.inputs()[..3], attributes.collect()))
}

/// The whole formula, from its last node, the product with the values.
fn attention(cx: &Builder, found: &Match) -> Result<Value, NoFusion> {
    let (q, k, v) = (found.get("q")?, found.get("k")?, found.get("v")?);
    let (perm, scores) = scores(cx, found)
        .because("queries, keys and values are not known to have sizes that match")?;
    let precision = precision(cx, found).because("the softmax is computed in another type")?;
    over_keys(cx, found).because("the softmax or its maximum is not over the keys")?;
    let factor = |name| factor(cx, found, name);
    let scale = factor("scale")? / factor("over")? * factor("right")?;
    let scale = kept_scale(cx, q, scale).because(SCALE)?;
    let hidden = mask(cx, found, &scores).because("the mask may hide all keys of a query")?;
    let mask = match hidden {
        Hidden::By(mask) | Hidden::Times { added: mask, .. } => {
            let full = full_mask(cx, mask, &scores);
            Some(full.because("the mask does not fit the scores")?)
        }
        Hidden::Nothing | Hidden::Later => None,
    };
    let k = cx.transpose(k, &perm);
    let options = attrs::Attention {
        scale: Some(scale),
        is_causal: matches!(hidden, Hidden::Later),
        softmax_precision: precision.map(schema::data_type),
        ..Default::default()
    };
    let attended = cx.attention(q, k, v, mask, None, None, None, options);
    Ok(match hidden {
        Hidden::Times { kept, .. } => {
            let rank = cx.known_shape(kept).map(|s| s.len());
            let last = rank.and_then(|r| r.checked_sub(1)).ok_or(NoFusion::NoMatch)?;
            cx.mul(attended, cx.reduce(Reduction::Max, kept, &[last], true))
        }
        _ => attended,
    })
}

/// A factor of the scores; 1 where the formula has none.
pub(super) fn factor(cx: &Builder, found: &Match, name: &str) -> Result<f64, NoFusion> {
    match found.value(name) {
        Some(_) => found.number(cx, name).because("a factor of the scores is not a number"),
        None => Ok(1.0),
    }
}

pub(super) const SCALE: &str = "the scale is not a positive float32";

/// Whether the softmax `s`, and the maximum `r` that guards it, are over the last dimension.
pub(super) fn over_keys(cx: &Builder, found: &Match) -> Option<()> {
    let last = |axis: i64| axis == -1 || axis == 3;
    if found.value("r").is_some() {
        let node = found.node(cx, "r")?;
        let axes = cx.model()[node.input(1)?].constant()?.to_vec::<i64>()?;
        let over = matches!(axes[..], [axis] if last(axis));
        (over && attrs::ReduceMax::read(&node).ok()?.keepdims).then_some(())?;
    }
    last(attrs::Softmax::read(&found.node(cx, "s")?).ok()?.axis).then_some(())
}

/// The factor as the attribute `scale`, a float32. `None` if it does not fit: for float64 operands,
/// float32 must hold it and its root, by which ONNX's formula multiplies queries and keys. (Without
/// the attribute, runtimes compute the scale in float32.)
pub(super) fn kept_scale(cx: &Builder, q: Value, scale: f64) -> Option<f32> {
    let kept = scale as f32;
    let root = kept.sqrt();
    let exact = cx.dtype(q) != DType::F64
        || f64::from(kept) == scale && f64::from(root) * f64::from(root) == scale;
    (exact && kept.is_normal() && kept > 0.0).then_some(kept)
}

/// How the keys must be transposed for `Attention`, and the shape of the scores: `[batch, heads,
/// queries, keys]`. `None` if the operands do not have known sizes that match.
pub(super) fn scores(cx: &Builder, found: &Match) -> Option<(Vec<usize>, Shape)> {
    let keys = cx.known_shape(found.value("k")?)?;
    let perm = attrs::Transpose::read(&found.node(cx, "t")?).ok()?.perm?;
    let [a, b, c, d] = perm[..] else { return None };
    // `t` also transposes the keys for the product.
    let perm = [a, b, d, c].map(usize::try_from);
    let perm: Vec<usize> = perm.into_iter().collect::<Result<_, _>>().ok()?;
    let keys: Shape = perm.iter().map(|&p| keys.get(p).cloned()).collect::<Option<_>>()?;
    let queries = cx.known_shape(found.value("q")?)?;
    let values = cx.known_shape(found.value("v")?)?;
    // There are as many values as keys, or the product would not be valid.
    let fit = queries.len() == 4
        && values.len() == 4
        && queries[..2] == keys[..2]
        && queries[3] == keys[3]
        && values[..2] == keys[..2]
        && [&queries, &keys, &values].into_iter().flatten().all(known);
    fit.then(|| (perm, [&queries[..3], &keys[2..3]].concat()))
}

/// The type of the softmax, if not that of the operands; `None` if `Attention` differs.
pub(super) fn precision(cx: &Builder, found: &Match) -> Option<Option<DType>> {
    let dtype = cx.dtype(found.value("q")?);
    let half = matches!(dtype, DType::F16 | DType::BF16);
    let wide = found.value("h").map_or(dtype, |h| cx.dtype(h));
    let typed = dtype == cx.dtype(found.value("v")?)
        && (half || matches!(dtype, DType::F32 | DType::F64))
        && (wide == dtype || (half && wide == DType::F32));
    typed.then(|| Some(wide).filter(|_| wide != dtype))
}

/// Which keys the formula hides.
enum Hidden {
    Nothing,
    /// For each query, the keys after its own position.
    Later,
    /// Those that a mask hides.
    By(Value),
    /// Keys that get a large negative number and the factor 0; a query may have none left.
    Times {
        added: Value,
        kept: Value,
    },
}

/// Which keys the formula hides, as bools or as numbers that are added to the scores; `None` if
/// `Attention` gives something else for a query without keys.
fn mask(cx: &Builder, found: &Match, scores: &[Expr]) -> Option<Hidden> {
    let [kept, bias] = ["kept", "bias"].map(|name| found.value(name));
    let [guarded, masked] = ["guard", "masked"].map(|n| kept.or(found.value(n)).is_some());
    let (bools, bias) = match (kept, bias) {
        (Some(kept), Some(added)) => {
            let bools = bools_of(cx, added, kept)?;
            if !has_keys(&cx.model(), bools) {
                // Only float32 has the kernel and holds the number.
                let single = [added, kept, found.value("q")?].map(|x| cx.dtype(x) == DType::F32);
                return (single == [true; 3]).then_some(Hidden::Times { added, kept });
            }
            (Some(bools), None)
        }
        _ => (found.value("allowed"), bias),
    };
    match (bools, bias) {
        (None, None) => Some(Hidden::Nothing),
        // Zeros for hidden rows need the mask that hides them.
        (Some(_), _) if guarded && !masked => None,
        (Some(allowed), None) if is_causal(&cx.model(), allowed, &scores[2], &scores[3]) => {
            Some(Hidden::Later)
        }
        (Some(allowed), None) => {
            let sound = guarded || has_keys(&cx.model(), allowed);
            sound.then_some(Hidden::By(allowed))
        }
        (None, Some(bias)) => {
            let source = uncast(&cx.model(), bias, cx.dtype(found.value("q")?))?;
            let sound =
                has_keys(&cx.model(), source) || (guarded && is_choice(&cx.model(), source));
            sound.then_some(Hidden::By(source))
        }
        (Some(_), Some(_)) => None,
    }
}

fn scaled(cx: &Builder, found: &Match, i: usize) -> Result<Value, NoFusion> {
    let node = found.get_node(cx, "a")?;
    let given = attrs::Attention::read(&node).ok().and_then(|a| a.scale);
    let given = f64::from(given.because("the scale of the node is the default")?);
    let product = node.input(i).ok_or(NoFusion::NoMatch)?;
    let factor = found.number(cx, "scale").because("the factor is not a number")?;
    let scale = kept_scale(cx, product, given * factor).because(SCALE)?;
    let kept = cx.known_shape(product).filter(|s| s.iter().all(known));
    let same = kept.is_some() && kept == cx.known_shape(found.get("x")?);
    same.because("the factor broadcasts the operand, or sizes are not known")?;
    let mut inputs = node.inputs().to_vec();
    inputs[i] = found.value("x");
    let others = node.attributes.iter().filter(|(n, _)| n != "scale").cloned();
    let attributes = others.chain([("scale".into(), scale.into())]).collect();
    Ok(cx.emit1("Attention", &inputs, attributes))
}

/// Takes keys and values from before they are repeated for several heads of queries.
fn grouped(cx: &Builder, found: &Match) -> Result<Value, NoFusion> {
    let node = found.get_node(cx, "a")?;
    let repeated = |shared: &str, unsqueezed: &str, expanded: &str, i: usize| {
        let few = found.value(shared)?;
        let values = [few, found.value(unsqueezed)?, found.value(expanded)?, node.input(i)?];
        repeats_heads(&cx.model(), values).then_some(few)
    };
    let both = repeated("k", "uk", "ek", 1).zip(repeated("v", "uv", "ev", 2));
    let (k, v) = both.because("keys and values are not known to be repeated for heads")?;
    let mut inputs = node.inputs().to_vec();
    (inputs[1], inputs[2]) = (Some(k), Some(v));
    Ok(cx.emit1("Attention", &inputs, node.attributes))
}

/// Whether keys or values are repeated for several heads of queries: the first ones, those with a
/// new dimension, those expanded along it, and those with it merged into that of heads.
pub(super) fn repeats_heads(model: &Model, values: [Value; 4]) -> bool {
    let shapes = values.map(|v| model.shape(v).filter(|s| s.iter().all(known)));
    let [Some(few), Some(apart), Some(wide), Some(many)] = shapes else { return false };
    let ([b, heads, s, d], Some(repeats)) = (&few[..], wide.get(2)) else { return false };
    let one = Expr::int(1);
    apart[..] == [b, heads, &one, s, d].map(Clone::clone)
        && wide[..] == [b, heads, repeats, s, d].map(Clone::clone)
        && many[..] == [b, &(heads * repeats), s, d].map(Clone::clone)
}

fn length(cx: &Builder, x: Value) -> Option<Expr> {
    cx.known_shape(x)?.get(2).cloned()
}

/// The value itself, or the value before a cast, if it has that type.
fn uncast(model: &Model, value: Value, dtype: DType) -> Option<Value> {
    let of_type = |v: &Value| model.tensor_type(*v).is_some_and(|(d, _)| d == dtype);
    let cast = || model.producer(value).map(|n| &model[n]).filter(|n| n.is("Cast"))?.input(0);
    Some(value).filter(of_type).or_else(|| cast().filter(of_type))
}
