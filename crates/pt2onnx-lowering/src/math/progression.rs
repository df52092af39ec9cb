//! Numbers at equal distances. Their last digits are those of PyTorch's kernels on x86 processors
//! with AVX2.

use crate::Cx;
use half::{bf16, f16};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// The most numbers that become a constant; there are nodes for more.
const MOST: i64 = 1024;

/// Bytes of the vectors that PyTorch's kernels compute at once. They take two at a time, and the
/// rest one by one.
const VECTOR: usize = 32;

/// `steps` numbers from `low` to `high`, as `torch.linspace` gives them in type `dtype`. `None` if
/// they are too many, or of a type that has no numbers like these.
pub fn known_spaced(cx: &Cx, low: f64, high: f64, steps: &Expr, dtype: DType) -> Option<Value> {
    let steps = steps.as_int().filter(|steps| (0..=MOST).contains(steps))?;
    let (low, high, last) = (end(low, dtype), end(high, dtype), (steps - 1).max(1) as f64);
    // Counted from the nearer end.
    let each = |near: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        let number = |i: i64| {
            if i < steps / 2 || steps == 1 {
                near(low, i as f64)
            } else {
                near(high, (i - (steps - 1)) as f64)
            }
        };
        (0..steps).map(number).collect()
    };
    let single = (high as f32 - low as f32) / last as f32;
    // Products and sums are rounded once, but those of halves, which are computed as float32.
    let numbers = match dtype {
        DType::F32 => each(&|end, i| single.mul_add(i as f32, end as f32).into()),
        DType::F16 | DType::BF16 => each(&|end, i| (end as f32 + single * i as f32).into()),
        _ if dtype == DType::F64 || dtype.is_int() => {
            let step = (high - low) / last;
            each(&|end, i| step.mul_add(i, end))
        }
        _ => return None,
    };
    Some(constant(cx, &numbers, dtype))
}

/// `start + step * i` for each `i` below `length`, as `torch.arange` gives them in a type of
/// floats. `None` if they are too many, or of another type.
pub fn known_counted(cx: &Cx, start: f64, step: f64, length: &Expr, dtype: DType) -> Option<Value> {
    let length = length.as_int().filter(|length| (0..=MOST).contains(length))?;
    let length = usize::try_from(length).ok()?;
    let lanes = VECTOR / (dtype.bits() / 8).max(1);
    let in_vectors = length - length % (2 * lanes);
    let sum: fn(f64, f64, f64) -> f64 = match dtype {
        DType::F64 => |start, step, i| step.mul_add(i, start),
        DType::F32 => |start, step, i| f64::from(step.mul_add(i, start) as f32),
        DType::F16 => |start, step, i| half_sum(start, step, i, |x| f16::from_f32(x).into()),
        DType::BF16 => |start, step, i| half_sum(start, step, i, |x| bf16::from_f32(x).into()),
        _ => return None,
    };
    let number = |i: usize| {
        if i < in_vectors {
            // The first number of a vector is rounded, and the others are counted from it.
            sum(sum(start, step, (i - i % lanes) as f64), step, (i % lanes) as f64)
        } else {
            sum(start, step, i as f64)
        }
    };
    Some(constant(cx, &(0..length).map(number).collect::<Vec<_>>(), dtype))
}

/// An end of a range, rounded to the type of the result.
fn end(x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f16::from_f32(x as f32).into(),
        DType::BF16 => bf16::from_f32(x as f32).into(),
        _ if dtype.is_int() => x.trunc(),
        _ => x,
    }
}

/// A sum of halves, which is computed as float32.
fn half_sum(start: f64, step: f64, i: f64, round: impl Fn(f32) -> f32) -> f64 {
    round((step as f32).mul_add(i as f32, start as f32)).into()
}

fn constant(cx: &Cx, numbers: &[f64], dtype: DType) -> Value {
    let integers = || numbers.iter().map(|x| *x as i64).collect::<Vec<_>>();
    let tensor = if dtype.is_int() { Tensor::vector(&integers()) } else { Tensor::vector(numbers) };
    cx.cast(cx.constant(tensor), dtype)
}

/// `steps` numbers from `low` to `high`, as PyTorch rounds them: counted from the nearer end.
pub fn spaced(cx: &Cx, low: Value, high: Value, steps: &Expr, dtype: DType) -> Value {
    let wide = match dtype {
        DType::F64 => DType::F64,
        d if d.is_float() => DType::F32,
        _ => DType::F64,
    };
    let (low, high) = (cx.cast(low, wide), cx.cast(high, wide));
    let vector = |v| cx.reshape(v, &[Expr::int(1)]);
    // Integers are cut off, so that a product must not be rounded: each of two parts of the step
    // has half of its digits.
    let products = |i: Value, step: Value| {
        if dtype.is_float() {
            vec![cx.mul(i, step)]
        } else {
            let part = cx.cast(cx.cast(step, DType::F32), wide);
            vec![cx.mul(i, part), cx.mul(i, cx.sub(step, part))]
        }
    };
    let up = |i, step| products(i, step).into_iter().fold(low, |sum, x| cx.add(sum, x));
    let down = |i, step| products(i, step).into_iter().fold(high, |sum, x| cx.sub(sum, x));
    let Some(steps) = steps.as_int() else {
        let number = |e: &Expr| cx.cast(cx.size(e), wide);
        let (i, last) = (cx.cast(cx.iota(steps), wide), number(&(steps - 1)));
        let step = cx.div(cx.sub(high, low), cx.maximum(last, 1.0));
        // A single step is the low end.
        let half = cx.maximum(number(&steps.floor_div(&Expr::int(2))), 1.0);
        let (first, second) = (up(i, step), down(cx.sub(last, i), step));
        return cx.cast(cx.select(cx.less(i, half), first, second), dtype);
    };
    if steps <= 1 {
        let only = cx.cast(vector(low), dtype);
        return if steps == 1 { only } else { cx.full(&[Expr::int(0)], 0, dtype) };
    }
    let step = cx.div(cx.sub(high, low), (steps - 1) as f64);
    let (near, far) = (steps / 2, steps - steps / 2);
    let count = |n: i64| cx.cast(cx.iota(&Expr::int(n)), wide);
    let first = up(count(near), step);
    // steps - 1 - i, for the places i of the second half.
    let back = cx.sub(cx.scalar(far - 1, wide), count(far));
    let second = down(back, step);
    let all = if near == 0 { second } else { cx.concat(&[first, second], 0) };
    cx.cast(all, dtype)
}
