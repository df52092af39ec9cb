//! Eigenvalues and eigenvectors of general matrices: the shifted QR algorithm to Schur's form, back substitution from there.

use super::{
    super::num::Num,
    as_column, batch_of, columns_of, count_rows, diagonal,
    eigen::epsilon,
    identity,
    iterate::{Step, iterate},
    lu::magnitude,
    qr::{orthogonal, reflect},
    row, rows_of, shape_with,
};
use crate::{AtenOp, Cx, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(in super::super) static OPS: &[AtenOp] = &[
    aten!("aten::_linalg_eigvals(Tensor self) -> Tensor", eigvals, complex: eigvals),
    aten!("aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", eig, complex: eig),
    aten!("aten::linalg_eigvals(Tensor self) -> Tensor", eigvals, complex: eigvals),
];

/// Steps for each eigenvalue after which the iteration ends at the latest; two or three are usual.
const STEPS: i64 = 30;

/// The principal square root.
fn root(cx: &Cx, z: Num) -> Num {
    let size = z.abs(cx);
    let half = |x: Value| cx.sqrt(cx.relu(cx.mul(x, 0.5)));
    let im = z.im.unwrap_or(z.re);
    let side = cx.select(cx.less(im, 0.0), -1.0, cx.scalar(1, cx.dtype(im)));
    Num { re: half(cx.add(size, z.re)), im: Some(cx.mul(side, half(cx.sub(size, z.re)))) }
}

/// `a / b`, and 0 where `b` is 0.
fn quotient(cx: &Cx, a: Num, b: Num) -> Num {
    let square = b.abs2(cx);
    let zero = cx.equal(square, 0.0);
    let product = a.mul(cx, b.conj(cx)).over(cx, cx.select(zero, 1.0, square));
    product.keep(cx, cx.not(zero))
}

/// The number in row `i` and column `j` of each matrix, both (.., 1, 1), picked by masks.
fn element(cx: &Cx, a: Num, of_row: Value, of_column: Value) -> Num {
    let rank = cx.rank(a.re);
    let kept = a.keep(cx, cx.and(of_row, of_column));
    kept.map(|x| cx.reduce(Reduction::Sum, x, &[rank - 2, rank - 1], true))
}

/// `A = Q T Q^H`, T with nothing of size below its diagonal. A step takes the leading block whose last row is not zero left
/// of the diagonal, and factors it, less Wilkinson's shift.
fn schur(cx: &Cx, a: Num) -> (Num, Num) {
    let (n, dtype) = (rows_of(cx, a), cx.dtype(a.re));
    let rank = cx.rank(a.re);
    let (rows, columns) = (count_rows(cx, &n), cx.iota(&n));
    let one = identity(cx, &n, dtype);
    let left = cx.less(columns, rows);
    let start = Num::from(cx.expand(one, &cx.shape(a.re))).complex(cx);
    let (state, _) = iterate(cx, &(&n * STEPS), &[a, start], |step, state| {
        let t = state[0];
        let total = |x: Value| cx.reduce(Reduction::Sum, x, &[rank - 1], true);
        let rests = total(magnitude(cx, t.keep(cx, left)));
        let sums = total(magnitude(cx, t));
        let largest = cx.reduce(Reduction::Max, sums, &[rank - 2], true);
        let open = cx.greater(rests, cx.mul(largest, epsilon(dtype)));
        // The last row with something left, 0 if there is none.
        let last = cx.reduce(Reduction::Max, cx.select(open, rows, 0), &[rank - 2], true);
        let before = cx.sub(last, 1);
        let [at, over] = [last, before].map(|i| (cx.equal(rows, i), cx.equal(columns, i)));
        let a = element(cx, t, over.0, over.1);
        let b = element(cx, t, over.0, at.1);
        let c = element(cx, t, at.0, over.1);
        let d = element(cx, t, at.0, at.1);
        // d - bc / (h + sign(h) sqrt(h^2 + bc)) with h = (a - d) / 2: the eigenvalue of the corner nearest to d.
        let h = a.sub(cx, d).scale(cx, 0.5.into());
        let bc = b.mul(cx, c);
        let root = root(cx, h.mul(cx, h).add(cx, bc));
        let along = h.conj(cx).mul(cx, root).re;
        let root = root.map(|x| cx.neg(x)).select(cx, cx.less(along, 0.0), root);
        let shift = d.sub(cx, quotient(cx, bc, h.add(cx, root)));
        // Now and then another one, as cycles have been seen.
        let round = cx.mod_(step, cx.scalar(10, DType::I64), attrs::Mod::default());
        let odd = {
            let rest = cx.reduce(Reduction::Max, cx.select(at.0, rests, 0.0), &[rank - 2], true);
            let off = Num { re: cx.mul(rest, 0.75), im: Some(cx.mul(rest, 0.4375)) };
            d.add(cx, off)
        };
        let shift = odd.select(cx, cx.equal(round, 9), shift);
        let within = cx.and(cx.less_or_equal(rows, last), cx.less_or_equal(columns, last));
        let shifted = t.sub(cx, shift.times(cx, one));
        let block = shifted.select(cx, within, Num::from(one).complex(cx));
        let reflected = reflect(cx, block);
        let q = orthogonal(cx, reflected.vectors, reflected.taus, &n);
        let turned = q.adjoint(cx).matmul(cx, t).matmul(cx, q);
        let most = cx.reduce(Reduction::Max, last, &[], false);
        Step {
            state: vec![turned, state[1].matmul(cx, q)],
            collected: Vec::new(),
            go_on: Some(cx.greater(most, 0)),
        }
    });
    (state[0], state[1])
}

fn is_empty(cx: &Cx, a: Num) -> bool {
    cx.shape(a.re).iter().any(|d| d.as_int() == Some(0))
}

/// Empty eigenvalues and eigenvectors.
fn nothing(cx: &Cx, a: Num) -> (Num, Num) {
    let n = columns_of(cx, a);
    let shape = shape_with(&batch_of(cx, a), &[&n]);
    let values = Num::from(cx.full(&shape, 0, cx.dtype(a.re)));
    (values.complex(cx), a.complex(cx))
}

fn eigvals(cx: &Cx, a: Num) -> Lowered {
    let values = match is_empty(cx, a) {
        true => nothing(cx, a).0,
        false => diagonal(cx, schur(cx, a.complex(cx)).0),
    };
    Ok(values.value(cx))
}

/// In the order of Schur's form; vectors of length 1 whose largest element is real.
fn eig(cx: &Cx, a: Num) -> Lowered<[Value; 2]> {
    if is_empty(cx, a) {
        let (values, vectors) = nothing(cx, a);
        return Ok([values.value(cx), vectors.value(cx)]);
    }
    let (t, q) = schur(cx, a.complex(cx));
    let values = diagonal(cx, t);
    let y = back_substitution(cx, t, values);
    let v = q.matmul(cx, y);
    let rank = cx.rank(v.re);
    let squares = v.abs2(cx);
    let length = cx.sqrt(cx.reduce(Reduction::Sum, squares, &[rank - 2], true));
    let axis = rank as i64 - 2;
    let options = attrs::ArgMax { axis, ..Default::default() };
    let largest = cx.arg_max(squares, options);
    let pick = |x: Value| cx.gather_elements(x, largest, attrs::GatherElements { axis });
    let lead = v.map(pick);
    let phase = lead.conj(cx).over(cx, cx.mul(lead.abs(cx), length));
    Ok([values.value(cx), v.mul(cx, phase).value(cx)])
}

/// Eigenvectors of the triangle `t`, as the columns of a triangle with ones on the diagonal: one row a step, from below.
fn back_substitution(cx: &Cx, t: Num, values: Num) -> Num {
    let (n, dtype) = (rows_of(cx, t), cx.dtype(t.re));
    let rank = cx.rank(t.re);
    let (rows, columns) = (count_rows(cx, &n), cx.iota(&n));
    let lambdas = as_column(cx, values).transpose(cx);
    let most = cx.reduce(Reduction::Max, magnitude(cx, t), &[rank - 2, rank - 1], true);
    // Equal eigenvalues: as far apart as rounding puts them, and never 0.
    let least = cx.add(cx.mul(most, epsilon(dtype)), f64::from(f32::MIN_POSITIVE));
    let one = identity(cx, &n, dtype);
    let start = Num::from(cx.expand(one, &cx.shape(t.re))).complex(cx);
    let (state, _) = iterate(cx, &n, &[start], |step, state| {
        let k = cx.sub(cx.size(&(&n - &Expr::int(1))), step);
        let of_row = row(cx, t, k);
        let corner = super::column(cx, of_row, k);
        let behind = of_row.keep(cx, cx.greater(columns, k));
        let sum = behind.matmul(cx, state[0]);
        let gap = lambdas.sub(cx, corner);
        let close = cx.less(magnitude(cx, gap), least);
        let gap = Num::from(least).select(cx, close, gap);
        let found = sum.div(cx, gap);
        let here = cx.and(cx.equal(rows, k), cx.greater(columns, k));
        Step::state(vec![found.select(cx, here, state[0])])
    });
    state[0]
}
