//! Matrices made of diagonals, and triangles of matrices.

use super::shapes::{SPELLED_OUT, along, counted, flat, pad_to, recorded};
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, cx::axis_of, registry::aten};
use pt2onnx_ir::{Operand, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;

pub(super) static OPS: &[AtenOp] = &[
    aten!("aten::block_diag(Tensor[] tensors) -> Tensor", block_diag, parts),
    aten!("aten::diag(Tensor self, int diagonal=0) -> Tensor", diag, parts),
    aten!(
        "aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
        diag_embed,
        parts
    ),
    aten!("aten::diagflat(Tensor self, int offset=0) -> Tensor", diagflat, parts),
    aten!(
        "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
        diagonal_scatter,
        parts
    ),
    aten!(
        "aten::fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor",
        fill_diagonal,
        parts
    ),
    aten!(
        "aten::tril(Tensor self, SymInt diagonal=0) -> Tensor",
        |cx: &Cx, x: Value, k: Expr| triangle(cx, x, &k, false),
        parts
    ),
    aten!(
        "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor",
        |cx: &Cx, x: Value, k: Expr| triangle(cx, x, &k, true),
        parts
    ),
];

/// `Trilu`: zeros above or below the diagonal `k`.
fn triangle(cx: &Cx, x: Value, k: &Expr, upper: bool) -> Lowered {
    let k = (k.as_int() != Some(0)).then(|| cx.size(k));
    Ok(cx.trilu(x, k, attrs::Trilu { upper }))
}

/// The diagonal of a matrix, or the matrix of a diagonal.
fn diag(cx: &Cx, x: Value, offset: i64) -> Lowered {
    match cx.rank(x) {
        0 | 1 => diag_embed(cx, x, offset, -2, -1),
        _ => super::slicing::diagonal(cx, x, offset, 0, 1),
    }
}

/// The matrix with all elements on its diagonal.
fn diagflat(cx: &Cx, x: Value, offset: i64) -> Lowered {
    diag_embed(cx, flat(cx, x), offset, -2, -1)
}

/// Zeros with vectors, the last dimension, on the diagonals of matrices in dimensions `dim1` and `dim2`.
fn diag_embed(cx: &Cx, x: Value, offset: i64, dim1: i64, dim2: i64) -> Lowered {
    let shape = cx.out_shape()?;
    recorded(cx, onto_diagonal(cx, 0.into(), &shape, x, offset, dim1, dim2)?)
}

/// `source` on the diagonals of `x`.
fn diagonal_scatter(
    cx: &Cx,
    x: Value,
    source: Value,
    offset: i64,
    dim1: i64,
    dim2: i64,
) -> Lowered {
    let source = cx.cast(source, cx.dtype(x));
    recorded(cx, onto_diagonal(cx, x.into(), &cx.shape(x), source, offset, dim1, dim2)?)
}

/// `Where` on the diagonals `source`, laid along the rows (or the columns), else `base`.
fn onto_diagonal(
    cx: &Cx,
    base: Operand,
    shape: &[Expr],
    source: Value,
    offset: i64,
    dim1: i64,
    dim2: i64,
) -> Lowered {
    let rank = shape.len();
    let (a, b) = (axis_of(rank, dim1)?, axis_of(rank, dim2)?);
    // Above the main diagonal, element i stands in row i; below it, in column i.
    let (laid, other) = if offset >= 0 { (a, b) } else { (b, a) };
    let last = cx.rank(source).saturating_sub(1);
    let padded = pad_to(cx, source, last, &shape[laid]);
    let at = if laid > other { laid - 1 } else { laid };
    let perm: Vec<usize> = (0..at).chain([last]).chain(at..last).collect();
    let slab = cx.unsqueeze(cx.transpose(padded, &perm), &[other]);
    Ok(cx.select(diagonal_mask(cx, shape, a, b, offset), slab, base))
}

/// Whether an element stands `offset` right of the diagonal of dimensions `a` and `b`; other dimensions are of size 1.
fn diagonal_mask(cx: &Cx, shape: &[Expr], a: usize, b: usize, offset: i64) -> Value {
    let rank = shape.len();
    if let (Some(rows), Some(columns)) = (shape[a].as_int(), shape[b].as_int())
        && rows.max(1).saturating_mul(columns.max(1)) <= SPELLED_OUT
    {
        let mut sizes = vec![1; rank];
        (sizes[a], sizes[b]) = (rows.max(0) as usize, columns.max(0) as usize);
        let mask: Vec<bool> = match a < b {
            true => (0..rows).flat_map(|r| (0..columns).map(move |c| c - r == offset)).collect(),
            false => (0..columns).flat_map(|c| (0..rows).map(move |r| c - r == offset)).collect(),
        };
        match Tensor::from_slice(sizes, &mask) {
            Ok(mask) => return cx.constant(mask),
            Err(error) => cx.report(error.to_string()),
        }
    }
    let rows = counted(cx, &Expr::int(offset), &shape[a], 1);
    let columns = counted(cx, &Expr::int(0), &shape[b], 1);
    cx.equal(along(cx, rows, a, rank), along(cx, columns, b, rank))
}

/// `value` on the diagonal of all dimensions; with `wrap`, again and again down a tall matrix.
fn fill_diagonal(cx: &Cx, x: Value, value: TensorOrScalar, wrap: bool) -> Lowered {
    let shape = cx.shape(x);
    let value = cx.as_tensor(&value, cx.dtype(x));
    if let [rows, columns] = shape.as_slice() {
        let tall = || cx.constraints().prove_ge(columns, rows);
        if !wrap || tall() {
            return Ok(cx.select(diagonal_mask(cx, &shape, 0, 1, 0), value, x));
        }
        let places = counted(cx, &Expr::int(0), &(rows * columns), 1);
        let step = cx.size(&(columns + 1));
        let mask = cx.equal(cx.mod_(places, step, Default::default()), 0);
        return Ok(cx.select(cx.reshape(mask, &shape), value, x));
    }
    let masks = (1..shape.len()).map(|axis| diagonal_mask(cx, &shape, 0, axis, 0));
    let mask = masks.reduce(|all, mask| cx.and(all, mask));
    let mask = mask.ok_or_else(|| LowerError::unsupported("the diagonal of a vector"))?;
    Ok(cx.select(mask, value, x))
}

/// Matrices along the diagonal of a matrix of zeros; vectors and numbers are rows.
fn block_diag(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let dtype = cx.out_dtype()?;
    let rows = |&x: &Value| {
        let lead: Vec<usize> = (0..2usize.saturating_sub(cx.rank(x))).collect();
        cx.unsqueeze(cx.cast(x, dtype), &lead)
    };
    let blocks: Vec<Value> = tensors.iter().map(rows).collect();
    let widths: Vec<Expr> = blocks.iter().map(|&b| cx.dim(b, 1)).collect();
    let sum = |widths: &[Expr]| widths.iter().fold(Expr::int(0), |sum, w| sum + w);
    let padded = blocks.iter().enumerate().map(|(i, &block)| {
        let (left, right) = (sum(&widths[..i]), sum(&widths[i + 1..]));
        if left.as_int() == Some(0) && right.as_int() == Some(0) {
            return block;
        }
        cx.pad(block, cx.sizes(&[left, right]), None, cx.ints(&[1]), Default::default())
    });
    let padded: Vec<Value> = padded.collect();
    if padded.is_empty() {
        return Err(LowerError::unsupported("a block matrix without blocks"));
    }
    recorded(cx, cx.concat(&padded, 0))
}
