//! Norms and distances. Complex numbers count with their absolute values.

use crate::math::distance::{complex_norm, norm, pairwise_distance, pairwise_distance_complex};
use crate::math::matrix::svd::singular_values;
use crate::math::reduce::{Extreme, all_axes, extreme, is_empty_along, may_be_empty_along, reduce};
use crate::math::shape::rank_from;
use crate::meta::{self, sized};
use crate::{
    AtenOp, Complex, Cx, FromArg, LowerError, Lowered, Number, ParamType, args::Ignored, arguments,
    checks, cx::axis_of, op,
};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_cdist_forward, cdist),
    op!(aten::_euclidean_dist, cdist, p = 2.0),
    op!(aten::_pdist_forward, pdist),
    op!(aten::cdist, cdist),
    op!(aten::cosine_similarity, cosine_similarity),
    op!(aten::dist, dist, complex = dist_complex),
    op!(aten::frobenius_norm_dim, vector_norm, meta = meta::norm),
    op!(aten::linalg_matrix_norm, matrix_norm, meta = meta::norm),
    op!(aten::linalg_matrix_norm_str_ord, matrix_norm, meta = meta::norm),
    op!(aten::linalg_norm, linalg_norm, meta = meta::norm),
    op!(aten::linalg_norm_ord_str, matrix_norm, meta = meta::norm),
    op!(aten::linalg_vector_norm, vector_norm, meta = meta::norm),
    op!(aten::norm_Scalar, vector_norm, meta = meta::norm, keepdim = false),
    op!(aten::norm_ScalarOpt_dim, vector_norm, meta = meta::norm),
    op!(aten::norm_ScalarOpt_dim_dtype, vector_norm, meta = meta::norm),
    op!(aten::norm_ScalarOpt_dtype, vector_norm, meta = meta::norm, keepdim = false),
    op!(aten::norm_except_dim, norm_except_dim),
    op!(aten::nuclear_norm, matrix_norm, meta = meta::norm, ord = "nuc"),
    op!(aten::nuclear_norm_dim, matrix_norm, meta = meta::norm, ord = "nuc"),
    op!(aten::pairwise_distance, pairwise_distance, complex = pairwise_distance_complex),
    op!(aten::pdist, pdist, meta = meta_pdist),
    op!(aten::renorm, renorm),
];

arguments! {
    /// Arguments of norms. `p` and `ord` are two names for the order, which is 2 if neither is
    /// given.
    struct NormArgs {
        input: Complex,
        p: Option<Order>,
        ord: Option<Order>,
        dim: Option<Vec<i64>>,
        keepdim: bool,
        dtype: Ignored,
    }
}

/// The order of a norm.
#[derive(Debug, Clone, PartialEq)]
enum Order {
    Number(f64),
    Name(String),
}

impl FromArg for Order {
    fn accepts(ty: &ParamType) -> bool {
        f64::accepts(ty) || String::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::String(name) => Ok(Order::Name(name.to_string())),
            _ => f64::from_arg(cx, arg).map(Order::Number),
        }
    }
}

/// `sum(|x|^p)^(1/p)` in the recorded type; the other orders are those of [`norm`].
fn vector_norm(cx: &Cx, args: NormArgs) -> Lowered {
    let x = args.input.cast(cx, cx.out_dtype()?);
    let axes = cx.axes(x.re, args.dim.as_deref())?;
    let p = match args.p.or(args.ord) {
        None => 2.0,
        Some(Order::Number(p)) => p,
        Some(Order::Name(name)) => {
            return Err(LowerError::unknown("vector norm", name));
        }
    };
    if p.is_infinite() && is_empty_along(cx, x.re, &axes) {
        let value = if p > 0.0 { 0.0 } else { f64::INFINITY };
        return Ok(cx.full(&cx.out_shape()?, value, cx.dtype(x.re)));
    }
    Ok(complex_norm(cx, x, p, &axes, args.keepdim))
}

/// The norm of matrices: the Frobenius norm (`fro`), the largest (1, inf) or smallest (-1, -inf)
/// sum of columns or rows, the sum (`nuc`), the largest (2) or the smallest (-2) of the singular
/// values.
fn matrix_norm(cx: &Cx, args: NormArgs) -> Lowered {
    let (x, keepdim) = (args.input, args.keepdim);
    let dtype = cx.out_dtype()?;
    let &[rows, columns] = args.dim.as_deref().unwrap_or(&[-2, -1]) else {
        return Err(LowerError::unsupported("matrix norms are over two dimensions"));
    };
    let (rows, columns) = (cx.axis(x.re, rows)?, cx.axis(x.re, columns)?);
    let sums = |summed: usize, other: usize, of: Extreme| {
        // No norm depends on the sign.
        let lengths = x.im.map_or(x.re, |_| x.abs(cx));
        let sums = reduce(cx, Reduction::L1, cx.cast(lengths, dtype), &[summed], true);
        if is_empty_along(cx, sums, &[other]) {
            // In PyTorch the largest of no sums is 0.
            cx.reduce(Reduction::Sum, sums, &[other], true)
        } else {
            extreme(cx, of, sums, &[other], true)
        }
    };
    let singular = |op: Reduction| {
        let rank = cx.rank(x.re);
        let order: Vec<usize> =
            (0..rank).filter(|&a| a != rows && a != columns).chain([rows, columns]).collect();
        let part = |v: Value| cx.transpose(cx.cast(v, dtype), &order);
        let matrix = x.map(part);
        let values = singular_values(cx, matrix);
        let found = if is_empty_along(cx, values, &[rank - 2]) {
            // In PyTorch the sum and the largest of no values are 0.
            cx.reduce(Reduction::Sum, values, &[rank - 2], false)
        } else {
            reduce(cx, op, values, &[rank - 2], false)
        };
        cx.unsqueeze(found, &[rows, columns])
    };
    let ord = args.ord.ok_or_else(|| LowerError::unsupported("a matrix norm needs an order"))?;
    let found = match &ord {
        Order::Name(name) if name == "fro" => {
            return Ok(complex_norm(cx, x.cast(cx, dtype), 2.0, &[rows, columns], keepdim));
        }
        Order::Name(name) if name == "nuc" => singular(Reduction::Sum),
        Order::Number(p) if *p == 1.0 => sums(rows, columns, Extreme::Max),
        Order::Number(p) if *p == -1.0 => sums(rows, columns, Extreme::Min),
        Order::Number(p) if *p == f64::INFINITY => sums(columns, rows, Extreme::Max),
        Order::Number(p) if *p == f64::NEG_INFINITY => sums(columns, rows, Extreme::Min),
        Order::Number(p) if *p == 2.0 => singular(Reduction::Max),
        Order::Number(p) if *p == -2.0 => singular(Reduction::Min),
        Order::Name(name) => return Err(LowerError::unknown("matrix norm", name)),
        Order::Number(p) => return Err(LowerError::unknown("matrix norm", p)),
    };
    Ok(if keepdim { found } else { cx.squeeze(found, &[rows, columns]) })
}

/// A vector norm, or a matrix norm if an order is given and the dimensions are two.
fn linalg_norm(cx: &Cx, args: NormArgs) -> Lowered {
    if args.ord.is_none() {
        return vector_norm(cx, args);
    }
    let matrix = cx.rank(args.input.re) == 2;
    let dim = args.dim.unwrap_or_else(|| if matrix { vec![-2, -1] } else { vec![-1] });
    let is_matrix_norm = dim.len() == 2;
    let args = NormArgs { dim: Some(dim), ..args };
    if is_matrix_norm { matrix_norm(cx, args) } else { vector_norm(cx, args) }
}

/// The norm over all dimensions but `dim`; with `dim` -1, over all.
fn norm_except_dim(cx: &Cx, v: Value, p: f64, dim: i64) -> Lowered {
    let kept = (dim != -1).then(|| cx.axis(v, dim)).transpose()?;
    let axes: Vec<usize> = (0..cx.rank(v)).filter(|&a| Some(a) != kept).collect();
    Ok(norm(cx, v, p, &axes, kept.is_some()))
}

/// The norm of the difference of all elements.
fn dist(cx: &Cx, a: Value, b: Value, p: f64) -> Lowered {
    let (a, b) = cx.promote(a, b);
    let off = cx.sub(a, b);
    Ok(norm(cx, off, p, &all_axes(cx, off), false))
}

/// [`dist`] of complex numbers.
fn dist_complex(cx: &Cx, a: Complex, b: Complex, p: f64) -> Lowered {
    let off = a.sub(cx, b);
    Ok(complex_norm(cx, off, p, &all_axes(cx, off.re), false))
}

/// The distance of each row of `a` to each row of `b`.
fn cdist(cx: &Cx, a: Value, b: Value, p: f64, _mode: Ignored) -> Lowered {
    let (a, b) = cx.promote(a, b);
    let (from, to) = (rank_from(cx, a, 2)? - 1, rank_from(cx, b, 2)? - 2);
    let off = cx.sub(cx.unsqueeze(a, &[from]), cx.unsqueeze(b, &[to]));
    let last = cx.rank(off) - 1;
    if cx.dim(off, last as i64).as_int() == Some(0) {
        return Ok(cx.full(&cx.shape(off)[..last], 0, cx.dtype(off)));
    }
    if p == 0.0 && cx.propagates_nan(off) {
        let differ = cx.minimum(cx.ceil(cx.abs(off)), 1.0);
        return Ok(reduce(cx, Reduction::Sum, differ, &[last], false));
    }
    if p == f64::INFINITY {
        let far = cx.abs(off);
        // PyTorch's kernel leaves NaN out.
        let known = if cx.propagates_nan(off) { cx.select(cx.is_nan(off), 0.0, far) } else { far };
        let largest = reduce(cx, Reduction::Max, known, &[last], false);
        let empty = may_be_empty_along(cx, off, &[last]);
        return Ok(if empty { cx.maximum(largest, 0.0) } else { largest });
    }
    Ok(norm(cx, off, p, &[last], false))
}

/// The distance of each row to each later row.
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

/// `sum(a / |a| * b / |b|)` along `dim`, where norms below `eps` count as `eps`.
fn cosine_similarity(cx: &Cx, a: Value, b: Value, dim: i64, eps: f64) -> Lowered {
    let (a, b) = cx.promote(a, b);
    let shape = cx.broadcast_shapes(&cx.shape(a), &cx.shape(b));
    let axis = axis_of(shape.len().max(1), dim)?;
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

/// The slices along `dim`; those whose norm is above `most` are scaled to it.
fn renorm(cx: &Cx, x: Complex, p: f64, dim: i64, most: Number) -> Lowered {
    let axis = cx.axis(x.re, dim)?;
    let others: Vec<usize> = (0..cx.rank(x.re)).filter(|&a| a != axis).collect();
    let length = complex_norm(cx, x, p, &others, true);
    let most = most.tensor(cx, cx.dtype(length));
    let scale = cx.div(most, cx.add(length, 1e-7));
    let scale = cx.select(cx.greater(length, most), scale, 1.0);
    Ok(x.times(cx, scale).value(cx))
}

/// A number for each pair of rows.
fn meta_pdist(cx: &Cx, x: Value) -> Lowered {
    let n = cx.dim(x, 0);
    let pairs = (&n * &(&n - 1)).floor_div(&Expr::int(2));
    Ok(sized(cx, x, &[cx.constraints().simplify(&pairs)]))
}

checks! {
    // Without an order, a norm is that of all elements.
    "aten.linalg_norm(x: f32[2, 3]) -> f32[]" => "linalg_norm = ReduceL2 <keepdims: int = 0> (x)";

    // Two dimensions and an order make a matrix norm.
    "aten.linalg_norm(x: f32[s0, 2, 3], 1, [-2, -1]) -> f32[s0]" => "
    val_0 = ReduceL1 <keepdims: int = 1> (x, [1])
    val_1 = ReduceMax <keepdims: int = 1> (val_0, [2])
    val_2 = IsNaN (val_0)
    val_3 = ReduceMax <keepdims: int = 1> (val_2, [2])
    val_4 = Where (val_3, NaN, val_1)
    linalg_norm = Squeeze (val_4, [1, 2])
    ";

    // Euclidean distances are `cdist`.
    "aten._euclidean_dist(a: f32[s0, 3], b: f32[2, 3]) -> f32[s0, 2]" => "
    val_0 = Unsqueeze (a, [1])
    val_1 = Unsqueeze (b, [0])
    val_2 = Sub (val_0, val_1)
    _euclidean_dist = ReduceL2 <keepdims: int = 0> (val_2, [2])
    ";

    // The largest of no sums is 0.
    "aten.linalg_matrix_norm(x: f32[0, 0], inf) -> f32[]" => "
    val_0 = ReduceL1 <keepdims: int = 1> (x, [1])
    val_1 = ReduceSum <keepdims: int = 1> (val_0, [0])
    linalg_matrix_norm = Squeeze (val_1, [0, 1])
    ";
}
