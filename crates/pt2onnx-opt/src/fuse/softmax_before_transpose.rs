//! Moves `Softmax` before a transpose that takes its axis away from the last dimensions.

use super::{Because, Fusion, Match, Measure, NoFusion, Pass, Patterns, Run};
use crate::analysis::perm;
use pt2onnx_ir::{Attributes, Builder, Value, attrs};
use pt2onnx_symbolic::axis;

pub(crate) static SOFTMAX_BEFORE_TRANSPOSE: Pass = Pass {
    name: "softmax-before-transpose",
    since: 13,
    description: "Moves Softmax and LogSoftmax before the Transpose in front of them if their axis \
                  is nearer to the last one there: runtimes move it to the last place and back.",
    precondition: "Nothing else uses the transposed value.",
    lowers: Measure::SoftmaxAxes,
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

fn fusions() -> Patterns {
    let fusion = |op| {
        let pattern = format!("s:{op}(t:Transpose(x))");
        Fusion::new(&pattern, move |cx, found| before(cx, found, op))
    };
    ["Softmax", "LogSoftmax"].into_iter().map(fusion).collect()
}

fn before(cx: &Builder, found: &Match, op: &'static str) -> Result<Value, NoFusion> {
    let (softmax, transpose) = (found.get_node(cx, "s")?, found.get_node(cx, "t")?);
    let perm = perm(&cx.model(), &transpose).because("the dimensions are not known")?;
    // LogSoftmax has the same attribute.
    let given = attrs::Softmax::read(&softmax).map_err(|_| NoFusion::NoMatch)?.axis;
    let after = axis(given, perm.len()).ok_or(NoFusion::NoMatch)?;
    let before = perm[after];
    (before > after as i64).because("the axis is not nearer to the last one before")?;
    let moved = Attributes::from_iter([("axis".into(), before.into())]);
    let y = cx.emit1(op, &[found.value("x")], moved);
    Ok(cx.emit1("Transpose", &[Some(y)], transpose.attributes))
}
