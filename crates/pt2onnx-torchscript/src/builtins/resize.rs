//! `interpolate` of archives that call it as one operator: the operator for its mode and number of
//! dimensions.

use crate::{
    builtins::Call,
    error::Problem,
    eval::{Evaluator, Step, arith, unsupported},
    schema::Type,
    value::{Value, args, known},
};
use pt2onnx_symbolic::{Expr, Func};

/// The parameters, in order.
const PARAMS: [&str; 7] = [
    "input",
    "size",
    "scale_factor",
    "mode",
    "align_corners",
    "recompute_scale_factor",
    "antialias",
];

/// `aten::__interpolate`.
pub(crate) fn interpolate(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let mut at = 0..;
    let [input, size, scale, mode, align, recompute, smooth] = PARAMS.map(|param| {
        let given = call.args.get(at.next().unwrap_or(0)).or_else(|| call.keyword(param));
        given.cloned().unwrap_or(Value::None)
    });
    let sizes: Vec<Expr> = ev.meta(input.tensor()?)?.sizes.iter().skip(2).cloned().collect();
    let spatial = sizes.len();
    let mode = mode.as_str().unwrap_or("nearest");
    let (mut size, mut scale) = (each(ev, &size, spatial)?, each(ev, &scale, spatial)?);
    if recompute.as_bool() == Some(true)
        && let Some(scales) = scale.take()
    {
        let scaled = sizes.iter().zip(&scales).map(|(size, scale)| {
            let scale = scale.number().map(arith::to_float).unwrap_or(Expr::ONE);
            let product = arith::to_float(size) * scale;
            Value::Int(match known(&product) {
                Some(f) => Expr::int(f.floor() as i64),
                None => Expr::call(Func::FloorToInt, vec![product]),
            })
        });
        size = Some(scaled.collect());
    }
    if let Some(scales) = &mut scale {
        for scale in scales {
            *scale = ev.real_of(scale)?;
        }
    }
    let mut list = |items: Option<Vec<Value>>, ty: Type| match items {
        Some(items) => ev.list(items, Some(ty)),
        None => Ok(Value::None),
    };
    let (size, scales) = (list(size, Type::Int)?, list(scale, Type::Float)?);
    let (op, aligned) = match (mode, spatial, smooth.as_bool() == Some(true)) {
        ("nearest", 1..=3, false) => (format!("upsample_nearest{spatial}d"), false),
        ("nearest-exact", 1..=3, false) => (format!("_upsample_nearest_exact{spatial}d"), false),
        ("linear", 1, false) | ("bilinear" | "bicubic", 2, false) | ("trilinear", 3, false) => {
            (format!("upsample_{mode}{spatial}d"), true)
        }
        ("bilinear" | "bicubic", 2, true) => (format!("_upsample_{mode}2d_aa"), true),
        ("area", 1..=3, false) if !matches!(size, Value::None) => {
            return ev.aten(&format!("adaptive_avg_pool{spatial}d"), args![input, size]);
        }
        _ => {
            let text = format!("interpolate with mode {mode} of {spatial} dimensions");
            return unsupported(text);
        }
    };
    let mut args = vec![input, size];
    args.extend(aligned.then(|| Value::bool(align.as_bool().unwrap_or(false))));
    args.push(scales);
    ev.aten(&op, args)
}

/// One value for each dimension: of a list, or a number for all.
fn each(ev: &Evaluator<'_>, value: &Value, count: usize) -> Step<Option<Vec<Value>>> {
    match value {
        Value::None => Ok(None),
        Value::Int(_) | Value::Float(_) => Ok(Some(vec![value.clone(); count])),
        _ => match ev.sequence(value) {
            Some(items) if items.len() == count => Ok(Some(items)),
            _ => {
                let text = "ValueError: sizes or factors for another number of dimensions";
                Err(Problem::Raises(text.to_owned()))
            }
        },
    }
}
