//! Running sums, products and extremes along a dimension.

use crate::math::arcs::log_add_exp;
use crate::math::control::scan;
use crate::math::reduce::{Extreme, highest, lowest, running_sums};
use crate::meta;
use crate::{AtenOp, Complex, Cx, Lowered, args::Ignored, checks, op};
use pt2onnx_ir::Value;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_logcumsumexp, logcumsumexp, complex = logcumsumexp_complex),
    op!(aten::cummax, cumulative_extreme(Extreme::Max)),
    op!(aten::cummin, cumulative_extreme(Extreme::Min)),
    op!(aten::cumprod, cumprod, complex = cumprod_complex, meta = meta_counted),
    op!(aten::cumsum, cumsum, parts, meta = meta_counted),
    op!(aten::logcumsumexp, logcumsumexp, complex = logcumsumexp_complex, meta = meta::same),
];

/// `f(x)` in the type in which PyTorch's CPU kernels carry floats from element to element
/// (`at::acc_type`): float64 for float32.
fn accumulated(cx: &Cx, x: Value, f: impl FnOnce(Value) -> Value) -> Value {
    let wide = match cx.dtype(x) {
        DType::F32 => DType::F64,
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    };
    cx.cast(f(cx.cast(x, wide)), cx.dtype(x))
}

/// The sums of the first 1, 2, .. elements along `dim`, in the recorded type.
fn cumsum(cx: &Cx, x: Value, dim: i64, _dtype: Ignored) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let axis = cx.axis(x, dim)?;
    Ok(match cx.rank(x) {
        0 => x,
        _ => accumulated(cx, x, |x| running_sums(cx, x, axis)),
    })
}

/// The products of the first 1, 2, .. elements along `dim`, in the recorded type. `Scan`
/// multiplies: few runtimes have `CumProd`.
fn cumprod(cx: &Cx, x: Value, dim: i64, _dtype: Ignored) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok(x);
    }
    Ok(accumulated(cx, x, |x| {
        scan(cx, axis, &[x], &[Scalar::Int(1)], |state, slice| vec![cx.mul(state[0], slice[0])])[0]
    }))
}

/// [`cumprod`] of complex numbers.
fn cumprod_complex(cx: &Cx, x: Complex, dim: i64, _dtype: Ignored) -> Lowered {
    let x = x.cast(cx, cx.out_dtype()?);
    let axis = cx.axis(x.re, dim)?;
    if cx.rank(x.re) == 0 {
        return Ok(cx.pairs(x));
    }
    let start = [Scalar::Int(1), Scalar::Int(0)];
    Ok(scan_complex(cx, x, axis, start, |product, factor| product.mul(cx, factor)))
}

/// The largest or smallest of the first 1, 2, .. elements along `dim`, and the index of its last
/// occurrence. From the first NaN on, it is NaN.
const fn cumulative_extreme(of: Extreme) -> impl Fn(&Cx, Value, i64) -> Lowered<[Value; 2]> + Copy {
    move |cx, x, dim| {
        let axis = cx.axis(x, dim)?;
        if cx.rank(x) == 0 {
            return Ok([x, cx.scalar(0, DType::I64)]);
        }
        let dtype = cx.dtype(x);
        // ONNX orders no bools.
        let numbers = if dtype == DType::Bool { cx.cast(x, DType::I32) } else { x };
        let kind = cx.dtype(numbers);
        let first = match of {
            Extreme::Max => lowest(kind),
            Extreme::Min => highest(kind),
        };
        let indices = cx.cast(cx.iota(&cx.dim(x, axis as i64)), DType::I64);
        let start = [first, Scalar::Int(0)];
        let found = scan(cx, axis, &[numbers, indices], &start, |state, slice| {
            let better = match of {
                Extreme::Max => cx.greater_or_equal(slice[0], state[0]),
                Extreme::Min => cx.less_or_equal(slice[0], state[0]),
            };
            let better = if kind.is_float() { cx.or(better, cx.is_nan(slice[0])) } else { better };
            vec![cx.select(better, slice[0], state[0]), cx.select(better, slice[1], state[1])]
        });
        Ok([cx.cast(found[0], dtype), found[1]])
    }
}

/// A `Scan` of complex numbers by `next`, from `start`.
fn scan_complex(
    cx: &Cx,
    x: Complex,
    axis: usize,
    start: [Scalar; 2],
    next: impl Fn(Complex, Complex) -> Complex,
) -> Value {
    let found = scan(cx, axis, &x.complex(cx).parts(), &start, |state, slice| {
        next(Complex::new(state[0], state[1]), Complex::new(slice[0], slice[1])).parts()
    });
    cx.pairs(Complex::new(found[0], found[1]))
}

/// `log(sum(exp(x)))` of the first 1, 2, .. elements along `dim`: a `Scan` of [`log_add_exp`] of
/// the result so far and the next slice.
fn logcumsumexp(cx: &Cx, x: Value, dim: i64) -> Lowered {
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok(x);
    }
    Ok(accumulated(cx, x, |x| {
        scan(cx, axis, &[x], &[Scalar::Float(f64::NEG_INFINITY)], |state, slice| {
            vec![log_add_exp(cx, state[0], slice[0])]
        })[0]
    }))
}

/// [`logcumsumexp`] of complex numbers: a `Scan` of [`Complex::log_add_exp`]. The imaginary parts
/// are not reduced to an angle.
fn logcumsumexp_complex(cx: &Cx, x: Complex, dim: i64) -> Lowered {
    let axis = cx.axis(x.re, dim)?;
    if cx.rank(x.re) == 0 {
        return Ok(cx.pairs(x));
    }
    let start = [Scalar::Float(f64::NEG_INFINITY), Scalar::Int(0)];
    Ok(scan_complex(cx, x, axis, start, |sum, term| term.log_add_exp(cx, sum)))
}

/// [`meta::made`], and integers become int64.
fn meta_counted(cx: &Cx, args: meta::Made) -> Lowered {
    let natural = args.input.map(|x| meta::sum_type(cx, x));
    meta::made(cx, meta::Made { dtype: args.dtype.or(natural), ..args })
}

checks! {
    // Bools are summed as int64.
    "aten.cumsum(x: b8[s0, 3], -1) -> i64[s0, 3]" => "
    val_0 = Cast <to: int = 7> (x)
    cumsum = CumSum (val_0, 1)
    ";

    // Floats are added up in float64.
    "aten.cumsum(x: f32[s0], 0) -> f32[s0]" => "
    val_0 = Cast <to: int = 11> (x)
    val_1 = CumSum (val_0, 0)
    cumsum = Cast <to: int = 1> (val_1)
    ";
}
