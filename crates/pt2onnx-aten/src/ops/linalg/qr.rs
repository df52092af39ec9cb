//! QR decompositions, and products with the Q that Householder reflections give.

use crate::math::matrix::qr::{apply, orthogonal, reflect, unpack};
use crate::math::matrix::{columns_of, count_rows, rows_of, smaller, triangle};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, checks, op};
use pt2onnx_ir::{Type, Value};
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::geqrf, geqrf),
    op!(aten::linalg_householder_product, householder_product),
    op!(aten::linalg_qr, linalg_qr),
    op!(aten::orgqr, householder_product),
    op!(aten::ormqr, ormqr),
];

/// R with the Householder vectors below its diagonal, and their factors `tau`, as LAPACK packs
/// them.
fn geqrf(cx: &Cx, a: Complex) -> Lowered<[Value; 2]> {
    let r = reflect(cx, a);
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    let steps = cx.dim(r.taus.re, -1);
    // R with the vectors below it.
    let below = cx.greater(count_rows(cx, &m), cx.iota(&n));
    let rank = cx.rank(a.re);
    let pads = |x: Value| {
        if n == steps {
            x
        } else {
            let pads = cx.sizes(&[Expr::int(0), &n - &steps]);
            let wide = cx.pad(x, pads, None, cx.ints(&[rank as i64 - 1]), Default::default());
            cx.set_type(wide, Type::tensor(cx.dtype(x), cx.shape(a.re)));
            wide
        }
    };
    let packed = r.vectors.map(pads).select(cx, below, r.matrix);
    Ok([packed.value(cx), r.taus.value(cx)])
}

/// The first columns of Q, as many as `a` has, from packed Householder vectors.
fn householder_product(cx: &Cx, a: Complex, taus: Complex) -> Lowered {
    let columns = columns_of(cx, a);
    Ok(orthogonal(cx, unpack(cx, a, taus), taus, &columns).value(cx))
}

/// `Q C`, or `C Q` if not `left`; with `transpose`, `Q^H` stands for `Q`.
fn ormqr(cx: &Cx, a: Complex, taus: Complex, c: Complex, left: bool, transpose: bool) -> Lowered {
    let vectors = unpack(cx, a, taus);
    let product = if left {
        apply(cx, vectors, taus, c, transpose)
    } else {
        // (Q^H C^H)^H
        apply(cx, vectors, taus, c.adjoint(cx), !transpose).adjoint(cx)
    };
    Ok(product.value(cx))
}

/// Q and R of `A = Q R`. `mode` is the number of columns of Q: `reduced` `min(m, n)`, `complete`
/// `m`, `r` none.
fn linalg_qr(cx: &Cx, a: Complex, mode: String) -> Lowered<[Value; 2]> {
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    let k = smaller(cx, &m, &n);
    let reflected = reflect(cx, a);
    let rank = cx.rank(a.re);
    let first_rows = |x: Value| cx.slice(x, rank - 2, &Expr::int(0), &k, 1);
    let upper = triangle(cx, reflected.matrix, true, 0);
    let q = |columns: &Expr| orthogonal(cx, reflected.vectors, reflected.taus, columns);
    let (q, r) = match mode.as_str() {
        "reduced" => (q(&k), upper.map(first_rows)),
        "complete" => (q(&m), upper),
        "r" => {
            // PyTorch returns an empty vector for Q.
            let empty = cx.full(&cx.out_shape()?, 0, cx.dtype(a.re));
            (Complex::from(empty).like(cx, a), upper.map(first_rows))
        }
        other => return Err(LowerError::unknown("QR mode", other)),
    };
    Ok([q.value(cx), r.value(cx)])
}

checks! {
    // Unknown modes are errors.
    "aten.linalg_qr(x: f32[2, 2], 'full') -> (f32[2, 2], f32[2, 2])" => "
    parts of the program cannot be translated:
      aten.linalg_qr.default (node `linalg_qr`): there is no QR mode `full`
    ";

    // `r` alone needs no Q.
    "aten.linalg_qr(x: f32[1, 2], 'r') -> (f32[0], f32[1, 2])" => "
    val_0 = Expand (0.0, [0])
    val_1, val_2, val_3 = Loop <body: graph = body (int64 val_4, bool val_5, float[1,2] val_6) => (bool val_7, float[1,2] val_8, float[1] val_9, float val_10)
    {
      val_11 = Unsqueeze (val_4, [0])
      val_12 = Gather <axis: int = 1> (val_6, val_11)
      val_13 = Greater (int64[1,1] {0}, val_11)
      val_14 = Where (val_13, val_12, 0.0)
      val_15 = Gather <axis: int = 0> (val_12, val_11)
      val_16 = Mul (val_14, val_14)
      val_17 = ReduceSum <keepdims: int = 1> (val_16, [0])
      val_18 = Mul (val_15, val_15)
      val_19 = Add (val_18, val_17)
      val_20 = Sqrt (val_19)
      val_21 = Less (val_15, 0.0)
      val_22 = Neg (val_20)
      val_23 = Where (val_21, val_20, val_22)
      val_24 = Equal (val_17, 0.0)
      val_25 = Where (val_24, 1.0, val_23)
      val_26 = Sub (val_25, val_15)
      val_27 = Div (val_26, val_25)
      val_28 = Not (val_24)
      val_29 = Where (val_28, val_27, 0.0)
      val_30 = Sub (val_15, val_25)
      val_31 = Where (val_24, 1.0, val_30)
      val_32 = Equal (int64[1,1] {0}, val_11)
      val_33 = Cast <to: int = 1> (val_32)
      val_34 = Div (val_14, val_31)
      val_35 = Add (val_34, val_33)
      val_36 = GreaterOrEqual (int64[1,1] {0}, val_11)
      val_37 = Where (val_36, val_6, 0.0)
      val_38 = Transpose <perm: ints = [1, 0]> (val_35)
      val_39 = MatMul (val_38, val_37)
      val_40 = Mul (val_29, val_35)
      val_41 = Mul (val_40, val_39)
      val_42 = Sub (val_6, val_41)
      val_43 = LessOrEqual ([0, 1], val_11)
      val_44 = Less (int64[1,1] {0}, val_11)
      val_45 = And (val_24, val_43)
      val_46 = Or (val_44, val_45)
      val_8 = Where (val_46, val_6, val_42)
      val_9 = Reshape (val_35, [1])
      val_10 = Reshape (val_29, [])
      val_7 = Identity (true)
    }> (1, true, x)
    val_47 = Transpose <perm: ints = [1, 0]> (val_2)
    linalg_qr_1 = Trilu (val_1)
    linalg_qr_0 = Expand (0.0, [0])
    ";
}
