//! Products of all numbers along a dimension.

use crate::math::matrix::iterate::{Step, iterate};
use crate::{Complex, Cx};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;

/// The product along the last dimension: `ReduceProd` of real numbers. Of complex ones, both halves are multiplied with each other
/// until one number is left, or one after the other by a `Loop` if their count is not known.
pub fn product(cx: &Cx, x: Complex) -> Complex {
    let last = cx.rank(x.re) - 1;
    let count = cx.dim(x.re, -1);
    match (x.im, count.as_int()) {
        (None, _) => cx.reduce(Reduction::Prod, x.re, &[last], false).into(),
        (_, Some(1..)) => by_halves(cx, x, last),
        _ => {
            let mut shape = cx.shape(x.re);
            shape.pop();
            let one = cx.full(&shape, 1, cx.dtype(x.re));
            let start = Complex::from(one).complex(cx);
            let (state, _) = iterate(cx, &count, &[start], |k, state| {
                Step::state(vec![state[0].mul(cx, number(cx, x, k))])
            });
            state[0]
        }
    }
}

/// [`product`] of a known count of numbers, at least one.
fn by_halves(cx: &Cx, mut x: Complex, last: usize) -> Complex {
    while let Some(n @ 2..) = cx.dim(x.re, -1).as_int() {
        let half = n / 2;
        let cut =
            |from: i64, to: i64| x.map(|v| cx.slice(v, last, &Expr::int(from), &Expr::int(to), 1));
        let product = cut(0, half).mul(cx, cut(half, 2 * half));
        x = match n % 2 {
            0 => product,
            _ => {
                let rest = cut(n - 1, n);
                let join = |a, b| cx.concat(&[a, b], last);
                let im = product.im.zip(rest.im).map(|(a, b)| join(a, b));
                Complex::new(join(product.re, rest.re), im)
            }
        };
    }
    x.map(|v| cx.squeeze(v, &[last]))
}

/// Number `k` of each vector.
fn number(cx: &Cx, x: Complex, k: Value) -> Complex {
    let last = cx.rank(x.re) - 1;
    x.map(|v| cx.squeeze(cx.gather(v, k, last), &[last]))
}
