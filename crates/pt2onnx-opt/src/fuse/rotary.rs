//! Rotary embedding fusion: the formula that rotates the two halves of the last dimension becomes
//! `RotaryEmbedding`.

use super::{
    Because, Fusion, Match, Measure, NoFusion, Pass, Patterns, Run, broadcast::expanded, slices,
};
use crate::{
    Target,
    analysis::{known, number_of},
};
use pt2onnx_ir::{Builder, Node, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

pub(crate) static ROTARY: Pass = Pass {
    name: "rotary",
    since: 23,
    description: "Replaces the formula of rotary position embeddings by RotaryEmbedding (opset \
                  23).",
    precondition: "The formula rotates the two halves of the last dimension, or of its first \
                   part. Both halves and all heads have the same cosines and sines.",
    any_opset: &[Target::OrtGenai],
    lowers: Measure::Operators(&["Neg"]),
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// `x * cos + concat(-x2, x1) * sin` of four-dimensional `x`. Cosines and sines are the same for
/// both halves and all heads.
fn fusions() -> Patterns {
    let formula = "Add(Mul(x, cos), Mul(joined:Concat(Neg(high:Slice(x)), low:Slice(x)), sin))";
    let part = "joined:Concat(turned:RotaryEmbedding(low:Slice(x), cos, sin), high:Slice(x))";
    Ok(vec![Fusion::new(formula, whole)?, Fusion::new(part, of_part)?])
}

/// All of the last dimension.
fn whole(cx: &Builder, found: &Match) -> Result<Value, NoFusion> {
    let x = found.get("x")?;
    let shape = cx.known_shape(x).filter(|s| s.len() == 4 && s.iter().all(known));
    let shape = shape.because("the operand has no four known sizes")?;
    let half = rotated(cx, found, &shape[3]).because("it does not rotate two halves")?;
    found.keeps_shape(cx, x).because("the angles broadcast the operand")?;
    let float = matches!(cx.dtype(x), DType::F32 | DType::F16 | DType::BF16);
    let sizes = [shape[0].clone(), shape[2].clone(), Expr::int(half)];
    let angles = |name| {
        let given = found.value(name).filter(|v| float && cx.dtype(*v) == cx.dtype(x))?;
        let dims = cx.known_shape(given)?;
        let fits = dims.len() == 4 && dims[1].as_int() == Some(1) && dims[2..] == shape[2..];
        Some(expanded(cx, halved(cx, given, half).filter(|_| fits)?, &sizes))
    };
    let unlike = "cosines and sines are not the same for both halves and all heads";
    let (cos, sin) = (angles("cos").because(unlike)?, angles("sin").because(unlike)?);
    Ok(cx.rotary_embedding(x, cos, sin, None, attrs::RotaryEmbedding::default()))
}

/// The first part of the last dimension; the rest stays as it is.
fn of_part(cx: &Builder, found: &Match) -> Result<Value, NoFusion> {
    let (x, cos, sin) = (found.get("x")?, found.get("cos")?, found.get("sin")?);
    let shape = cx.known_shape(x).filter(|s| s.len() == 4 && s.iter().all(known));
    let shape = shape.because("the operand has no four known sizes")?;
    let heads = shape[1].as_int().because("the number of heads is not known")?;
    let options = attrs::RotaryEmbedding::read(&found.get_node(cx, "turned")?).ok();
    let plain = options.filter(|o| !o.interleaved && o.rotary_embedding_dim == 0);
    plain.ok_or(NoFusion::NoMatch)?;
    let width = parts(cx, found, &shape[3]).because("its parts are not those of one tensor")?;
    let options = attrs::RotaryEmbedding {
        num_heads: Some(heads),
        rotary_embedding_dim: width,
        ..Default::default()
    };
    Ok(cx.rotary_embedding(x, cos, sin, None, options))
}

/// The width of the first of the two parts of `x` that are joined again.
fn parts(cx: &Builder, found: &Match, whole: &Expr) -> Option<i64> {
    let (low, high) = (taken(cx, found, "low")?, taken(cx, found, "high")?);
    let (width, joined) = (whole.as_int()?, found.node(cx, "joined")?);
    let apart = low.0 == 0 && low.1 == high.0 && (0..width).contains(&low.1) && high.1 >= width;
    let all = joined.inputs().len() == 2 && is_last(attrs::Concat::axis(&joined).ok()?);
    (apart && all).then_some(low.1)
}

/// Start and end of a slice of the last of four dimensions.
fn taken(cx: &Builder, found: &Match, name: &str) -> Option<(i64, i64)> {
    let (start, end, axis) = slices::single(&cx.model(), &found.node(cx, name)?)?;
    is_last(axis).then_some((start, end))
}

fn is_last(axis: i64) -> bool {
    axis == -1 || axis == 3
}

fn rotated(cx: &Builder, found: &Match, width: &Expr) -> Option<i64> {
    let half = width.as_int().filter(|w| w % 2 == 0)? / 2;
    let (low, high) = (taken(cx, found, "low")?, taken(cx, found, "high")?);
    let joined = found.node(cx, "joined")?;
    let parts = low == (0, half) && high.0 == half && high.1 / 2 >= half;
    let whole = joined.inputs().len() == 2 && is_last(attrs::Concat::axis(&joined).ok()?);
    (parts && whole).then_some(half)
}

/// At most this many nodes are between angles and the halves that they are joined of.
const FAR: usize = 16;

/// The first half of the last dimension, without that of heads, if the second is the same.
fn halved(cx: &Builder, angles: Value, half: i64) -> Option<Value> {
    let constant = cx.model()[angles].constant().cloned();
    if let Some(t) = constant {
        return same_halves(&t, half).then(|| {
            let first = cx.slice(angles, 3, &Expr::int(0), &Expr::int(half), 1);
            cx.squeeze(first, &[1])
        });
    }
    let node = |v| Some(cx.model()[cx.model().producer(v)?].clone());
    let unsqueezed: Node = node(angles).filter(|n| n.is("Unsqueeze"))?;
    let axes = cx.model()[unsqueezed.input(1)?].constant()?.to_vec::<i64>()?;
    let (mut value, mut steps) = (unsqueezed.input(0)?, Vec::new());
    let source = loop {
        let step = node(value).filter(|_| steps.len() < FAR)?;
        let first = step.input(0)?;
        let op = match step.op() {
            "Concat" => {
                let twice = step.inputs().len() == 2 && step.input(1) == Some(first);
                let last = matches!(attrs::Concat::axis(&step), Ok(-1 | 2))
                    && cx.known_shape(value)?.len() == 3;
                break Some(first).filter(|_| twice && last && matches!(axes[..], [1 | -3]))?;
            }
            "Cos" => "Cos",
            "Sin" => "Sin",
            "Cast" => "Cast",
            "Mul" if number_of(&cx.model(), step.input(1)?).is_some() => "Mul",
            _ => return None,
        };
        steps.push((op, step));
        value = first;
    };
    let again = |x, (op, step): (&'static str, Node)| {
        let others = step.inputs()[1..].iter().copied();
        let inputs: Vec<_> = std::iter::once(Some(x)).chain(others).collect();
        cx.emit1(op, &inputs, step.attributes)
    };
    Some(steps.into_iter().rev().fold(source, again))
}

fn same_halves(t: &Tensor, half: i64) -> bool {
    let row = usize::try_from(half).unwrap_or(0) * t.dtype().bits() / 8;
    let same = |both: &[u8]| both.split_at_checked(row).is_some_and(|(a, b)| a == b);
    t.has_data() && row > 0 && t.to_bytes().chunks(2 * row).all(same)
}
