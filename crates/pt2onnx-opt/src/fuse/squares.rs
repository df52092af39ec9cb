//! Squares of norms: no root is needed.

use crate::{facts::dtype, fusion::Fusion, pattern::PatternError};
use pt2onnx_tensor::DType;

/// The norm may be computed in float64, as that of complex float32 numbers is: its square overflows where the sum of squares does.
pub(crate) fn square_fusions() -> Result<Vec<Fusion>, PatternError> {
    Ok(vec![Fusion::new(
        "{Mul(l:ReduceL2(x), l) | Pow(l:ReduceL2(x), 2) | Mul(c:Cast(l:ReduceL2(w:Cast(x))), c) \
          | Pow(c:Cast(l:ReduceL2(w:Cast(x))), 2)}",
        |cx, found| {
            let (norm, x) = (found.node(cx, "l")?, found.value("x")?);
            if let Some(narrow) = found.value("c") {
                let types = [x, narrow].map(|v| dtype(&cx.model(), v));
                if types != [Some(DType::F32); 2] {
                    return None;
                }
            }
            let inputs: Vec<_> =
                std::iter::once(Some(x)).chain(norm.inputs().iter().skip(1).copied()).collect();
            Some(cx.emit1("ReduceSumSquare", &inputs, norm.attributes))
        },
    )?])
}
