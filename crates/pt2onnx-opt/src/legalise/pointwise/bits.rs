//! Bitwise operators by arithmetic on limbs of 32 bits, for which int64 is wide enough.

use crate::legalise::{Emitted, input};
use pt2onnx_ir::{Builder, Node, Reduction, Value, attrs};
use pt2onnx_tensor::{DType, Tensor};

const LIMB: i64 = 1 << 32;

/// `-1 - x`; for unsigned types, the largest number minus `x`.
pub(crate) fn not(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    let kind = cx.dtype(x);
    let ones = cx.scalar(-1, kind);
    Ok(vec![cx.sub(ones, x)])
}

/// `And` bit by bit; from it, `a | b = a + b - (a & b)` and `a ^ b = a + b - 2 (a & b)`.
pub(crate) fn binary(cx: &Builder, node: &Node) -> Emitted {
    let (a, b) = (input(node, 0)?, input(node, 1)?);
    let kind = cx.dtype(a);
    let combined = |a: Value, b: Value, bits: usize| {
        let both = and(cx, a, b, bits);
        match node.op() {
            "BitwiseAnd" => both,
            "BitwiseOr" => cx.sub(cx.add(a, b), both),
            _ => cx.sub(cx.add(a, b), cx.mul(both, 2)),
        }
    };
    if kind == DType::I64 {
        let [(a_low, a_high), (b_low, b_high)] = [split(cx, a), split(cx, b)];
        let low = combined(a_low, b_low, 32);
        let high = signed(cx, combined(a_high, b_high, 32), 32);
        return Ok(vec![cx.add(cx.mul(high, LIMB), low)]);
    }
    if kind == DType::U64 {
        let limbs = |x: Value| {
            let base = cx.scalar(LIMB, kind);
            let low = cx.mod_(x, base, attrs::Mod::default());
            (cx.cast(low, DType::I64), cx.cast(cx.div(x, base), DType::I64))
        };
        let [(a_low, a_high), (b_low, b_high)] = [limbs(a), limbs(b)];
        let limb = |x: Value| cx.cast(x, kind);
        let (low, high) = (combined(a_low, b_low, 32), combined(a_high, b_high, 32));
        return Ok(vec![cx.add(cx.mul(limb(high), LIMB), limb(low))]);
    }
    let bits = kind.bits();
    let limb = |x: Value| modulo(cx, cx.cast(x, DType::I64), 1 << bits);
    let mut result = combined(limb(a), limb(b), bits);
    if !kind.is_unsigned() {
        result = signed(cx, result, bits);
    }
    Ok(vec![cx.cast(result, kind)])
}

fn modulo(cx: &Builder, x: Value, by: i64) -> Value {
    cx.mod_(x, cx.scalar(by, DType::I64), attrs::Mod::default())
}

/// The lower and the upper limb; neither is negative.
fn split(cx: &Builder, x: Value) -> (Value, Value) {
    let low = modulo(cx, x, LIMB);
    let high = modulo(cx, cx.div(cx.sub(x, low), LIMB), LIMB);
    (low, high)
}

/// The number with these bits as its two's complement.
fn signed(cx: &Builder, x: Value, bits: usize) -> Value {
    let negative = cx.greater_or_equal(x, 1i64 << (bits - 1));
    cx.select(negative, cx.sub(x, 1i64 << bits), x)
}

fn and(cx: &Builder, a: Value, b: Value, bits: usize) -> Value {
    let powers: Vec<i64> = (0..bits).map(|i| 1 << i).collect();
    let powers = cx.constant(Tensor::vector(&powers));
    let spread = |x: Value| {
        let column = cx.unsqueeze(x, &[cx.rank(x)]);
        modulo(cx, cx.div(column, powers), 2)
    };
    let both = cx.mul(cx.mul(spread(a), spread(b)), powers);
    let last = cx.rank(both).saturating_sub(1);
    cx.reduce(Reduction::Sum, both, &[last], false)
}
