//! Operations on the bits of integers, on truth values, and greatest common divisors.

use crate::math::control::{any, repeat};
use crate::math::elementary::bools_or_numbers;
use crate::{AtenOp, Complex, Cx, Lowered, TensorOrScalar, checks, op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::__and___Scalar, and),
    op!(aten::__and___Tensor, and),
    op!(aten::__lshift___Scalar, left_shift),
    op!(aten::__lshift___Tensor, left_shift),
    op!(aten::__or___Scalar, or),
    op!(aten::__or___Tensor, or),
    op!(aten::__rshift___Scalar, right_shift),
    op!(aten::__rshift___Tensor, right_shift),
    op!(aten::__xor___Scalar, xor),
    op!(aten::__xor___Tensor, xor),
    op!(aten::bitwise_and_Scalar, and),
    op!(aten::bitwise_and_Scalar_Tensor, and),
    op!(aten::bitwise_and_Tensor, and),
    op!(aten::bitwise_left_shift_Scalar_Tensor, left_shift),
    op!(aten::bitwise_left_shift_Tensor, left_shift),
    op!(aten::bitwise_left_shift_Tensor_Scalar, left_shift),
    op!(aten::bitwise_not, not),
    op!(aten::bitwise_or_Scalar, or),
    op!(aten::bitwise_or_Scalar_Tensor, or),
    op!(aten::bitwise_or_Tensor, or),
    op!(aten::bitwise_right_shift_Scalar_Tensor, right_shift),
    op!(aten::bitwise_right_shift_Tensor, right_shift),
    op!(aten::bitwise_right_shift_Tensor_Scalar, right_shift),
    op!(aten::bitwise_xor_Scalar, xor),
    op!(aten::bitwise_xor_Scalar_Tensor, xor),
    op!(aten::bitwise_xor_Tensor, xor),
    op!(aten::gcd, gcd),
    op!(aten::lcm, lcm),
    op!(aten::logical_and, logical_and),
    op!(aten::logical_not, logical_not),
    op!(aten::logical_or, logical_or),
    op!(aten::logical_xor, logical_xor),
];

fn and(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(bools_or_numbers(cx, a, b, |a, b| cx.and(a, b), |a, b| cx.bitwise_and(a, b)))
}

fn or(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(bools_or_numbers(cx, a, b, |a, b| cx.or(a, b), |a, b| cx.bitwise_or(a, b)))
}

fn xor(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(bools_or_numbers(cx, a, b, |a, b| cx.xor(a, b), |a, b| cx.bitwise_xor(a, b)))
}

fn not(cx: &Cx, x: Value) -> Lowered {
    Ok(match cx.dtype(x) {
        DType::Bool => cx.not(x),
        _ => cx.bitwise_not(x),
    })
}

/// The value in `dtype` of the lowest bits of a number.
fn wrapped(bits: i64, dtype: DType) -> i64 {
    let spare = 64u32.saturating_sub(dtype.bits() as u32);
    if dtype.is_unsigned() {
        ((bits as u64) << spare >> spare) as i64
    } else {
        bits << spare >> spare
    }
}

/// `a * 2^b`. The power comes from a table, which gives 0 where `b` is negative or not below the
/// number of bits.
fn left_shift(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    let dtype = cx.dtype(a);
    let width = dtype.bits() as i64;
    let powers = (0..width).map(|k| wrapped(1 << k, dtype));
    let table: Vec<i64> = std::iter::once(0).chain(powers).chain([0]).collect();
    let table = cx.cast(cx.vector(&table), dtype);
    let b = cx.cast(b, DType::I64);
    let held = cx.clamp(b, Some((-1i64).into()), Some(width.into()));
    Ok(cx.mul(a, cx.gather(table, cx.add(held, 1), 0)))
}

/// `floor(a / 2^b)`; a division if `b` is known. Where `b` is negative or not below the number of
/// bits, it is 0, or -1 for negative `a`. ONNX shifts unsigned numbers only: a negative number is
/// inverted before and after.
fn right_shift(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let known = match &b {
        TensorOrScalar::Scalar(s) => Some(s.to_i64()),
        _ => None,
    };
    let (a, b) = cx.promote(a, b);
    let dtype = cx.dtype(a);
    let last = dtype.bits() as i64 - 1;
    if let Some(bits) = known.filter(|b| (0..last).contains(b)) {
        let power = cx.scalar(1i64 << bits, dtype);
        return Ok(if dtype.is_unsigned() {
            cx.div(a, power)
        } else {
            cx.div(cx.sub(a, cx.mod_(a, power, attrs::Mod::default())), power)
        });
    }
    let shift = |x| {
        let bits = cx.cast(b, DType::I64);
        let held = cx.clamp(bits, Some(0i64.into()), Some(last.into()));
        let held_bits = cx.cast(held, DType::U64);
        let shifted = cx.bit_shift(cx.cast(x, DType::U64), held_bits, "RIGHT");
        cx.select(cx.equal(held, bits), cx.cast(shifted, dtype), 0)
    };
    if dtype.is_unsigned() {
        return Ok(shift(a));
    }
    // -1 for negative numbers, else 0: an exclusive or with it inverts negative numbers, before and
    // after.
    let sign = cx.neg(cx.cast(cx.less(a, 0), dtype));
    Ok(cx.bitwise_xor(shift(cx.bitwise_xor(a, sign)), sign))
}

/// Whether both numbers are not 0.
fn logical_and(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    Ok(cx.and(a.truth(cx), b.truth(cx)))
}

/// Whether one number or both are not 0.
fn logical_or(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    Ok(cx.or(a.truth(cx), b.truth(cx)))
}

/// Whether exactly one number is not 0.
fn logical_xor(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    Ok(cx.xor(a.truth(cx), b.truth(cx)))
}

/// Whether the number is 0.
fn logical_not(cx: &Cx, x: Complex) -> Lowered {
    Ok(cx.not(x.truth(cx)))
}

/// The greatest common divisor.
fn gcd(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(divisor_of(cx, a, b))
}

/// The greatest common divisor by Euclid's algorithm, on all elements at once until all remainders
/// are 0.
fn divisor_of(cx: &Cx, a: Value, b: Value) -> Value {
    let shape = cx.broadcast_shapes(&cx.shape(a), &cx.shape(b));
    let start = [a, b].map(|v| cx.expand(cx.abs(v), &shape));
    let last = repeat(cx, None, &start, |_, pair| {
        let done = cx.equal(pair[1], 0);
        let divisor = cx.select(done, 1, pair[1]);
        let rest = cx.mod_(pair[0], divisor, attrs::Mod::default());
        let next = cx.select(done, pair[0], pair[1]);
        (Some(any(cx, cx.cast(rest, DType::Bool))), vec![next, rest])
    });
    // The last remainder is 0: its divisor divides both.
    last[0]
}

/// The least common multiple `|a / gcd(a, b) * b|`, computed in at least 32 bits, as in C. It is 0
/// for two zeros.
fn lcm(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    let dtype = cx.dtype(a);
    let wide = if dtype.bits() < 32 { DType::I32 } else { dtype };
    let (a, b) = (cx.cast(a, wide), cx.cast(b, wide));
    let divisor = divisor_of(cx, a, b);
    let divisor = cx.select(cx.equal(divisor, 0), 1, divisor);
    Ok(cx.cast(cx.abs(cx.mul(cx.div(a, divisor), b)), dtype))
}

checks! {
    // Shifts by a known number divide.
    "aten.bitwise_right_shift.Tensor_Scalar(x: i32[s0], 3) -> i32[s0]" => "
    val_0 = Mod (x, int32 {8})
    val_1 = Sub (x, val_0)
    bitwise_right_shift = Div (val_1, int32 {8})
    ";

    // A complex number is true if a part is.
    "aten.logical_not(x: c64[s0]) -> b8[s0]" => "
    val_0 = Gather <axis: int = 1> (x, 0)
    val_1 = Gather <axis: int = 1> (x, 1)
    val_2 = Cast <to: int = 9> (val_0)
    val_3 = Cast <to: int = 9> (val_1)
    val_4 = Or (val_2, val_3)
    logical_not = Not (val_4)
    ";
}
