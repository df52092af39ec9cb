//! Convolutions of a few tokens by ONNX Runtime's own operator, which takes a part of their time.

use super::{Measure, Pass, Phase, Run};
use crate::{
    Changed, GraphMut, Options, Target,
    analysis::{known, size_of},
    rewrite,
};
use pt2onnx_ir::{Builder, InsertPoint, Model, NodeId, RegionId, Type, attrs};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::DType;

pub(crate) static CAUSAL_CONV: Pass = Pass {
    name: "causal-conv",
    description: "Replaces Conv of each channel alone by com.microsoft.CausalConvWithState where \
                  it gives a few tokens, for the targets `ort` and `ort-genai` only.",
    precondition: "The result has at most 8 tokens by its type, or by the condition of the If \
                   around it. There are at least 64 channels.",
    lowers: Measure::Operators(&["Conv"]),
    targets: Target::CONTRIB,
    phase: Phase::Last,
    run: Run::Graph(run),
    ..Pass::FUSION
};

/// With more tokens or fewer channels, `Conv` is as fast.
const TOKENS: i64 = 8;
const CHANNELS: i64 = 64;

fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    let (nodes, model) = (graph.nodes(), &mut *graph.model);
    let branches: Vec<Few> = nodes.iter().filter_map(|&id| few(model, id)).collect();
    let replaced = nodes.into_iter().filter_map(|id| {
        let region = model[id].region();
        replace(model, id, branches.iter().find(|few| few.branch == region))
    });
    replaced.count() > 0
}

/// The branch of an `If` for at most so many tokens.
struct Few {
    branch: RegionId,
    tokens: Expr,
    most: i64,
}

fn few(model: &Model, id: NodeId) -> Option<Few> {
    let node = Some(&model[id]).filter(|n| n.is("If"))?;
    let condition = &model[model.producer(node.input(0)?)?];
    let tokens = size_of(model, condition.input(0)?)?;
    let bound = size_of(model, condition.input(1)?)?.as_int()?;
    let most = match condition.op() {
        "LessOrEqual" | "Equal" => bound,
        "Less" => bound.checked_sub(1)?,
        _ => return None,
    };
    Some(Few { branch: attrs::If::then_branch(node).ok()?, tokens, most })
}

/// The operator takes the first tokens as its state.
fn replace(model: &mut Model, id: NodeId, few: Option<&Few>) -> Option<()> {
    let node = Some(&model[id]).filter(|n| n.is("Conv") && n.domain.is_empty())?;
    let options = attrs::Conv::read(node).ok()?;
    let (x, weight) = (node.input(0)?, node.input(1)?);
    let (dtype, shape) = model.tensor_type(x)?;
    let [batch, channels, length] = &shape[..] else { return None };
    let [filters, one, kernel] = &model.shape(weight)?[..] else { return None };
    let kernel = kernel.as_int().filter(|&k| k > 1)?;
    let all = |given: &Option<Vec<i64>>, n: i64| given.iter().flatten().all(|&i| i == n);
    let fits = dtype == DType::F32
        && [batch, length].into_iter().all(known)
        && channels.as_int() == Some(options.group)
        && options.group >= CHANNELS
        && filters == channels
        && one.as_int() == Some(1)
        && matches!(options.auto_pad, "NOTSET" | "VALID")
        && all(&options.pads, 0)
        && all(&options.strides, 1)
        && all(&options.dilations, 1);
    fits.then_some(())?;
    let before = Expr::int(kernel - 1);
    let tokens = length.clone() - before.clone();
    let most = tokens.as_int().or_else(|| {
        let few = few?;
        (tokens.clone() - few.tokens.clone()).as_int()?.checked_add(few.most)
    })?;
    (1..=TOKENS).contains(&most).then_some(())?;
    let of = |length: &Expr| Type::tensor(dtype, [batch.clone(), channels.clone(), length.clone()]);
    let types = [of(&tokens), of(&before)];
    let (bias, result, origins) = (node.input(2), node.outputs()[0], node.origins.clone());
    let cx = Builder::new(model, InsertPoint::Before(id), Constraints::default());
    cx.set_origins(&origins);
    let state = cx.slice(x, 2, &Expr::ZERO, &before, 1);
    let rest = cx.slice(x, 2, &before, &Expr::int(i64::MAX), 1);
    cx.set_type(state, types[1].clone());
    cx.set_type(rest, types[0].clone());
    let inputs = [Some(rest), Some(weight), bias, Some(state)];
    let types = types.map(Some);
    let (domain, op) = ("com.microsoft", "CausalConvWithState");
    let made = cx.emit_custom(domain, op, &inputs, Default::default(), &types);
    drop(cx);
    rewrite::substitute(model, result, made[0]);
    model.erase(id);
    Some(())
}
