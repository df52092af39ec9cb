//! Bounds fusion: two of `Min`, `Max`, `Relu` and `Clip` become one.

use super::{Because, Fusion, Match, NoFusion, Pass, Patterns, Run};
use crate::analysis::number_of;
use pt2onnx_ir::{Builder, Node, Value};
use pt2onnx_tensor::DType;

pub(crate) static CLIP: Pass = Pass {
    name: "clip",
    description: "Replaces two of Min, Max, Relu and Clip by one.",
    precondition: "The bounds are constants, and no lower one is above an upper one. Before opset \
                   12, the type is float32.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// Two nodes that bound `x` by numbers become one. A single `Min` or `Max` is kept, because
/// runtimes differ in what `Clip` gives for infinity if one bound is missing.
fn fusions() -> Patterns {
    let inner = "{i:Clip(x) | i:Relu(x) | i:Min(x, d) | i:Max(x, d)}";
    let outer =
        format!("{{o:Clip({inner}) | o:Relu({inner}) | o:Min({inner}, c) | o:Max({inner}, c)}}");
    // Older forms of `Clip` and their runtimes are for float32.
    let single = |cx: &Builder<'_>, found: &Match<'_>| {
        let dtype = cx.known_dtype(found.get("x")?);
        (dtype == Some(DType::F32)).because("the type is not float32")?;
        clip(cx, found)
    };
    Ok(vec![Fusion::new(&outer, clip)?.since(12), Fusion::new(&outer, single)?])
}

/// The lower and the upper bound of a node, if known; `number` is that of `Min` and `Max`.
fn bounds(cx: &Builder<'_>, node: &Node, number: Option<Value>) -> Option<[Option<f64>; 2]> {
    let element = |v: Value| Some(number_of(&cx.model(), v)?.1).filter(|n| !n.is_nan());
    let bound = |i: usize| node.input(i).map_or(Some(None), |v| element(v).map(Some));
    let found = match node.op() {
        "Relu" => [Some(0.0), None],
        "Max" => [Some(element(number?)?), None],
        "Min" => [None, Some(element(number?)?)],
        _ => [bound(1)?, bound(2)?],
    };
    // If the lower bound is above the upper one, `Min` and `Max` give the upper one in either
    // order; `Clip` is not sure to.
    ordered(found).then_some(found)
}

fn ordered([low, high]: [Option<f64>; 2]) -> bool {
    low.zip(high).is_none_or(|(low, high)| low <= high)
}

/// One of two bounds.
fn either(a: Option<f64>, b: Option<f64>, pick: fn(f64, f64) -> f64) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(pick(a, b)),
        (a, b) => a.or(b),
    }
}

fn clip(cx: &Builder<'_>, found: &Match<'_>) -> Result<Value, NoFusion> {
    let (x, inner, outer) = (found.get("x")?, found.get_node(cx, "i")?, found.get_node(cx, "o")?);
    let unknown = "a bound is not a constant, or the lower one is above the upper one";
    let [low, high] = bounds(cx, &inner, found.value("d")).because(unknown)?;
    let [least, most] = bounds(cx, &outer, found.value("c")).because(unknown)?;
    let both = [either(low, least, f64::max), either(high, most, f64::min)];
    ordered(both).because("a lower bound is above an upper one")?;
    found.keeps_shape(cx, x).because("a bound broadcasts the operand, or sizes are not known")?;
    let scalar = |b: Option<f64>| b.map(|b| cx.scalar(b, cx.dtype(x)));
    let one = |op: &str| inner.op() == op || outer.op() == op;
    let [low, high] = both;
    Ok(match (low, high) {
        (Some(_), Some(_)) => cx.emit1("Clip", &[Some(x), scalar(low), scalar(high)], Vec::new()),
        (Some(_), None) if one("Clip") => cx.emit1("Clip", &[Some(x), scalar(low)], Vec::new()),
        (None, Some(_)) if one("Clip") => {
            cx.emit1("Clip", &[Some(x), None, scalar(high)], Vec::new())
        }
        (Some(0.0), None) if one("Relu") => cx.emit1("Relu", &[Some(x)], Vec::new()),
        (Some(_), None) => cx.emit1("Max", &[Some(x), scalar(low)], Vec::new()),
        (None, Some(_)) => cx.emit1("Min", &[Some(x), scalar(high)], Vec::new()),
        (None, None) => x,
    })
}
