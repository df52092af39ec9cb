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
    unknown_modes_are_errors {
        "aten.linalg_qr(x: f32[2, 2], 'full') -> (f32[2, 2], f32[2, 2])" => "
        parts of the program cannot be translated:
          aten.linalg_qr.default (node `linalg_qr`): there is no QR mode `full`
        ";
    }

    r_alone_needs_no_q {
        "aten.linalg_qr(x: f32[1, 2], 'r') -> (f32[0], f32[1, 2])" => "
        (float[1,2] x) => (float[0] linalg_qr_0, float[1,2] linalg_qr_1)
        <
          float val_0 = {0.0},
          int64[1] val_1 = {0},
          int64[1,1] val_2 = {0},
          int64[2] val_3 = {0, 1},
          float val_4 = {1.0},
          int64[1] val_5 = {1},
          int64[0] val_6 = {},
          bool val_7 = {1},
          int64 val_8 = {1}
        >
        {
          val_9 = Expand (val_0, val_1)
          val_53, val_54, val_55 = Loop <body: graph = body (int64 val_10, bool val_11, float[1,2] val_12) => (bool val_52, float[1,2] val_49, float[1] val_50, float val_51)
          {
            val_13 = Unsqueeze (val_10, val_1)
            val_14 = Gather <axis: int = 1> (val_12, val_13)
            val_15 = Greater (val_2, val_13)
            val_16 = Where (val_15, val_14, val_0)
            val_17 = Gather <axis: int = 0> (val_14, val_13)
            val_18 = Mul (val_16, val_16)
            val_19 = ReduceSum <keepdims: int = 1> (val_18, val_1)
            val_20 = Mul (val_17, val_17)
            val_21 = Add (val_20, val_19)
            val_22 = Sqrt (val_21)
            val_23 = Less (val_17, val_0)
            val_24 = Neg (val_22)
            val_25 = Where (val_23, val_22, val_24)
            val_26 = Equal (val_19, val_0)
            val_27 = Where (val_26, val_4, val_25)
            val_28 = Sub (val_27, val_17)
            val_29 = Div (val_28, val_27)
            val_30 = Not (val_26)
            val_31 = Where (val_30, val_29, val_0)
            val_32 = Sub (val_17, val_27)
            val_33 = Where (val_26, val_4, val_32)
            val_34 = Equal (val_2, val_13)
            val_35 = Cast <to: int = 1> (val_34)
            val_36 = Div (val_16, val_33)
            val_37 = Add (val_36, val_35)
            val_38 = GreaterOrEqual (val_2, val_13)
            val_39 = Where (val_38, val_12, val_0)
            val_40 = Transpose <perm: ints = [1, 0]> (val_37)
            val_41 = MatMul (val_40, val_39)
            val_42 = Mul (val_31, val_37)
            val_43 = Mul (val_42, val_41)
            val_44 = Sub (val_12, val_43)
            val_45 = LessOrEqual (val_3, val_13)
            val_46 = Less (val_2, val_13)
            val_47 = And (val_26, val_45)
            val_48 = Or (val_46, val_47)
            val_49 = Where (val_48, val_12, val_44)
            val_50 = Reshape (val_37, val_5)
            val_51 = Reshape (val_31, val_6)
            val_52 = Identity (val_7)
          }> (val_8, val_7, x)
          val_56 = Transpose <perm: ints = [1, 0]> (val_54)
          linalg_qr_1 = Trilu (val_53)
          linalg_qr_0 = Expand (val_0, val_1)
        }
        ";
    }
}
