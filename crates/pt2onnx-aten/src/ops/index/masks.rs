//! Reads and writes at masks, and the coordinates of their true elements.

use crate::math::index::{coordinates, non_zero};
use crate::math::shape::{flat, set_recorded, together, vector};
use crate::meta::{self, fresh, sized, typed};
use crate::{AtenOp, Complex, Cx, Lowered, checks, cx::Outputs, op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::argwhere, nonzero, meta = meta_nonzero),
    op!(aten::masked_scatter, masked_scatter, parts, meta = meta::masked),
    op!(aten::masked_select, masked_select, parts, meta = meta_masked_select),
    op!(aten::nonzero, nonzero, meta = meta_nonzero),
    op!(aten::nonzero_numpy, columns, meta = meta_nonzero_numpy),
    op!(aten::nonzero_static, nonzero_static, meta = meta_nonzero_static),
    op!(aten::r#where, columns, meta = meta_nonzero_numpy),
];

/// The elements of `x` where `mask` is true, as a vector, both broadcast together: `Compress`.
fn masked_select(cx: &Cx, x: Value, mask: Value) -> Lowered {
    let (x, mask) = together(cx, vector(cx, x), cx.cast(mask, DType::Bool));
    set_recorded(cx, cx.compress(x, flat(cx, mask), attrs::Compress::default()))
}

/// `x` with its elements where `mask` is true replaced by the first ones of `source`, in order.
fn masked_scatter(cx: &Cx, x: Value, mask: Value, source: Value) -> Lowered {
    let shape = cx.out_shape()?;
    let (x, mask) = (cx.expand(x, &shape), cx.expand(mask, &shape));
    if shape.is_empty() {
        let first = cx.take(flat(cx, source), 0, &Expr::int(0));
        return Ok(cx.select(cx.cast(mask, DType::Bool), first, x));
    }
    let places = non_zero(cx, mask);
    let count = cx.shape_op(places, attrs::Shape { start: 1, end: None });
    let used = cx.slice_op(flat(cx, source), cx.ints(&[0]), count, cx.ints(&[0]), None);
    set_recorded(cx, cx.scatter_nd(x, cx.transpose(places, &[1, 0]), used, Default::default()))
}

/// The coordinates of each element that is not 0, a row for each. A 0-d tensor has no coordinates.
fn rows(cx: &Cx, x: Complex) -> Value {
    let rows = cx.transpose(non_zero(cx, mask_of(cx, x)), &[1, 0]);
    match cx.rank(x.re) {
        0 => cx.slice(rows, 1, &Expr::int(0), &Expr::int(0), 1),
        _ => rows,
    }
}

/// `x`, or whether a part is not 0.
fn mask_of(cx: &Cx, x: Complex) -> Value {
    if x.im.is_some() { x.truth(cx) } else { x.re }
}

fn nonzero(cx: &Cx, x: Complex) -> Lowered {
    set_recorded(cx, rows(cx, x))
}

/// [`nonzero`] cropped to `size` rows, or filled up to them.
fn nonzero_static(cx: &Cx, x: Complex, size: Expr, fill: i64) -> Lowered {
    let rows = rows(cx, x);
    let missing = cx.full(&[size.clone(), cx.dim(rows, 1)], fill, DType::I64);
    let enough = cx.concat(&[rows, missing], 0);
    set_recorded(cx, cx.slice_op(enough, cx.ints(&[0]), cx.sizes(&[size]), cx.ints(&[0]), None))
}

/// The coordinates of the elements that are not 0, a vector for each dimension.
fn columns(cx: &Cx, x: Complex) -> Lowered<Outputs> {
    let columns = coordinates(cx, mask_of(cx, x)).into_iter().enumerate();
    let checked = |(i, column)| {
        let meta = cx.recorded(i)?;
        cx.set_type(column, pt2onnx_ir::Type::tensor(DType::I64, meta.sizes.clone()));
        Some(column)
    };
    Ok(Outputs(columns.map(checked).collect()))
}

fn meta_masked_select(cx: &Cx, x: Value) -> Lowered {
    Ok(sized(cx, x, &[fresh(cx)]))
}

fn meta_nonzero(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, DType::I64, &[fresh(cx), Expr::int(cx.rank(x) as i64)]))
}

fn meta_nonzero_numpy(cx: &Cx, x: Value) -> Lowered<Vec<Value>> {
    let count = fresh(cx);
    Ok((0..cx.rank(x).max(1))
        .map(|_| typed(cx, DType::I64, std::slice::from_ref(&count)))
        .collect())
}

fn meta_nonzero_static(cx: &Cx, x: Value, size: Expr) -> Lowered {
    Ok(typed(cx, DType::I64, &[size, Expr::int(cx.rank(x) as i64)]))
}

checks! {
    // As many as there are places.
    "aten.masked_scatter(x: f32[s0, s1], m: b8[s0, s1], v: f32[s2]) -> f32[s0, s1]" => "
    val_0 = NonZero (m)
    val_1 = Shape <start: int = 1> (val_0)
    val_2 = Slice (v, [0], val_1, [0])
    val_3 = Transpose <perm: ints = [1, 0]> (val_0)
    masked_scatter = ScatterND (x, val_3, val_2)
    ";

    // Selected elements.
    "aten.masked_select(x: f32[s0, 2], m: b8[2]) -> f32[u0]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (x)
    val_1 = Concat <axis: int = 0> (val_0, [1])
    val_2 = Expand (m, val_1)
    val_3 = Reshape (val_2, [-1])
    masked_select = Compress (x, val_3)
    ";
}
