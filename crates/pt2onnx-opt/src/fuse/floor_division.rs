//! Floor division fusion: the formula for integers that are not negative becomes `Div`.

use super::{Because, Fusion, Pass, Patterns, Run};
use crate::legalise::nonnegative_numbers;

pub(crate) static FLOOR_DIVISION: Pass = Pass {
    name: "floor-division",
    description: "Replaces the formula of a floor division by Div.",
    precondition: "The divisor is positive, and the operators before show that the dividend is not \
                   negative.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// The lowering writes the floor division by positive integers so.
fn fusions() -> Patterns {
    let written = "Sub(Div(Add(x, n:Cast(Less(x, zero))), divisor), n)";
    Ok(vec![Fusion::new(written, |cx, found| {
        let [x, zero, divisor] = [found.get("x")?, found.get("zero")?, found.get("divisor")?];
        let zero = cx.constant_of(zero).and_then(|t| t.to_vec::<i64>());
        zero.is_some_and(|zero| zero == [0]).because("the dividend is not compared with 0")?;
        nonnegative_numbers(&cx.model(), x).because("the dividend may be negative")?;
        Ok(cx.emit1("Div", &[Some(x), Some(divisor)], Vec::new()))
    })?])
}
