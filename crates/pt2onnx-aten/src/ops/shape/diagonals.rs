//! Matrices made of diagonals, and triangles of matrices.

use crate::math::shape::{
    SPELLED_OUT, broadcast_along, constant, counted, diagonal, flat, pad_to, rank_from,
    set_recorded,
};
use crate::meta::{self, sized, typed, unknown};
use crate::{AtenOp, Cx, LowerError, Lowered, checks, cx::axis_of, op};
use pt2onnx_ir::{Operand, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, promote_types};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::block_diag, block_diag, parts, meta = meta_block_diag),
    op!(aten::diag, diag, parts, meta = meta_diag),
    op!(aten::diag_embed, diag_embed, parts, meta = meta_diag_embed),
    op!(aten::diagflat, diagflat, parts, meta = meta_diagflat),
    op!(aten::diagonal_scatter, diagonal_scatter, parts, meta = meta::same),
    op!(aten::tril, triangle, parts, upper = false),
    op!(aten::triu, triangle, parts, upper = true),
];

/// `Trilu`: zeros below (`upper`) or above diagonal `k`, which lies `k` columns right of the main
/// one.
fn triangle(cx: &Cx, x: Value, k: Expr, upper: bool) -> Lowered {
    rank_from(cx, x, 2)?;
    let k = (k.as_int() != Some(0)).then(|| cx.size(&k));
    Ok(cx.trilu(x, k, attrs::Trilu { upper }))
}

/// The diagonal of a matrix, or the matrix with the vector `x` as its diagonal.
fn diag(cx: &Cx, x: Value, offset: i64) -> Lowered {
    match cx.rank(x) {
        0 | 1 => diag_embed(cx, x, offset, -2, -1),
        _ => diagonal(cx, x, offset, 0, 1),
    }
}

/// The matrix with all elements on its diagonal.
fn diagflat(cx: &Cx, x: Value, offset: i64) -> Lowered {
    diag_embed(cx, flat(cx, x), offset, -2, -1)
}

/// Matrices of zeros in dimensions `dim1` and `dim2` of the result, with the vectors of `x` (its
/// last dimension) on a diagonal.
fn diag_embed(cx: &Cx, x: Value, offset: i64, dim1: i64, dim2: i64) -> Lowered {
    let shape = cx.out_shape()?;
    set_recorded(cx, onto_diagonal(cx, 0.into(), &shape, x, offset, [dim1, dim2])?)
}

/// `x` with `source` written onto a diagonal of its matrices.
fn diagonal_scatter(
    cx: &Cx,
    x: Value,
    source: Value,
    offset: i64,
    dim1: i64,
    dim2: i64,
) -> Lowered {
    let source = cx.cast(source, cx.dtype(x));
    set_recorded(cx, onto_diagonal(cx, x.into(), &cx.shape(x), source, offset, [dim1, dim2])?)
}

/// `Where(beside the diagonal, base, source)`; the diagonal is that of the matrices that `dims`
/// span, `offset` columns right of the main one. `source` is laid along the rows if the diagonal is
/// on or above the main one, else along the columns. `shape` is the result's.
fn onto_diagonal(
    cx: &Cx,
    base: Operand,
    shape: &[Expr],
    source: Value,
    offset: i64,
    dims: [i64; 2],
) -> Lowered {
    let (a, b) = (axis_of(shape.len(), dims[0])?, axis_of(shape.len(), dims[1])?);
    // Above the main diagonal, element i stands in row i; below it, in column i.
    let (laid, other) = if offset >= 0 { (a, b) } else { (b, a) };
    let last = cx.rank(source).saturating_sub(1);
    let padded = pad_to(cx, source, last, &shape[laid]);
    let at = if laid > other { laid - 1 } else { laid };
    let perm: Vec<usize> = (0..at).chain([last]).chain(at..last).collect();
    let slab = cx.unsqueeze(cx.transpose(padded, &perm), &[other]);
    Ok(cx.select(beside_diagonal(cx, shape, a, b, offset), base, slab))
}

/// True where `column - row != offset`, of dimensions `a` (rows) and `b` (columns); the other
/// dimensions have size 1.
fn beside_diagonal(cx: &Cx, shape: &[Expr], a: usize, b: usize, offset: i64) -> Value {
    let rank = shape.len();
    if let (Some(rows), Some(columns)) = (shape[a].as_int(), shape[b].as_int())
        && rows.max(1).saturating_mul(columns.max(1)) <= SPELLED_OUT
    {
        let mut sizes = vec![1; rank];
        (sizes[a], sizes[b]) = (rows, columns);
        let mask: Vec<bool> = if a < b {
            (0..rows).flat_map(|r| (0..columns).map(move |c| c - r != offset)).collect()
        } else {
            (0..columns).flat_map(|c| (0..rows).map(move |r| c - r != offset)).collect()
        };
        return constant(cx, &sizes, &mask);
    }
    let rows = counted(cx, &Expr::int(offset), &shape[a], 1);
    let columns = counted(cx, &Expr::int(0), &shape[b], 1);
    let off = cx.sub(broadcast_along(cx, rows, a, rank), broadcast_along(cx, columns, b, rank));
    cx.cast(off, DType::Bool)
}

/// Matrices placed along the diagonal of a matrix of zeros. Vectors and 0-d tensors count as rows.
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
        return Err(LowerError::unsupported("a block matrix needs at least one block"));
    }
    set_recorded(cx, cx.concat(&padded, 0))
}

fn meta_block_diag(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let dtype = tensors.iter().map(|&v| cx.dtype(v)).reduce(promote_types).unwrap_or(DType::F32);
    let matrices = meta::all_at_least::<2>(cx, tensors)?;
    let total = |axis| Expr::sum(matrices.iter().map(|&v| cx.dim(v, axis)));
    Ok(typed(cx, dtype, &[total(0), total(1)]))
}

fn meta_diag(cx: &Cx, x: Value, diagonal: i64) -> Lowered {
    let size = match &cx.shape(x)[..] {
        [n] => vec![n + diagonal.abs(); 2],
        [rows, columns] => vec![meta::diagonal_length(cx, rows, columns, diagonal)],
        _ => return unknown("it takes vectors and matrices"),
    };
    Ok(sized(cx, x, &size))
}

fn meta_diagflat(cx: &Cx, x: Value, offset: i64) -> Lowered {
    let n = cx.numel(x) + offset.abs();
    Ok(sized(cx, x, &[n.clone(), n]))
}

fn meta_diag_embed(cx: &Cx, x: Value, offset: i64, dim1: i64, dim2: i64) -> Lowered {
    let mut size = cx.shape(x);
    let Some(last) = size.pop() else {
        return unknown("it takes no 0-d tensors");
    };
    let rank = size.len() + 2;
    let (a, b) = (axis_of(rank, dim1)?, axis_of(rank, dim2)?);
    let n = last + offset.abs();
    size.insert(a.min(b), n.clone());
    size.insert(a.max(b), n);
    Ok(sized(cx, x, &size))
}

checks! {
    // Diagonals of any size.
    "aten.diagonal(x: f32[3, 4, s0], 1) -> f32[s0, 3]" => "
    val_0 = GatherND (x, int64[3,2] {0, 1, 1, 2, 2, 3})
    diagonal = Transpose <perm: ints = [1, 0]> (val_0)
    ";
    "aten.diagonal(x: f32[s0, 4], 1) -> f32[Min(3, s0)]" => "
    val_0 = Reshape (x, [-1])
    val_1 = Shape <start: int = 0, end: int = 1> (x)
    val_2 = Min ([3], val_1)
    val_3 = Mul ([4], val_2)
    diagonal = Slice (val_0, [1], val_3, [0], [5])
    ";

    // Below the main diagonal.
    "aten.diag_embed(x: f32[2, 3], -1) -> f32[2, 4, 4]" => "
    val_0 = Pad (x, [0, 0, 0, 1])
    val_1 = Unsqueeze (val_0, [1])
    diag_embed = Where (bool[1,4,4] {1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1}, 0.0, val_1)
    ";

    // A triangle of a dynamic offset.
    "{s0: VR[2, 9]} aten.tril(x: f32[s0, s0], n: Sym(s0)) -> f32[s0, s0]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (x)
    val_1 = Reshape (val_0, [])
    tril = Trilu <upper: int = 0> (x, val_1)
    ";
}
