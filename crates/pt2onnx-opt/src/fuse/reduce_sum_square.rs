//! `ReduceL2(x)²` becomes `ReduceSumSquare(x)`, except for integers, whose norm is rounded first.

use super::{Because, Fusion, Pass, Patterns, Run};
use pt2onnx_tensor::DType;

pub(crate) static REDUCE_SUM_SQUARE: Pass = Pass {
    name: "reduce-sum-square",
    since: 13,
    description: "Replaces the square of ReduceL2 by ReduceSumSquare.",
    precondition: "The norm is of float32, or computed in the type of the square.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// The norm may be computed in float64, as that of complex float32 numbers is: its square overflows
/// where the sum of squares does.
fn fusions() -> Patterns {
    Ok(vec![Fusion::new(
        "{Mul(l:ReduceL2(x), l) | Pow(l:ReduceL2(x), 2) | Mul(c:Cast(l:ReduceL2(w:Cast(x))), c) \
          | Pow(c:Cast(l:ReduceL2(w:Cast(x))), 2)}",
        |cx, found| {
            let (norm, x) = (found.get_node(cx, "l")?, found.get("x")?);
            let of = |v| cx.model().dtype(v);
            let sound = match found.value("c") {
                Some(narrow) => [x, narrow].map(of) == [Some(DType::F32); 2],
                None => of(x).is_some_and(DType::is_float),
            };
            sound.because("the norm is of integers, or cast to another type than its operand's")?;
            let inputs: Vec<_> =
                std::iter::once(Some(x)).chain(norm.inputs().iter().skip(1).copied()).collect();
            Ok(cx.emit1("ReduceSumSquare", &inputs, norm.attributes))
        },
    )?])
}
