//! Group normalization: the formula that the lowering makes of it becomes the operator.

use crate::{
    facts::{filling_of, known, tensor_type},
    fusion::Fusion,
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Builder, Value, attrs};
use pt2onnx_symbolic::Expr;

/// Instance normalization of groups of channels, then scale and bias of the channels.
pub(crate) fn group_norm_fusions() -> Result<Vec<Fusion>, PatternError> {
    Ok(vec![
        Fusion::new("Reshape(i:InstanceNormalization(r:Reshape(x), one, zero))", |cx, found| {
            let (x, groups, channels) = grouped(cx, found)?;
            let plain = filling_of(&cx.model(), found.value("one")?) == Some(1.0)
                && filling_of(&cx.model(), found.value("zero")?) == Some(0.0);
            if !plain {
                return None;
            }
            let dtype = cx.dtype(x);
            let all = |number: i64| cx.full(&[Expr::int(channels)], number, dtype);
            let epsilon = attrs::InstanceNormalization::read(&found.node(cx, "i")?).ok()?.epsilon;
            let options = attrs::GroupNormalization { epsilon, ..Default::default() };
            Some(cx.group_normalization(x, all(1), all(0), groups, options))
        })?,
        Fusion::new("Mul(g:GroupNormalization(x, one, zero), scale)", |cx, found| {
            let (one, zero) = (found.value("one")?, found.value("zero")?);
            let plain = filling_of(&cx.model(), one) == Some(1.0)
                && filling_of(&cx.model(), zero) == Some(0.0);
            let scale = per_channel(cx, found, "scale").filter(|_| plain)?;
            with_vectors(cx, found, scale, zero)
        })?,
        Fusion::new("Add(g:GroupNormalization(x, scale, zero), bias)", |cx, found| {
            let plain = filling_of(&cx.model(), found.value("zero")?) == Some(0.0);
            let bias = per_channel(cx, found, "bias").filter(|_| plain)?;
            with_vectors(cx, found, found.value("scale")?, bias)
        })?,
    ])
}

/// `x`, the number of groups, and the number of channels, if `r` lays each group's channels in one row, and the result has the shape of
/// `x`.
fn grouped(cx: &Builder, found: &Match) -> Option<(Value, i64, i64)> {
    let x = found.value("x")?;
    let (given, laid) = (cx.known_shape(x)?, cx.known_shape(found.value("r")?)?);
    let ([batch, channels, _, ..], [same, groups, _]) = (given.as_slice(), laid.as_slice()) else {
        return None;
    };
    let (channels, groups) = (channels.as_int()?, groups.as_int()?);
    let fits = batch == same && known(batch) && groups > 0 && channels % groups == 0;
    (fits && found.keeps_shape(cx, x)).then_some((x, groups, channels))
}

/// The factor or summand of each channel with that name, as a vector: it has the type of `x`, and broadcasts along the other dimensions.
fn per_channel(cx: &Builder, found: &Match, name: &str) -> Option<Value> {
    let (x, value) = (found.value("x")?, found.value(name)?);
    let channels = {
        let model = cx.model();
        let ((a, x), (b, given)) = (tensor_type(&model, x)?, tensor_type(&model, value)?);
        // The channels are dimension 1 of `x`.
        let place = (given.len() + 1).checked_sub(x.len())?;
        let others = given.iter().enumerate().all(|(i, d)| i == place || *d == Expr::int(1));
        let fits = a == b && given.get(place)? == x.get(1)? && others;
        fits.then(|| x[1].clone())?
    };
    (found.keeps_shape(cx, x)).then(|| cx.reshape(value, &[channels]))
}

/// The normalization found, with other vectors.
fn with_vectors(cx: &Builder, found: &Match, scale: Value, bias: Value) -> Option<Value> {
    let node = found.node(cx, "g")?;
    let inputs = [node.input(0), Some(scale), Some(bias)];
    Some(cx.emit1("GroupNormalization", &inputs, node.attributes))
}
