//! Replaces floor divisions of integers that are not negative by divisions.

use crate::{fusion::Fusion, legalise::nonnegative_numbers, pattern::PatternError};

/// The floor division by positive integers, as the lowering writes it, is a division if no element
/// is negative.
pub(crate) fn quotient_fusions() -> Result<Vec<Fusion>, PatternError> {
    let written = "Sub(Div(Add(x, n:Cast(Less(x, zero))), divisor), n)";
    Ok(vec![Fusion::new(written, |cx, found| {
        let [x, zero, divisor] = [found.value("x")?, found.value("zero")?, found.value("divisor")?];
        let zero = cx.constant_of(zero)?.to_vec::<i64>()?;
        let divides = zero == [0] && nonnegative_numbers(&cx.model(), x);
        divides.then(|| cx.emit1("Div", &[Some(x), Some(divisor)], Vec::new()))
    })?])
}
