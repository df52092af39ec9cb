//! Orthogonal polynomials of any degree, element by element, by their recurrences in a `Loop`.

use crate::math::control::{any, repeat};
use crate::math::precision::wide2;
use crate::{AtenOp, Cx, Lowered, TensorOrScalar, checks, op};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::special_chebyshev_polynomial_t, polynomial(&CHEBYSHEV_T)),
    op!(aten::special_chebyshev_polynomial_t_n_scalar, polynomial(&CHEBYSHEV_T)),
    op!(aten::special_chebyshev_polynomial_t_x_scalar, polynomial(&CHEBYSHEV_T)),
    op!(aten::special_chebyshev_polynomial_u, polynomial(&CHEBYSHEV_U)),
    op!(aten::special_chebyshev_polynomial_u_n_scalar, polynomial(&CHEBYSHEV_U)),
    op!(aten::special_chebyshev_polynomial_u_x_scalar, polynomial(&CHEBYSHEV_U)),
    op!(aten::special_chebyshev_polynomial_v, polynomial(&CHEBYSHEV_V)),
    op!(aten::special_chebyshev_polynomial_v_n_scalar, polynomial(&CHEBYSHEV_V)),
    op!(aten::special_chebyshev_polynomial_v_x_scalar, polynomial(&CHEBYSHEV_V)),
    op!(aten::special_chebyshev_polynomial_w, polynomial(&CHEBYSHEV_W)),
    op!(aten::special_chebyshev_polynomial_w_n_scalar, polynomial(&CHEBYSHEV_W)),
    op!(aten::special_chebyshev_polynomial_w_x_scalar, polynomial(&CHEBYSHEV_W)),
    op!(aten::special_hermite_polynomial_h, polynomial(&HERMITE_H)),
    op!(aten::special_hermite_polynomial_h_n_scalar, polynomial(&HERMITE_H)),
    op!(aten::special_hermite_polynomial_h_x_scalar, polynomial(&HERMITE_H)),
    op!(aten::special_hermite_polynomial_he, polynomial(&HERMITE_HE)),
    op!(aten::special_hermite_polynomial_he_n_scalar, polynomial(&HERMITE_HE)),
    op!(aten::special_hermite_polynomial_he_x_scalar, polynomial(&HERMITE_HE)),
    op!(aten::special_laguerre_polynomial_l, polynomial(&LAGUERRE)),
    op!(aten::special_laguerre_polynomial_l_n_scalar, polynomial(&LAGUERRE)),
    op!(aten::special_laguerre_polynomial_l_x_scalar, polynomial(&LAGUERRE)),
    op!(aten::special_legendre_polynomial_p, polynomial(&LEGENDRE)),
    op!(aten::special_legendre_polynomial_p_n_scalar, polynomial(&LEGENDRE)),
    op!(aten::special_legendre_polynomial_p_x_scalar, polynomial(&LEGENDRE)),
    op!(aten::special_shifted_chebyshev_polynomial_t, shifted(&CHEBYSHEV_T)),
    op!(aten::special_shifted_chebyshev_polynomial_t_n_scalar, shifted(&CHEBYSHEV_T)),
    op!(aten::special_shifted_chebyshev_polynomial_t_x_scalar, shifted(&CHEBYSHEV_T)),
    op!(aten::special_shifted_chebyshev_polynomial_u, shifted(&CHEBYSHEV_U)),
    op!(aten::special_shifted_chebyshev_polynomial_u_n_scalar, shifted(&CHEBYSHEV_U)),
    op!(aten::special_shifted_chebyshev_polynomial_u_x_scalar, shifted(&CHEBYSHEV_U)),
    op!(aten::special_shifted_chebyshev_polynomial_v, shifted(&CHEBYSHEV_V)),
    op!(aten::special_shifted_chebyshev_polynomial_v_n_scalar, shifted(&CHEBYSHEV_V)),
    op!(aten::special_shifted_chebyshev_polynomial_v_x_scalar, shifted(&CHEBYSHEV_V)),
    op!(aten::special_shifted_chebyshev_polynomial_w, shifted(&CHEBYSHEV_W)),
    op!(aten::special_shifted_chebyshev_polynomial_w_n_scalar, shifted(&CHEBYSHEV_W)),
    op!(aten::special_shifted_chebyshev_polynomial_w_x_scalar, shifted(&CHEBYSHEV_W)),
];

/// A family: the polynomial of degree 0 is 1.
struct Family {
    /// Factor and summand of `x` in the polynomial of degree 1.
    first: (f64, f64),
    /// The polynomial of degree `k + 1` from `x`, `k` (a float) and those of degrees `k - 1` and
    /// `k`.
    next: fn(&Cx, Value, Value, Value, Value) -> Value,
    /// Whether degrees above 128 (512 in float64) are NaN, as in PyTorch.
    limited: bool,
}

/// `2x q - p`
fn chebyshev(cx: &Cx, x: Value, _: Value, p: Value, q: Value) -> Value {
    cx.sub(cx.mul(cx.add(x, x), q), p)
}

const fn chebyshev_family(first: (f64, f64)) -> Family {
    Family { first, next: chebyshev, limited: false }
}

// The first to the fourth kind.
const CHEBYSHEV_T: Family = chebyshev_family((1.0, 0.0));
const CHEBYSHEV_U: Family = chebyshev_family((2.0, 0.0));
const CHEBYSHEV_V: Family = chebyshev_family((2.0, -1.0));
const CHEBYSHEV_W: Family = chebyshev_family((2.0, 1.0));

/// Hermite polynomials of physics: `2 (x q - k p)`
const HERMITE_H: Family = Family {
    first: (2.0, 0.0),
    next: |cx, x, k, p, q| cx.mul(cx.sub(cx.mul(x, q), cx.mul(k, p)), 2),
    limited: true,
};

/// Hermite polynomials of probability theory: `x q - k p`
const HERMITE_HE: Family = Family {
    first: (1.0, 0.0),
    next: |cx, x, k, p, q| cx.sub(cx.mul(x, q), cx.mul(k, p)),
    limited: true,
};

/// Laguerre polynomials: `((2k + 1 - x) q - k p) / (k + 1)`
const LAGUERRE: Family = Family {
    first: (-1.0, 1.0),
    next: |cx, x, k, p, q| {
        let factor = cx.add(cx.add(k, k), cx.sub(1, x));
        let top = cx.sub(cx.mul(factor, q), cx.mul(k, p));
        cx.div(top, cx.add(k, 1))
    },
    limited: false,
};

/// Legendre polynomials: `((2k + 1) x q - k p) / (k + 1)`
const LEGENDRE: Family = Family {
    first: (1.0, 0.0),
    next: |cx, x, k, p, q| {
        let factor = cx.mul(cx.add(cx.add(k, k), 1), x);
        let top = cx.sub(cx.mul(factor, q), cx.mul(k, p));
        cx.div(top, cx.add(k, 1))
    },
    limited: false,
};

/// The polynomial of a family.
const fn polynomial(
    family: &'static Family,
) -> impl Fn(&Cx, TensorOrScalar, TensorOrScalar) -> Lowered + Copy {
    move |cx, x, n| wide2(cx, x, n, |x, n| of_degree(cx, x, n, family))
}

/// The polynomial of a family, of `2x - 1`.
const fn shifted(
    family: &'static Family,
) -> impl Fn(&Cx, TensorOrScalar, TensorOrScalar) -> Lowered + Copy {
    move |cx, x, n| wide2(cx, x, n, |x, n| of_degree(cx, cx.sub(cx.add(x, x), 1), n, family))
}

/// The polynomial of degree `n` truncated to an integer; 0 for negative ones. The loop runs to the
/// highest degree and keeps elements of lower degrees.
fn of_degree(cx: &Cx, x: Value, n: Value, family: &Family) -> Value {
    let dtype = cx.dtype(x);
    let shape = cx.broadcast_shapes(&cx.shape(x), &cx.shape(n));
    let limit = if dtype == DType::F64 { 512.0 } else { 128.0 };
    let degree = cx.cast(n, DType::I64);
    let held =
        if family.limited { cx.minimum(degree, cx.scalar(limit, DType::I64)) } else { degree };
    let one = cx.full(&shape, 1, dtype);
    let first = cx.add(cx.mul(x, family.first.0), family.first.1);
    let first = cx.expand(first, &shape);
    let last = repeat(cx, None, &[one, first], |step, carried| {
        let k = cx.add(step, 1);
        let next = (family.next)(cx, x, cx.cast(k, dtype), carried[0], carried[1]);
        let active = cx.greater(held, k);
        let go_on = any(cx, cx.greater(held, cx.add(k, 1)));
        let p = cx.select(active, carried[1], carried[0]);
        (Some(go_on), vec![p, cx.select(active, next, carried[1])])
    });
    let value = cx.select(cx.equal(degree, 0), 1.0, last[1]);
    let value = cx.select(cx.less(degree, 0), 0.0, value);
    if family.limited { cx.select(cx.greater(degree, limit), f64::NAN, value) } else { value }
}

checks! {
    // A loop up to the highest degree.
    "aten.special_chebyshev_polynomial_u(x: f32[s0, 1], n: i64[3]) -> f32[s0, 3]" => r#"
    val_0 = Cast <to: int = 1> (n)
    val_1 = Cast <to: int = 7> (val_0)
    val_2 = Shape <start: int = 0, end: int = 1> (x)
    val_3 = Concat <axis: int = 0> (val_2, [3])
    val_4 = Expand (1.0, val_3)
    val_5 = Mul (x, 2.0)
    val_6 = Expand (val_5, [1, 3])
    val_7, val_8 = Loop <body: graph = body (int64 val_9, bool val_10, float[s0,3] val_11, float[s0,3] val_12) => (bool val_13, float[s0,3] val_14, float[s0,3] val_15)
    {
      val_16 = Add (val_9, 1)
      val_17 = Cast <to: int = 1> (val_16)
      val_18 = Add (x, x)
      val_19 = Mul (val_18, val_12)
      val_20 = Sub (val_19, val_11)
      val_21 = Greater (val_1, val_16)
      val_22 = Add (val_16, 1)
      val_23 = Greater (val_1, val_22)
      val_24 = Cast <to: int = 7> (val_23)
      val_25 = ReduceSum <keepdims: int = 0> (val_24)
      val_13 = Greater (val_25, 0)
      val_14 = Where (val_21, val_12, val_11)
      val_15 = Where (val_21, val_20, val_12)
    }> ("", true, val_4, val_6)
    val_26 = Equal (val_1, 0)
    val_27 = Where (val_26, 1.0, val_8)
    val_28 = Less (val_1, 0)
    special_chebyshev_polynomial_u = Where (val_28, 0.0, val_27)
    "#;
}
