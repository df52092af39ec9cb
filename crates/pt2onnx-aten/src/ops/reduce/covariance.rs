//! Covariances and correlations of the rows of a matrix.

use crate::math::matrix::diagonal;
use crate::math::reduce::reduce;
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, arguments, checks, op};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Scalar;

pub(crate) static OPS: &[AtenOp] = &[op!(aten::corrcoef, corrcoef), op!(aten::cov, cov)];

arguments! {
    /// Arguments of `cov`. A row of `input` is a variable, a column an observation.
    struct CovArgs {
        input: Complex,
        correction: i64,
        fweights: Option<Value>,
        aweights: Option<Value>,
    }
}

/// `(x - mean) w (x - mean)^H / (sum(w) - correction)`. The weights `w` are the products of
/// frequencies and of reliabilities `a`; with these, the correction counts `sum(w a) / sum(w)`
/// times. A divisor is never negative.
fn covariance(cx: &Cx, args: CovArgs) -> Lowered<Complex> {
    let CovArgs { input: x, correction, fweights, aweights } = args;
    let operands = [Some(x.re), aweights].into_iter().flatten().map(Into::into);
    let dtype = cx.float_type(cx.result_type(&operands.collect::<Vec<_>>()));
    if cx.rank(x.re) > 2 {
        return Err(LowerError::unsupported("cov takes vectors and matrices"));
    }
    let x = x.cast(cx, dtype).map(|part| match cx.rank(part) {
        0 => cx.reshape(part, &[Expr::int(1), Expr::int(1)]),
        1 => cx.unsqueeze(part, &[0]),
        _ => part,
    });
    let [fweights, aweights] = [fweights, aweights].map(|w| w.map(|w| cx.cast(w, dtype)));
    let weights = match (fweights, aweights) {
        (Some(f), Some(a)) => Some(cx.mul(f, a)),
        (f, a) => f.or(a),
    };
    let sum = |x: Value, keepdim| reduce(cx, Reduction::Sum, x, &[cx.rank(x) - 1], keepdim);
    let weigh = |x: Complex| weights.map_or(x, |w| x.times(cx, w));
    let total = match weights {
        Some(w) => sum(w, false),
        None => cx.cast(cx.size(&cx.dim(x.re, 1)), dtype),
    };
    let mean = weigh(x).map(|part| cx.div(sum(part, true), total));
    let lost = match (weights, aweights) {
        (Some(w), Some(a)) if correction != 0 => {
            cx.mul(cx.div(sum(cx.mul(w, a), false), total), correction)
        }
        _ => cx.scalar(correction, dtype),
    };
    let freedom = cx.maximum(cx.sub(total, lost), 0.0);
    let off = x.sub(cx, mean);
    let products = off.matmul(cx, weigh(off).adjoint(cx));
    let found = products.map(|part| cx.div(part, freedom));
    Ok(if cx.dim(x.re, 0) == Expr::int(1) {
        found.map(|part| cx.reshape(part, &[]))
    } else {
        found
    })
}

/// The covariances of all pairs of rows; of one row its variance, without dimensions.
fn cov(cx: &Cx, args: CovArgs) -> Lowered {
    Ok(covariance(cx, args)?.value(cx))
}

/// The covariances divided by the standard deviations of both variables, parts of numbers within -1
/// and 1.
fn corrcoef(cx: &Cx, x: Complex) -> Lowered {
    let args = CovArgs { input: x, correction: 1, fweights: None, aweights: None };
    let found = covariance(cx, args)?;
    if cx.rank(found.re) == 0 {
        return Ok(found.div(cx, found).value(cx));
    }
    let deviation = cx.sqrt(diagonal(cx, found).re);
    let (column, row) = (cx.unsqueeze(deviation, &[1]), cx.unsqueeze(deviation, &[0]));
    let scaled = found.over(cx, column).over(cx, row);
    Ok(scaled
        .map(|part| cx.clamp(part, Some(Scalar::Float(-1.0)), Some(Scalar::Float(1.0))))
        .value(cx))
}

checks! {
    // Rows are variables.
    "aten.cov(x: f32[3, 5]) -> f32[3, 3]" => "
    val_0 = Cast <to: int = 1> (5)
    val_1 = ReduceSum <keepdims: int = 1> (x, [1])
    val_2 = Div (val_1, val_0)
    val_3 = Sub (val_0, 1.0)
    val_4 = Max (val_3, 0.0)
    val_5 = Sub (x, val_2)
    val_6 = Transpose <perm: ints = [1, 0]> (val_5)
    val_7 = MatMul (val_5, val_6)
    cov = Div (val_7, val_4)
    ";

    // Weights count observations.
    "aten.cov(x: f32[n], aweights = w: f32[n]) -> f32[]" => "
    val_0 = Unsqueeze (x, [0])
    val_1 = ReduceSum <keepdims: int = 0> (w)
    val_2 = Mul (val_0, w)
    val_3 = ReduceSum <keepdims: int = 1> (val_2, [1])
    val_4 = Div (val_3, val_1)
    val_5 = Mul (w, w)
    val_6 = ReduceSum <keepdims: int = 0> (val_5)
    val_7 = Div (val_6, val_1)
    val_8 = Sub (val_1, val_7)
    val_9 = Max (val_8, 0.0)
    val_10 = Sub (val_0, val_4)
    val_11 = Mul (val_10, w)
    val_12 = Transpose <perm: ints = [1, 0]> (val_11)
    val_13 = MatMul (val_10, val_12)
    val_14 = Div (val_13, val_9)
    cov = Reshape (val_14, [])
    ";
}
