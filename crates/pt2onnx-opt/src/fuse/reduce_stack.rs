//! The reduction of tensors that are stacked for it is that of the tensors element by element.

use super::{Because, Fusion, Match, NoFusion, Pass, Patterns, Run};
use pt2onnx_ir::{Attributes, Builder, Value, attrs};
use pt2onnx_symbolic::axis;
use pt2onnx_tensor::DType;

pub(crate) static REDUCE_STACK: Pass = Pass {
    name: "reduce-stack",
    since: 13,
    description: "Replaces ReduceMax, ReduceMin, ReduceSum and ReduceMean of tensors that are \
                  stacked along that axis by Max, Min, Sum and Mean of them.",
    precondition: "Each operand of the Concat is an Unsqueeze along its axis; sums and means are \
                   of floats.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

fn fusions() -> Patterns {
    let fusion = |(reduction, op)| {
        let pattern = format!("r:{reduction}(c:Concat(Unsqueeze(x, #one)))");
        Fusion::new(&pattern, move |cx, found| unstacked(cx, found, op))
    };
    let all =
        [("ReduceMax", "Max"), ("ReduceMin", "Min"), ("ReduceSum", "Sum"), ("ReduceMean", "Mean")];
    all.into_iter().map(fusion).collect()
}

fn unstacked(cx: &Builder, found: &Match, op: &'static str) -> Result<Value, NoFusion> {
    let (reduction, concat) = (found.get_node(cx, "r")?, found.get_node(cx, "c")?);
    let dtype = cx.known_dtype(found.get("x")?);
    let sums = matches!(op, "Sum" | "Mean");
    let fits = dtype.is_some_and(|dtype| dtype.is_float() || !sums && dtype != DType::Bool);
    fits.because("the type is not one of the operator")?;
    let rank = concat.outputs().first().and_then(|&v| cx.known_shape(v)).map(|shape| shape.len());
    let rank = rank.because("the rank is not known")?;
    let own = concat.read::<i64>("axis").ok().flatten().and_then(|own| axis(own, rank));
    let only = |axes: Option<Value>| {
        let axes = cx.model().const_ints(axes?)?;
        <[i64; 1]>::try_from(axes).ok().and_then(|[one]| axis(one, rank))
    };
    (own.is_some() && only(reduction.input(1)) == own).because("another axis is reduced")?;
    let operands = concat.inputs().iter().map(|&stacked| {
        let model = cx.model();
        let node = &model[model.producer(stacked?)?];
        (node.is("Unsqueeze") && only(node.input(1)) == own).then(|| node.input(0))
    });
    let operands = operands.collect::<Option<Vec<_>>>().because("not all operands are stacked")?;
    let y = cx.emit1(op, &operands, Attributes::new());
    // All reductions have this attribute.
    let keeps = attrs::ReduceMax::read(&reduction).map_err(|_| NoFusion::NoMatch)?.keepdims;
    let dimension = || cx.emit1("Unsqueeze", &[Some(y), reduction.input(1)], Attributes::new());
    Ok(if keeps { dimension() } else { y })
}
