//! Products of all numbers along a dimension.

use crate::math::matrix::iterate::{Step, iterate};
use crate::{Complex, Cx};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;

/// The product along the last dimension: `ReduceProd` of real numbers; for complex ones
/// [`by_halves`], or a `Loop` if their count is not known.
pub fn product(cx: &Cx, x: Complex) -> Complex {
    let last = cx.rank(x.re) - 1;
    let count = cx.dim(x.re, -1);
    match (x.im, count.as_int()) {
        (None, _) => cx.reduce(Reduction::Prod, x.re, &[last], false).into(),
        (_, Some(1..)) => by_halves(cx, x, last).map(|v| cx.squeeze(v, &[last])),
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

/// The product along an axis of known size, at least 1, which keeps size 1: the first half is
/// multiplied with the second until one number is left.
pub fn by_halves(cx: &Cx, mut x: Complex, axis: usize) -> Complex {
    let mut odd: Option<Complex> = None;
    while let Some(n @ 2..) = cx.dim(x.re, axis as i64).as_int() {
        let mut sizes = vec![Expr::int(n / 2); 2];
        sizes.extend((n % 2 == 1).then_some(Expr::int(1)));
        let (re, im) = (cx.split(x.re, axis, &sizes), x.im.map(|im| cx.split(im, axis, &sizes)));
        let part = |i: usize| Complex::new(re[i], im.as_ref().map(|im| im[i]));
        x = part(0).mul(cx, part(1));
        if n % 2 == 1 {
            odd = Some(odd.map_or(part(2), |product| product.mul(cx, part(2))));
        }
    }
    odd.map_or(x, |rest| x.mul(cx, rest))
}

/// Number `k` of each vector.
fn number(cx: &Cx, x: Complex, k: Value) -> Complex {
    let last = cx.rank(x.re) - 1;
    x.map(|v| cx.squeeze(cx.gather(v, k, last), &[last]))
}
