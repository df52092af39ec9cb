//! Pad fusion: convolutions and pools take the `Pad` before them in.

use super::{Because, Fusion, Match, NoFusion, Pass, Patterns, Run};
use crate::analysis::number_of;
use pt2onnx_ir::{Builder, Node, Use, Value, attrs};

pub(crate) static PAD: Pass = Pass {
    name: "pad",
    description: "Merges Pad into the Conv, AveragePool or MaxPool after it.",
    precondition: "The pads are constants, and the value is the one that the operator itself pads \
                   with.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// Only spatial dimensions are padded, with the value that the operator pads with: 0, or -inf for a
/// maximum. For a maximum of elements that are not negative, 0 is the same. All that uses the
/// result of `Pad` takes it in.
fn fusions() -> Patterns {
    let mut fusions = Vec::new();
    for op in WINDOWS {
        // The second finds a `Pad` with several users.
        for pattern in [format!("w:{op}(p:Pad(x))"), format!("w:{op}(p)")] {
            fusions.push(Fusion::new(&pattern, move |cx, found| padded(cx, found, op))?);
        }
    }
    Ok(fusions)
}

/// Operators that pad themselves.
const WINDOWS: [&str; 3] = ["Conv", "AveragePool", "MaxPool"];

fn padded(cx: &Builder, found: &Match, op: &'static str) -> Result<Value, NoFusion> {
    let made = found.get("p")?;
    let producer = cx.model().producer(made);
    producer.filter(|id| cx.model()[*id].is("Pad")).ok_or(NoFusion::NoMatch)?;
    let pad = found.get_node(cx, "p")?;
    let users: Vec<Use> = cx.model()[made].uses().collect();
    for user in users {
        let Use::Input(user, 0) = user else {
            return Err(NoFusion::Because("other nodes use the padded value"));
        };
        let user = cx.model()[user].clone();
        with_pads(cx, user, &pad)?;
    }
    let window = with_pads(cx, found.get_node(cx, "w")?, &pad)?;
    let mut inputs = window.inputs().to_vec();
    inputs[0] = pad.input(0);
    Ok(cx.emit1(op, &inputs, window.attributes))
}

/// A convolution or pool that pads itself, with the attributes that say so.
fn with_pads(cx: &Builder, window: Node, pad: &Node) -> Result<Node, NoFusion> {
    let op = WINDOWS.into_iter().find(|op| window.is(op));
    let op = op.because("other nodes use the padded value")?;
    let with = if op == "MaxPool" { f64::NEG_INFINITY } else { 0.0 };
    let filled = match pad.input(2) {
        Some(value) => number_of(&cx.model(), value).map(|(_, number)| number),
        None => Some(0.0),
    };
    let x = pad.input(0).ok_or(NoFusion::NoMatch)?;
    let is_same =
        |filled: f64| filled == with || (op == "MaxPool" && filled == 0.0 && is_nonnegative(cx, x));
    filled.is_some_and(is_same).because("the operator pads with another value")?;
    let constant = attrs::Pad::read(pad).is_ok_and(|pad| pad.mode == "constant");
    constant.because("the padding repeats or reflects elements")?;
    spatial_pads(cx, window, pad, op, x).because("the operator cannot pad so")
}

/// The window with the pads of spatial dimensions.
fn spatial_pads(
    cx: &Builder,
    mut window: Node,
    pad: &Node,
    op: &'static str,
    x: Value,
) -> Option<Node> {
    let constant = |i: usize| cx.constant_of(pad.input(i)?)?.to_vec::<i64>();
    let rank = cx.known_shape(x)?.len();
    let given = constant(1)?;
    let axes = match pad.input(3) {
        Some(_) => constant(3)?,
        None => (0..rank as i64).collect(),
    };
    let spatial = rank.checked_sub(2)?;
    // The attributes that matter are the same for `Conv` and `MaxPool`.
    let options = attrs::AveragePool::read(&window).ok()?;
    let mut pads = options.pads.unwrap_or_else(|| vec![0; 2 * spatial]);
    let (none_yet, half) = (pads.iter().all(|&p| p == 0), axes.len());
    for (i, axis) in axes.into_iter().enumerate() {
        let axis = pt2onnx_symbolic::axis(axis, rank)?;
        let (before, after) = (*given.get(i)?, *given.get(i + half)?);
        match axis.checked_sub(2) {
            _ if before < 0 || after < 0 => return None,
            Some(along) => {
                for (place, more) in [(along, before), (along + spatial, after)] {
                    let pad = pads.get_mut(place)?;
                    *pad = pad.checked_add(more)?;
                }
            }
            None if (before, after) != (0, 0) => return None,
            None => {}
        }
    }
    let aligned = options.auto_pad == "NOTSET" || options.auto_pad == "VALID" && none_yet;
    if !aligned {
        return None;
    }
    if op != "Conv" {
        // A pool must not have windows that contain only padding.
        let kernel = attrs::AveragePool::kernel_shape(&window).ok()?;
        let small = pads.iter().enumerate().all(|(i, p)| p < &kernel[i % kernel.len()]);
        if !small || options.ceil_mode {
            return None;
        }
    }
    if op == "AveragePool" {
        // The mean includes what `Pad` added.
        if !none_yet && !options.count_include_pad {
            return None;
        }
        window.remove_attribute("count_include_pad");
        window.set_attribute("count_include_pad", 1i64);
    }
    for name in ["pads", "auto_pad"] {
        window.remove_attribute(name);
    }
    window.set_attribute("pads", pads);
    Some(window)
}

fn is_nonnegative(cx: &Builder, x: Value) -> bool {
    let model = cx.model();
    let producer = model.producer(x).map(|id| &model[id]);
    producer.is_some_and(|node| matches!(node.op(), "HardSigmoid" | "Relu" | "Sigmoid"))
}
