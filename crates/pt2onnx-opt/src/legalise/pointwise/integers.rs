//! Arithmetic that older forms do not have: remainders, shifts, powers of integers; and rounding.

use crate::legalise::{Emitted, Outcome, attributes, input, replace};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Reduction, Type, Value, attrs};
use pt2onnx_tensor::DType;

/// `Mod` by a division that truncates.
pub(crate) fn modulo(model: &mut Model, id: NodeId) -> Outcome {
    if input(&model[id], 0).map(|x| model.dtype(x))?.is_none_or(|t| t.is_float()) {
        return Err("Mod of floats needs a newer opset".into());
    }
    replace(model, id, |cx, node| {
        let (a, b) = (input(node, 0)?, input(node, 1)?);
        let rest = cx.sub(a, cx.mul(cx.div(a, b), b));
        if attrs::Mod::read(node)?.fmod || cx.dtype(a).is_unsigned() {
            return Ok(vec![rest]);
        }
        // The remainder has the divisor's sign.
        let other_side = cx.xor(cx.less(rest, 0), cx.less(b, 0));
        let wrong = cx.and(other_side, cx.not(cx.equal(rest, 0)));
        Ok(vec![cx.select(wrong, cx.add(rest, b), rest)])
    })
}

/// `Round`: halves are rounded to even.
pub(crate) fn round(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    let below = cx.floor(x);
    let rest = cx.sub(x, below);
    let even = cx.equal(cx.mul(cx.floor(cx.mul(below, 0.5)), 2.0), below);
    let odd_half = cx.and(cx.equal(rest, 0.5), cx.not(even));
    let up = cx.or(cx.greater(rest, 0.5), odd_half);
    Ok(vec![cx.select(up, cx.add(below, 1.0), below)])
}

/// `BitShift` by products and quotients with powers of two.
pub(crate) fn shift(cx: &Builder, node: &Node) -> Emitted {
    let (x, by) = (input(node, 0)?, input(node, 1)?);
    let two = cx.scalar(2.0, DType::F64);
    let factor = cx.pow(two, cx.cast(by, DType::F64));
    let factor = cx.cast(factor, cx.dtype(x));
    Ok(vec![match attrs::BitShift::direction(node)? {
        "LEFT" => cx.mul(x, factor),
        _ => cx.div(x, factor),
    }])
}

/// `Pow`: the exponent gets the type of the base. Powers of integers are computed by products.
pub(crate) fn pow(model: &mut Model, id: NodeId) -> Outcome {
    let node = &model[id];
    let types = (input(node, 0).map(|x| model.dtype(x))?, input(node, 1).map(|x| model.dtype(x))?);
    let (Some(base), Some(exponent)) = types else {
        return Err("the types of this Pow are not known".into());
    };
    if base.is_float() {
        return replace(model, id, |cx, node| {
            let exponent = cx.cast(input(node, 1)?, base);
            Ok(vec![cx.pow(input(node, 0)?, exponent)])
        });
    }
    if exponent.is_float() {
        return Err("integers to the power of floats need a newer opset".into());
    }
    let known = model.const_ints(input(node, 1)?);
    let negative =
        !exponent.is_unsigned() && known.as_ref().is_none_or(|k| k.iter().any(|&n| n < 0));
    replace(model, id, |cx, node| {
        let (base, exponent) = (input(node, 0)?, input(node, 1)?);
        Ok(vec![match known.as_deref() {
            Some(&[n @ 1..=8]) if cx.rank(exponent) == 0 => {
                (1..n).fold(base, |power, _| cx.mul(power, base))
            }
            _ if negative => {
                let power = by_squaring(cx, base, cx.abs(exponent));
                // The whole fractions: 1 / 1 and 1 / -1.
                let whole = cx.equal(cx.abs(base), 1);
                let fraction = cx.and(cx.less(exponent, 0), cx.not(whole));
                cx.select(fraction, 0, power)
            }
            _ => by_squaring(cx, base, exponent),
        }])
    })
}

/// `base` to the power of exponents that are not negative, by squaring in a loop.
fn by_squaring(cx: &Builder, base: Value, exponent: Value) -> Value {
    let (kind, dims) = (cx.dtype(base), cx.broadcast_shapes(&cx.shape(base), &cx.shape(exponent)));
    let types = [
        Type::tensor(DType::I64, []),
        Type::tensor(DType::Bool, []),
        Type::tensor(kind, dims.clone()),
        Type::tensor(kind, dims.clone()),
        Type::tensor(DType::I64, dims.clone()),
    ];
    let rest = cx.cast(exponent, DType::I64);
    let ones = cx.scalar(1, kind);
    // All have the sizes of the result from the start.
    let zero = |like: Value| cx.mul(cx.cast(like, DType::I64), 0);
    let start = [
        cx.expand(ones, &dims),
        cx.add(base, cx.cast(zero(exponent), kind)),
        cx.add(rest, zero(base)),
    ];
    let body = cx.region(&types, |v| {
        let (power, square, rest) = (v[2], v[3], v[4]);
        let half = cx.div(rest, 2);
        let odd = cx.greater(cx.sub(rest, cx.mul(half, 2)), 0);
        let next = cx.mul(power, cx.select(odd, square, cx.scalar(1, kind)));
        let left = cx.cast(cx.greater(half, 0), DType::I64);
        let more = cx.greater(cx.reduce(Reduction::Sum, left, &[], false), 0);
        vec![more, next, cx.mul(square, square), half]
    });
    let go = cx.scalar(true, DType::Bool);
    let inputs: Vec<Option<Value>> = [None, Some(go)].into_iter().chain(start.map(Some)).collect();
    let made = cx.emit("Loop", &inputs, attributes([("body", body.into())]), 3);
    cx.set_type(made[0], Type::tensor(kind, dims));
    made[0]
}
