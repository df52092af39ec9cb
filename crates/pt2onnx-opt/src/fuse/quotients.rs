//! Floor divisions of integers that are not negative.

use crate::{fusion::Fusion, legalise::nonnegative, pattern::PatternError};
use pt2onnx_ir::{Model, Value};

/// How far a value is followed.
const DEPTH: usize = 8;

/// The floor division by positive integers, as the lowering writes it, is a division if no element is negative.
pub(crate) fn quotient_fusions() -> Result<Vec<Fusion>, PatternError> {
    let written = "Sub(Div(Add(x, n:Cast(Less(x, zero))), divisor), n)";
    Ok(vec![Fusion::new(written, |cx, found| {
        let [x, zero, divisor] = [found.value("x")?, found.value("zero")?, found.value("divisor")?];
        let zero = cx.constant_of(zero)?.to_vec::<i64>()?;
        let divides =
            zero == [0] && nonnegative(&cx.model(), x) && never_wraps(&cx.model(), x, DEPTH);
        divides.then(|| cx.emit1("Div", &[Some(x), Some(divisor)], Vec::new()))
    })?])
}

/// Whether no arithmetic before a value may leave the range of its type, which would make large numbers negative.
fn never_wraps(model: &Model, value: Value, depth: usize) -> bool {
    let (Some(node), Some(depth)) = (model.producer(value), depth.checked_sub(1)) else {
        return model.producer(value).is_none();
    };
    match model[node].op() {
        "ArgMax" | "ArgMin" | "NonZero" | "Shape" | "Size" | "TopK" => true,
        "Abs" | "Add" | "Cast" | "Mul" => false,
        _ => model[node].inputs().iter().flatten().all(|v| never_wraps(model, *v, depth)),
    }
}
