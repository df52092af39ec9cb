//! Norms and distances.

use super::common_reduce::{Extreme, all_axes, difference, extreme, iota, magnitude, reduce};
use super::{linalg, num::Num};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
        |cx: &Cx, a: Value, b: Value, p: f64, _: Option<i64>| cdist(cx, a, b, p)
    ),
    aten!(
        "aten::_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
        |cx: &Cx, a: Value, b: Value| cdist(cx, a, b, 2.0)
    ),
    aten!(
        "aten::_pdist_forward(Tensor self, float p=2.) -> Tensor",
        pdist
    ),
    aten!(
        "aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor",
        |cx: &Cx, a: Value, b: Value, p: f64, _: Option<i64>| cdist(cx, a, b, p)
    ),
    aten!(
        "aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
        cosine_similarity
    ),
    aten!("aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", |cx: &Cx, a: Value, b: Value, p: Scalar| -> Lowered {
        let (a, b) = cx.promote(a, b);
        let off = cx.sub(a, b);
        Ok(norm(cx, off, p.to_f64(), &all_axes(cx, off), false))
    }, complex: |cx: &Cx, a: Complex, b: Complex, p: Scalar| -> Lowered {
        let off = magnitude(cx, difference(cx, a, b));
        Ok(norm(cx, off, p.to_f64(), &all_axes(cx, off), false))
    }),
    aten!("aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", |cx: &Cx, x: Value, dims: Vec<i64>, keepdim: bool| {
        vector_norm(cx, x, Scalar::Int(2), Some(dims), keepdim, None)
    }, complex: |cx: &Cx, x: Complex, dims: Vec<i64>, keepdim: bool| {
        vector_norm(cx, magnitude(cx, x), Scalar::Int(2), Some(dims), keepdim, None)
    }),
    aten!("aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", numbered_matrix_norm, complex: numbered_matrix_norm),
    aten!("aten::linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", named_matrix_norm, complex: named_matrix_norm),
    aten!("aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", linalg_norm, complex: linalg_norm),
    aten!("aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", named_linalg_norm, complex: named_linalg_norm),
    aten!("aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", vector_norm, complex: |cx: &Cx, x: Complex, ord: Scalar, dims: Option<Vec<i64>>, keepdim: bool, dtype: Option<DType>| {
        vector_norm(cx, magnitude(cx, x), ord, dims, keepdim, dtype)
    }),
    aten!("aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor", |cx: &Cx, x: Value, p: Scalar| vector_norm(cx, x, p, None, false, None), complex:
        |cx: &Cx, x: Complex, p: Scalar| vector_norm(cx, magnitude(cx, x), p, None, false, None)),
    aten!("aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", |cx: &Cx, x: Value, p: Option<Scalar>, dims: Vec<i64>, keepdim: bool| {
        vector_norm(cx, x, two(p), Some(dims), keepdim, None)
    }, complex: |cx: &Cx, x: Complex, p: Option<Scalar>, dims: Vec<i64>, keepdim: bool| {
        vector_norm(cx, magnitude(cx, x), two(p), Some(dims), keepdim, None)
    }),
    aten!("aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor", |cx: &Cx, x: Value, p: Option<Scalar>, dims: Vec<i64>, keepdim: bool, dtype: DType| {
        vector_norm(cx, x, two(p), Some(dims), keepdim, Some(dtype))
    }, complex: |cx: &Cx, x: Complex, p: Option<Scalar>, dims: Vec<i64>, keepdim: bool, dtype: DType| {
        vector_norm(cx, magnitude(cx, x), two(p), Some(dims), keepdim, Some(dtype))
    }),
    aten!("aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor", |cx: &Cx, x: Value, p: Option<Scalar>, dtype: DType| {
        vector_norm(cx, x, two(p), None, false, Some(dtype))
    }, complex: |cx: &Cx, x: Complex, p: Option<Scalar>, dtype: DType| {
        vector_norm(cx, magnitude(cx, x), two(p), None, false, Some(dtype))
    }),
    aten!(
        "aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
        |cx: &Cx, v: Value, p: i64, dim: i64| -> Lowered {
            let kept = (dim != -1).then(|| cx.axis(v, dim)).transpose()?;
            let axes: Vec<usize> = (0..cx.rank(v)).filter(|&a| Some(a) != kept).collect();
            let found = norm(cx, v, p as f64, &axes, kept.is_some());
            Ok(found)
        }
    ),
    aten!(
        "aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) -> Tensor",
        pairwise_distance, complex: pairwise_distance_complex),
    aten!("aten::pdist(Tensor self, float p=2.) -> Tensor", pdist),
    aten!("aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", renorm, complex: |cx: &Cx, x: Complex, p: Scalar, dim: i64, most: Scalar| -> Lowered {
        let scale = renorm_scale(cx, magnitude(cx, x), p, dim, most)?;
        Ok(cx.pairs(Complex { re: cx.mul(x.re, scale), im: cx.mul(x.im, scale) }))
    }),
];

fn two(p: Option<Scalar>) -> Scalar {
    p.unwrap_or(Scalar::Int(2))
}

/// `sum(|x|^p)^(1/p)` over `axes`; how many are not 0, the largest and the smallest `|x|` for p = 0, inf, -inf.
fn norm(cx: &Cx, x: Value, p: f64, axes: &[usize], keepdim: bool) -> Value {
    let dtype = cx.dtype(x);
    let sum = |v| reduce(cx, "ReduceSum", v, axes, keepdim);
    if p == 0.0 {
        return sum(cx.cast(cx.cast(x, DType::Bool), dtype));
    }
    if axes.is_empty() {
        return cx.abs(x);
    }
    if p == 2.0 {
        reduce(cx, "ReduceL2", x, axes, keepdim)
    } else if p == 1.0 {
        reduce(cx, "ReduceL1", x, axes, keepdim)
    } else if p == f64::INFINITY {
        extreme(cx, Extreme::Max, cx.abs(x), axes, keepdim)
    } else if p == f64::NEG_INFINITY {
        extreme(cx, Extreme::Min, cx.abs(x), axes, keepdim)
    } else {
        // Of an even power, the sign is lost anyway.
        let even = p > 0.0 && p % 2.0 == 0.0;
        let base = if even { x } else { cx.abs(x) };
        cx.pow(sum(cx.pow(base, p)), 1.0 / p)
    }
}

/// [`norm`] in the recorded type, over `dims` or all dimensions.
fn vector_norm(
    cx: &Cx,
    x: Value,
    ord: Scalar,
    dims: Option<Vec<i64>>,
    keepdim: bool,
    _: Option<DType>,
) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let axes = cx.axes(x, dims.as_deref())?;
    let p = ord.to_f64();
    let empty = super::common_reduce::is_empty(cx, x, &axes);
    if empty && p.is_infinite() {
        let value = if p > 0.0 { 0.0 } else { f64::INFINITY };
        return Ok(cx.full(&cx.out_shape()?, value, cx.dtype(x)));
    }
    Ok(norm(cx, x, p, &axes, keepdim))
}

/// What a matrix norm is called.
enum Order {
    Number(f64),
    Name(String),
}

fn numbered_matrix_norm(
    cx: &Cx,
    x: Num,
    ord: Scalar,
    dims: Vec<i64>,
    keepdim: bool,
    _: Option<DType>,
) -> Lowered {
    matrix_norm(cx, x, &Order::Number(ord.to_f64()), &dims, keepdim)
}

fn named_matrix_norm(
    cx: &Cx,
    x: Num,
    ord: String,
    dims: Vec<i64>,
    keepdim: bool,
    _: Option<DType>,
) -> Lowered {
    matrix_norm(cx, x, &Order::Name(ord), &dims, keepdim)
}

fn named_linalg_norm(
    cx: &Cx,
    x: Num,
    ord: String,
    dims: Option<Vec<i64>>,
    keepdim: bool,
    _: Option<DType>,
) -> Lowered {
    let dims = dims.unwrap_or_else(|| vec![-2, -1]);
    matrix_norm(cx, x, &Order::Name(ord), &dims, keepdim)
}

/// In the recorded type.
fn matrix_norm(cx: &Cx, x: Num, ord: &Order, dims: &[i64], keepdim: bool) -> Lowered {
    let matrix = x.cast(cx, cx.out_dtype()?);
    let x = match matrix.im {
        None => matrix.re,
        Some(_) => matrix.abs(cx),
    };
    let &[rows, columns] = dims else {
        return Err(LowerError::unsupported(
            "matrix norms are over two dimensions",
        ));
    };
    let (rows, columns) = (cx.axis(x, rows)?, cx.axis(x, columns)?);
    let singular = |op| norm_of_singular_values(cx, op, matrix, rows, columns, keepdim);
    match ord {
        Order::Name(name) if name == "fro" => {
            Ok(reduce(cx, "ReduceL2", x, &[rows, columns], keepdim))
        }
        Order::Name(name) if name == "nuc" => singular("ReduceSum"),
        Order::Name(name) => {
            let what = format!("there is no matrix norm `{name}`");
            Err(LowerError::unsupported(what))
        }
        Order::Number(p) if *p == 2.0 => singular("ReduceMax"),
        Order::Number(p) if *p == -2.0 => singular("ReduceMin"),
        Order::Number(p) => {
            // The largest (or smallest) sum: of columns for 1, of rows for infinity.
            let (summed, other) = if p.abs() == 1.0 {
                (rows, columns)
            } else {
                (columns, rows)
            };
            let of = if *p > 0.0 { Extreme::Max } else { Extreme::Min };
            let sums = reduce(cx, "ReduceL1", x, &[summed], true);
            let found = extreme(cx, of, sums, &[other], true);
            Ok(if keepdim {
                found
            } else {
                cx.squeeze(found, &[rows, columns])
            })
        }
    }
}

/// The singular values' sum, largest or smallest; of no singular values, 0.
fn norm_of_singular_values(
    cx: &Cx,
    op: &'static str,
    x: Num,
    rows: usize,
    columns: usize,
    keepdim: bool,
) -> Lowered {
    if [rows, columns]
        .iter()
        .any(|&d| cx.dim(x.re, d as i64).as_int() == Some(0))
    {
        return Ok(cx.full(&cx.out_shape()?, 0, cx.dtype(x.re)));
    }
    let stay = (0..cx.rank(x.re)).filter(|d| ![rows, columns].contains(d));
    let order: Vec<usize> = stay.chain([rows, columns]).collect();
    let values = linalg::svd::singular_values(cx, x.map(|x| cx.transpose(x, &order)));
    let found = cx.reduce(op, values, &[cx.rank(values) - 1], false);
    Ok(match keepdim {
        true => cx.unsqueeze(found, &[rows, columns]),
        false => found,
    })
}

/// Of a matrix where `ord` is given with two dimensions, else of a vector.
fn linalg_norm(
    cx: &Cx,
    x: Num,
    ord: Option<Scalar>,
    dims: Option<Vec<i64>>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Lowered {
    let size = || x.im.map_or(x.re, |_| x.abs(cx));
    let Some(ord) = ord else {
        return vector_norm(cx, size(), Scalar::Int(2), dims, keepdim, dtype);
    };
    let dims = dims.unwrap_or_else(|| {
        if cx.rank(x.re) == 2 {
            vec![-2, -1]
        } else {
            vec![-1]
        }
    });
    match dims.as_slice() {
        [_, _] => matrix_norm(cx, x, &Order::Number(ord.to_f64()), &dims, keepdim),
        _ => vector_norm(cx, size(), ord, Some(dims), keepdim, dtype),
    }
}

/// Distances of each row of `a` to each row of `b`.
fn cdist(cx: &Cx, a: Value, b: Value, p: f64) -> Lowered {
    let (a, b) = cx.promote(a, b);
    let (from, to) = (cx.rank(a) - 1, cx.rank(b) - 2);
    let off = cx.sub(cx.unsqueeze(a, &[from]), cx.unsqueeze(b, &[to]));
    let last = cx.rank(off) - 1;
    if cx.dim(off, last as i64).as_int() == Some(0) {
        return Ok(cx.full(&cx.out_shape()?, 0, cx.dtype(off)));
    }
    Ok(norm(cx, off, p, &[last], false))
}

/// Distances of each row to each later one.
fn pdist(cx: &Cx, x: Value, p: f64) -> Lowered {
    let n = cx.dim(x, 0);
    let pairs = match n.as_int() {
        Some(n @ 0..=64) => {
            let pair = |first: bool| {
                let all = (0..n).flat_map(|i| (i + 1..n).map(move |j| if first { i } else { j }));
                cx.ints(&all.collect::<Vec<_>>())
            };
            [pair(true), pair(false)]
        }
        _ => {
            let rows = iota(cx, &n, DType::I64);
            let later = cx.less(cx.unsqueeze(rows, &[1]), rows);
            let found = cx.non_zero(later);
            [
                cx.take(found, 0, &Expr::int(0)),
                cx.take(found, 0, &Expr::int(1)),
            ]
        }
    };
    let [a, b] = pairs.map(|rows| cx.gather(x, rows, 0));
    Ok(norm(cx, cx.sub(a, b), p, &[1], false))
}

/// `|a - b + eps|` over the last dimension.
pub(super) fn pairwise_distance(
    cx: &Cx,
    a: Value,
    b: Value,
    p: f64,
    eps: f64,
    keepdim: bool,
) -> Lowered {
    let (a, b) = cx.promote(a, b);
    // Integers are subtracted as such.
    let off = cx.add(cx.to_float(cx.sub(a, b)), eps);
    let last = cx.rank(off).saturating_sub(1);
    Ok(norm(cx, off, p, &[last], keepdim))
}

/// `|a - b + eps|` of complex rows.
pub(super) fn pairwise_distance_complex(
    cx: &Cx,
    a: Complex,
    b: Complex,
    p: f64,
    eps: f64,
    keepdim: bool,
) -> Lowered {
    let off = difference(cx, a, b);
    let off = magnitude(
        cx,
        Complex {
            re: cx.add(off.re, eps),
            im: off.im,
        },
    );
    let last = cx.rank(off).saturating_sub(1);
    Ok(norm(cx, off, p, &[last], keepdim))
}

/// `sum(a / |a| * b / |b|)`, norms not below `eps`.
fn cosine_similarity(cx: &Cx, a: Value, b: Value, dim: i64, eps: f64) -> Lowered {
    let (a, b) = cx.promote(a, b);
    let shape = cx.broadcast_shapes(&cx.shape(a), &cx.shape(b));
    let axis = crate::cx::axis_of(shape.len().max(1), dim)?;
    if shape.is_empty() {
        let unit = |v| cx.div(v, cx.maximum(cx.abs(v), eps));
        return Ok(cx.mul(unit(a), unit(b)));
    }
    let unit = |v: Value| {
        // Counted from the end, since the operands may have fewer dimensions than the result.
        let own = (axis + cx.rank(v)).checked_sub(shape.len());
        let (v, own) = match own {
            Some(own) if cx.dim(v, own as i64) == shape[axis] => (v, own),
            // The norm is that of the broadcast tensor.
            _ => (cx.expand(v, &shape), axis),
        };
        cx.div(v, cx.maximum(reduce(cx, "ReduceL2", v, &[own], true), eps))
    };
    Ok(reduce(
        cx,
        "ReduceSum",
        cx.mul(unit(a), unit(b)),
        &[axis],
        false,
    ))
}

/// What shortens the slices along `dim` that are longer than `most`.
fn renorm_scale(cx: &Cx, x: Value, p: Scalar, dim: i64, most: Scalar) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let others: Vec<usize> = (0..cx.rank(x)).filter(|&a| a != axis).collect();
    Ok(shortening(
        cx,
        norm(cx, x, p.to_f64(), &others, true),
        most.to_f64(),
    ))
}

/// `most / (norm + 1e-7)` where the norm is larger than `most`, else 1.
fn shortening(cx: &Cx, norm: Value, most: f64) -> Value {
    let most = cx.scalar(most, cx.dtype(norm));
    let scale = cx.div(most, cx.add(norm, 1e-7));
    cx.select(cx.greater(norm, most), scale, 1.0)
}

fn renorm(cx: &Cx, x: Value, p: Scalar, dim: i64, most: Scalar) -> Lowered {
    Ok(cx.mul(x, renorm_scale(cx, x, p, dim, most)?))
}
