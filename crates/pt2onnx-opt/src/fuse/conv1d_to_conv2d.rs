//! Makes convolutions of sequences those of images of height 1, which runtimes compute faster.

use super::{Because, Fusion, Match, Measure, NoFusion, Pass, Patterns, Phase, Run};
use pt2onnx_ir::{Attribute, Attributes, Builder, Model, Node, Value, attrs};
use pt2onnx_tensor::{DType, Tensor};

pub(crate) static CONV1D_TO_CONV2D: Pass = Pass {
    name: "conv1d-to-conv2d",
    since: 13,
    description: "Replaces a Conv of sequences by one of images of height 1, and moves an \
                  activation behind it before the Squeeze that follows, in models of other \
                  producers only. ONNX Runtime's convolutions of blocks of channels, into which \
                  it also fuses activations, are for images.",
    precondition: "float32, outside of bodies, and a constant weight that nothing else uses, whose \
                   channels make blocks of 16, or which is for one or two channels and long.",
    lowers: Measure::Sequences,
    phase: Phase::Late,
    imported: true,
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// Activations that ONNX Runtime fuses into a convolution.
const ACTIVATIONS: [&str; 6] = ["Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "Clip"];

fn fusions() -> Patterns {
    let activation = |op| {
        let pattern = format!("a:{op}(s:Squeeze(c:Conv(x, #weight)))");
        Fusion::new(&pattern, move |cx, found| activated(cx, found, op))
    };
    let conv = Fusion::new("c:Conv(x, #weight)", widened);
    std::iter::once(conv).chain(ACTIVATIONS.map(activation)).collect()
}

/// A weight of fewer numbers for each output is not worth the two nodes.
const FEW: usize = 64;

/// The number of channels of a block, on processors with AVX-512.
const BLOCK: usize = 16;

/// Whether the convolution is faster in blocks of channels, measured in ONNX Runtime 1.32.
fn pays(weight: &Tensor, group: usize) -> bool {
    let &[outputs, inputs, kernel] = weight.shape() else { return false };
    let blocks = |channels: usize| channels > 0 && channels.is_multiple_of(BLOCK);
    match group {
        1 => outputs >= BLOCK && (inputs <= 2 || blocks(inputs)) && inputs * kernel >= FEW,
        _ if group == outputs && inputs == 1 => blocks(group),
        _ => blocks(inputs) && outputs.checked_div(group).is_some_and(blocks),
    }
}

fn widened(cx: &Builder, found: &Match) -> Result<Value, NoFusion> {
    let (node, x, given) = (found.get_node(cx, "c")?, found.get("x")?, found.get("weight")?);
    let weight = cx.constant_of(given).filter(|t| t.rank() == 3 && t.dtype() == DType::F32);
    let weight = weight.because("the weight is not one of float32 sequences")?;
    // ONNX Runtime leaves convolutions in bodies whose weight is outside.
    let main = found.nodes().iter().all(|&id| cx.model()[id].region() == Model::MAIN);
    main.because("it is in a body")?;
    found.is_unshared(cx, given).because("the weight is shared")?;
    let conv = attrs::Conv::read(&node).map_err(|_| NoFusion::NoMatch)?;
    let group = usize::try_from(conv.group).map_err(|_| NoFusion::NoMatch)?;
    let kernel = weight.shape()[2];
    (kernel > 1 && pays(&weight, group)).because("it would not be faster")?;
    let [outputs, inputs] = [0, 1].map(|i| weight.shape()[i]);
    let wide = weight.reshaped([outputs, inputs, 1, kernel]).ok_or(NoFusion::NoMatch)?;
    let mut attributes = node.attributes.clone();
    for (name, value) in &mut attributes {
        if let Attribute::Ints(ints) = value {
            // Pads are those of both starts, then those of both ends.
            match &**ints {
                [start, end] if name == "pads" => *value = vec![0, *start, 0, *end].into(),
                [one] => *value = vec![1, *one].into(),
                _ => return Err(NoFusion::NoMatch),
            }
        }
    }
    let mut operands = node.inputs().to_vec();
    operands[0] = Some(view(cx, "Unsqueeze", x));
    operands[1] = Some(found.add_folded(cx, wide, Some(given)));
    Ok(view(cx, "Squeeze", cx.emit1("Conv", &operands, attributes)))
}

/// Adds or removes the height.
fn view(cx: &Builder, op: &'static str, x: Value) -> Value {
    let axis = cx.constant(Tensor::vector(&[2i64]));
    cx.emit1(op, &[Some(x), Some(axis)], Attributes::new())
}

fn activated(cx: &Builder, found: &Match, op: &'static str) -> Result<Value, NoFusion> {
    let first = |node: &Node, x: Option<Value>| {
        let mut inputs = node.inputs().to_vec();
        inputs[0] = x;
        inputs
    };
    let (activation, squeeze) = (found.get_node(cx, "a")?, found.get_node(cx, "s")?);
    let inputs = first(&activation, found.value("c"));
    let y = cx.emit1(op, &inputs, activation.attributes);
    Ok(cx.emit1("Squeeze", &first(&squeeze, Some(y)), squeeze.attributes))
}
