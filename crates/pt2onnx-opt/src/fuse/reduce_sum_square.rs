//! Squares of norms of floats: no root is needed. (A norm of integers is rounded before it is
//! squared.)

use crate::{analysis::dtype, fusion::Fusion, pattern::PatternError};
use pt2onnx_tensor::DType;

/// The norm may be computed in float64, as that of complex float32 numbers is: its square overflows
/// where the sum of squares does.
pub(crate) fn square_fusions() -> Result<Vec<Fusion>, PatternError> {
    Ok(vec![Fusion::new(
        "{Mul(l:ReduceL2(x), l) | Pow(l:ReduceL2(x), 2) | Mul(c:Cast(l:ReduceL2(w:Cast(x))), c) \
          | Pow(c:Cast(l:ReduceL2(w:Cast(x))), 2)}",
        |cx, found| {
            let (norm, x) = (found.node(cx, "l")?, found.value("x")?);
            let of = |v| dtype(&cx.model(), v);
            let sound = match found.value("c") {
                Some(narrow) => [x, narrow].map(of) == [Some(DType::F32); 2],
                None => of(x).is_some_and(DType::is_float),
            };
            if !sound {
                return None;
            }
            let inputs: Vec<_> =
                std::iter::once(Some(x)).chain(norm.inputs().iter().skip(1).copied()).collect();
            Some(cx.emit1("ReduceSumSquare", &inputs, norm.attributes))
        },
    )?])
}
