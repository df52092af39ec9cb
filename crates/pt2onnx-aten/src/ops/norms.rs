//! Norms and distances. Of complex numbers, those of their magnitudes.

use super::common_reduce::{Extreme, all_axes, difference, extreme, is_empty, magnitude, reduce};
use super::linalg::svd::singular_values;
use super::num::Num;
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value};
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
    aten!("aten::_pdist_forward(Tensor self, float p=2.) -> Tensor", pdist),
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
    aten!("aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", frobenius_norm, complex: frobenius_norm),
    aten!("aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", matrix_norm_number, complex: matrix_norm_number),
    aten!("aten::linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", matrix_norm_name, complex: matrix_norm_name),
    aten!("aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", linalg_norm, complex: linalg_norm),
    aten!("aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", linalg_norm_name, complex: linalg_norm_name),
    aten!("aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", vector_norm, complex: vector_norm),
    aten!("aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor", norm_of_all, complex: norm_of_all),
    aten!("aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", norm_dim, complex: norm_dim),
    aten!("aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor", norm_dim_dtype, complex: norm_dim_dtype),
    aten!("aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor", norm_dtype, complex: norm_dtype),
    aten!("aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", |cx: &Cx,
                                                                              v: Value,
                                                                              p: i64,
                                                                              dim: i64|
     -> Lowered {
        let kept = (dim != -1).then(|| cx.axis(v, dim)).transpose()?;
        let axes: Vec<usize> = (0..cx.rank(v)).filter(|&a| Some(a) != kept).collect();
        Ok(norm(cx, v, p as f64, &axes, kept.is_some()))
    }),
    aten!("aten::nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", |cx: &Cx, x: Num, keepdim: bool| {
        matrix_norm(cx, x, &Order::Name("nuc".to_owned()), &[-2, -1], keepdim)
    }, complex: |cx: &Cx, x: Num, keepdim: bool| {
        matrix_norm(cx, x, &Order::Name("nuc".to_owned()), &[-2, -1], keepdim)
    }),
    aten!("aten::nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", nuclear_norm, complex: nuclear_norm),
    aten!("aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) -> Tensor", pairwise_distance, complex: pairwise_distance_complex),
    aten!("aten::pdist(Tensor self, float p=2.) -> Tensor", pdist),
    aten!("aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", renorm, complex: renorm),
];

/// `|x|` of complex numbers; of real ones, they themselves, whose sign no norm looks at.
fn magnitudes(cx: &Cx, x: Num) -> Value {
    match x.im {
        Some(im) => magnitude(cx, Complex { re: x.re, im }),
        None => x.re,
    }
}

fn two(p: Option<Scalar>) -> Scalar {
    p.unwrap_or(Scalar::Int(2))
}

fn norm_of_all(cx: &Cx, x: Num, p: Scalar) -> Lowered {
    vector_norm(cx, x, p, None, false, None)
}

fn norm_dtype(cx: &Cx, x: Num, p: Option<Scalar>, dtype: DType) -> Lowered {
    vector_norm(cx, x, two(p), None, false, Some(dtype))
}

fn norm_dim(cx: &Cx, x: Num, p: Option<Scalar>, dims: Vec<i64>, keepdim: bool) -> Lowered {
    vector_norm(cx, x, two(p), Some(dims), keepdim, None)
}

fn norm_dim_dtype(
    cx: &Cx,
    x: Num,
    p: Option<Scalar>,
    dims: Vec<i64>,
    keepdim: bool,
    dtype: DType,
) -> Lowered {
    vector_norm(cx, x, two(p), Some(dims), keepdim, Some(dtype))
}

fn frobenius_norm(cx: &Cx, x: Num, dims: Vec<i64>, keepdim: bool) -> Lowered {
    vector_norm(cx, x, Scalar::Int(2), Some(dims), keepdim, None)
}

fn nuclear_norm(cx: &Cx, x: Num, dims: Vec<i64>, keepdim: bool) -> Lowered {
    matrix_norm(cx, x, &Order::Name("nuc".to_owned()), &dims, keepdim)
}

fn matrix_norm_number(
    cx: &Cx,
    x: Num,
    ord: Scalar,
    dims: Vec<i64>,
    keepdim: bool,
    _: Option<DType>,
) -> Lowered {
    matrix_norm(cx, x, &Order::Number(ord.to_f64()), &dims, keepdim)
}

fn matrix_norm_name(
    cx: &Cx,
    x: Num,
    ord: String,
    dims: Vec<i64>,
    keepdim: bool,
    _: Option<DType>,
) -> Lowered {
    matrix_norm(cx, x, &Order::Name(ord), &dims, keepdim)
}

fn linalg_norm_name(
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

/// `sum(|x|^p)^(1/p)` over `axes`; how many are not 0, the largest and the smallest `|x|` for p = 0, inf, -inf.
fn norm(cx: &Cx, x: Value, p: f64, axes: &[usize], keepdim: bool) -> Value {
    let dtype = cx.dtype(x);
    let sum = |v| reduce(cx, Reduction::Sum, v, axes, keepdim);
    if p == 0.0 {
        return sum(cx.cast(cx.cast(x, DType::Bool), dtype));
    }
    if axes.is_empty() {
        return cx.abs(x);
    }
    if p == 2.0 {
        reduce(cx, Reduction::L2, x, axes, keepdim)
    } else if p == 1.0 {
        reduce(cx, Reduction::L1, x, axes, keepdim)
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
    x: Num,
    ord: Scalar,
    dims: Option<Vec<i64>>,
    keepdim: bool,
    _: Option<DType>,
) -> Lowered {
    let x = cx.cast(magnitudes(cx, x), cx.out_dtype()?);
    let axes = cx.axes(x, dims.as_deref())?;
    let p = ord.to_f64();
    if p.is_infinite() && is_empty(cx, x, &axes) {
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

/// Frobenius' norm; the largest or smallest sum of rows or columns; the nuclear and spectral norms by singular values.
fn matrix_norm(cx: &Cx, x: Num, ord: &Order, dims: &[i64], keepdim: bool) -> Lowered {
    let dtype = cx.out_dtype()?;
    let &[rows, columns] = dims else {
        return Err(LowerError::unsupported("matrix norms are over two dimensions"));
    };
    let (rows, columns) = (cx.axis(x.re, rows)?, cx.axis(x.re, columns)?);
    let sums = |summed: usize, other: usize, of: Extreme| {
        let sums = reduce(cx, Reduction::L1, cx.cast(magnitudes(cx, x), dtype), &[summed], true);
        extreme(cx, of, sums, &[other], true)
    };
    let singular = |op: Reduction| {
        let rank = cx.rank(x.re);
        let order: Vec<usize> =
            (0..rank).filter(|&a| a != rows && a != columns).chain([rows, columns]).collect();
        let part = |v: Value| cx.transpose(cx.cast(v, dtype), &order);
        let matrix = Num { re: part(x.re), im: x.im.map(part) };
        let values = singular_values(cx, matrix);
        let found = match is_empty(cx, values, &[rank - 2]) {
            // No values: their sum and, as PyTorch has it, the largest of them are 0.
            true => cx.reduce(Reduction::Sum, values, &[rank - 2], false),
            false => reduce(cx, op, values, &[rank - 2], false),
        };
        cx.unsqueeze(found, &[rows, columns])
    };
    let found = match ord {
        Order::Name(name) if name == "fro" => {
            let x = cx.cast(magnitudes(cx, x), dtype);
            return Ok(reduce(cx, Reduction::L2, x, &[rows, columns], keepdim));
        }
        Order::Name(name) if name == "nuc" => singular(Reduction::Sum),
        Order::Number(p) if *p == 1.0 => sums(rows, columns, Extreme::Max),
        Order::Number(p) if *p == -1.0 => sums(rows, columns, Extreme::Min),
        Order::Number(p) if *p == f64::INFINITY => sums(columns, rows, Extreme::Max),
        Order::Number(p) if *p == f64::NEG_INFINITY => sums(columns, rows, Extreme::Min),
        Order::Number(p) if *p == 2.0 => singular(Reduction::Max),
        Order::Number(p) if *p == -2.0 => singular(Reduction::Min),
        _ => {
            return Err(LowerError::unsupported("there is no matrix norm of this name"));
        }
    };
    Ok(if keepdim { found } else { cx.squeeze(found, &[rows, columns]) })
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
    let Some(ord) = ord else {
        return vector_norm(cx, x, Scalar::Int(2), dims, keepdim, dtype);
    };
    let dims = dims.unwrap_or_else(|| match cx.rank(x.re) {
        2 => vec![-2, -1],
        _ => vec![-1],
    });
    match dims.as_slice() {
        [_, _] => matrix_norm(cx, x, &Order::Number(ord.to_f64()), &dims, keepdim),
        _ => vector_norm(cx, x, ord, Some(dims), keepdim, dtype),
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
            let rows = cx.cast(cx.iota(&n), DType::I64);
            let later = cx.less(cx.unsqueeze(rows, &[1]), rows);
            let found = cx.non_zero(later);
            [cx.take(found, 0, &Expr::int(0)), cx.take(found, 0, &Expr::int(1))]
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
    let off = magnitude(cx, Complex { re: cx.add(off.re, eps), im: off.im });
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
        cx.div(v, cx.maximum(reduce(cx, Reduction::L2, v, &[own], true), eps))
    };
    Ok(reduce(cx, Reduction::Sum, cx.mul(unit(a), unit(b)), &[axis], false))
}

/// Slices along `dim` that are longer than `most`, shortened to it.
fn renorm(cx: &Cx, x: Num, p: Scalar, dim: i64, most: Scalar) -> Lowered {
    let axis = cx.axis(x.re, dim)?;
    let others: Vec<usize> = (0..cx.rank(x.re)).filter(|&a| a != axis).collect();
    let length = norm(cx, magnitudes(cx, x), p.to_f64(), &others, true);
    let most = cx.scalar(most, cx.dtype(length));
    let scale = cx.div(most, cx.add(length, 1e-7));
    let scale = cx.select(cx.greater(length, most), scale, 1.0);
    Ok(Num { re: cx.mul(x.re, scale), im: x.im.map(|im| cx.mul(im, scale)) }.value(cx))
}
