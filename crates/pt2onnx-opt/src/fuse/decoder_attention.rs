//! Fuses the formula of attention that adds a decoder's mask to the scores, which may be capped.

use super::{
    Because, Fusion, Match, Measure, NoFusion, Pass, Patterns, Run,
    attention::{self, SCALE},
    broadcast::full_mask,
};
use crate::{Target, decoder_masks::decoder_mask};
use pt2onnx_ir::{Builder, Value, attrs, schema};

pub(crate) static DECODER_ATTENTION: Pass = Pass {
    name: "decoder-attention",
    description: "Replaces the formula of attention with a decoder's mask, and with capped scores, \
                  by Attention, for the target `ort-genai` only.",
    precondition: "The mask hides the keys after each query and those of tokens that are not \
                   there: results of queries without keys are not looked at.",
    lowers: Measure::Operators(&["Softmax"]),
    targets: &[Target::OrtGenai],
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

fn fusions() -> Patterns {
    let formulas = [
        "MatMul(?c:Cast(s:Softmax(?h:Cast(Add(Mul(Tanh(Div(?Mul( \
             MatMul(q, t:Transpose(k)), scale), cap)), cap), bias)))), v)",
        "MatMul(?c:Cast(s:Softmax(?h:Cast(Add(?Mul(?Div( \
             MatMul(q, t:Transpose(k)), over), scale), bias)))), v)",
    ];
    formulas.into_iter().map(|formula| Fusion::new(formula, attention)).collect()
}

fn attention(cx: &Builder, found: &Match) -> Result<Value, NoFusion> {
    let (q, k, v, bias) = (found.get("q")?, found.get("k")?, found.get("v")?, found.get("bias")?);
    let (perm, scores) = attention::scores(cx, found)
        .because("queries, keys and values are not known to have sizes that match")?;
    let precision =
        attention::precision(cx, found).because("the softmax is computed in another type")?;
    attention::over_keys(cx, found).because("the softmax is not over the keys")?;
    let past = scores[3].clone() - scores[2].clone();
    let mask = decoder_mask(&cx.model(), bias, &past);
    mask.because("the mask is not one of a decoder")?;
    let scale = attention::factor(cx, found, "scale")? / attention::factor(cx, found, "over")?;
    let cap = found.value("cap").map(|_| attention::factor(cx, found, "cap")).transpose()?;
    let softcap = cap.map_or(0.0, |cap| cap as f32);
    (cap.is_none() || softcap.is_normal() && softcap > 0.0).because("the cap is not positive")?;
    let options = attrs::Attention {
        scale: Some(attention::kept_scale(cx, q, scale).because(SCALE)?),
        softcap,
        softmax_precision: precision.map(schema::data_type),
        ..Default::default()
    };
    let mask = full_mask(cx, bias, &scores).because("the mask does not fit the scores")?;
    Ok(cx.attention(q, cx.transpose(k, &perm), v, Some(mask), None, None, None, options))
}
