//! Replaces attention with a cache by ONNX Runtime's own operator, for which past and present keys
//! and values are one buffer.

use super::{Because, Measure, NoFusion, Pass, Phase, Run, rotary_tables::Tables};
use crate::{
    Changed, GraphMut, Options, Target,
    analysis::known,
    decoder_masks::{DecoderMask, decoder_mask},
    rewrite,
};
use pt2onnx_ir::{Builder, InsertPoint, Model, Node, NodeId, Reduction, Type, Value, attrs};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::DType;
use std::collections::BTreeMap;

pub(crate) static GROUP_QUERY_ATTENTION: Pass = Pass {
    name: "group-query-attention",
    description: "Replaces Attention with a cache by com.microsoft.GroupQueryAttention, for the \
                  target `ort-genai` only.",
    precondition: "The mask hides the keys after each query, those before a window, and those for \
                   which an input of the model is 0: onnxruntime-genai's `attention_mask`, which \
                   is 1 for the tokens of a row and 0 behind them. The input `position_ids` counts \
                   the tokens of a row: with `max_positions`, the operator rotates queries and \
                   keys by it.",
    lowers: Measure::Operators(&["Attention"]),
    targets: &[Target::OrtGenai],
    phase: Phase::Late,
    run: Run::Explained(run, refusals),
    ..Pass::FUSION
};

fn run(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    let mut tables = Tables::new(options.max_positions);
    graph.change_each(|model, id| {
        let found = Cached::read(model, id).ok()?;
        found.replace(model, &mut tables);
        Some(())
    })
}

/// Why nodes of attention stay, with how many.
fn refusals(graph: &GraphMut<'_>) -> BTreeMap<&'static str, usize> {
    let mut places = BTreeMap::new();
    for id in graph.nodes() {
        if let Err(NoFusion::Because(reason)) = Cached::read(graph.model, id) {
            *places.entry(reason).or_default() += 1;
        }
    }
    places
}

/// An `Attention` that the operator computes.
struct Cached {
    id: NodeId,
    mask: DecoderMask,
    /// The product by which rows without keys become zeros.
    kept: Option<NodeId>,
    heads: i64,
    shared_heads: i64,
    width: i64,
    scale: f32,
    softcap: f32,
}

impl Cached {
    fn read(model: &Model, id: NodeId) -> Result<Self, NoFusion> {
        let node = &model[id];
        let cached = node.is("Attention") && node.domain.is_empty() && node.outputs().len() == 3;
        cached.then_some(()).ok_or(NoFusion::NoMatch)?;
        let sizes = |i: usize| {
            let (dtype, shape) = model.tensor_type(node.input(i)?)?;
            let float = matches!(dtype, DType::F32 | DType::F16);
            (float && shape.len() == 4 && shape.iter().all(known)).then_some(shape)
        };
        let all = sizes(0).zip(sizes(1)).zip(sizes(2)).zip(sizes(4)).zip(sizes(5));
        let ((((q, k), v), past), _) =
            all.because("operands are not floats of four known sizes")?;
        let ints = q[1].as_int().zip(k[1].as_int()).zip(q[3].as_int());
        let ((heads, shared_heads), width) = ints.because("heads or their size are not known")?;
        let alike = k == v && k[3] == q[3] && k[2] == q[2] && heads % shared_heads == 0;
        alike.because("keys and values have different sizes")?;
        (width % 8 == 0).because("the size of a head is not a multiple of 8")?;
        let options = attrs::Attention::read(node).ok().filter(|a| !a.is_causal);
        let options = options.because("the attention is causal by an attribute")?;
        let given = node.input(3).and_then(|mask| decoder_mask(model, mask, &past[2]));
        let mask = given.because("the mask is not one of a decoder")?;
        let scale = options.scale.unwrap_or(1.0 / (width as f32).sqrt());
        let kept = kept(model, node, &mask);
        Ok(Self { id, mask, kept, heads, shared_heads, width, scale, softcap: options.softcap })
    }

    fn replace(self, model: &mut Model, tables: &mut Tables) {
        let node = model[self.id].clone();
        let &[output, key, value] = node.outputs() else { return };
        if let Some(kept) = self.kept {
            rewrite::bypass(model, kept, output);
        }
        let [keys, values] = [key, value].map(|v| model[v].ty.clone());
        let joined = model.tensor_type(output).and_then(|(dtype, shape)| {
            let width = Expr::int(self.heads.checked_mul(self.width)?);
            Some(Type::tensor(dtype, [shape[0].clone(), shape[2].clone(), width]))
        });
        let rotation = self.rotation(model, &node, tables);
        let (mut given, mut angles) = ([0, 1, 2].map(|i| node.input(i)), [None; 2]);
        if let Some(rotation) = &rotation {
            given[..2].copy_from_slice(&rotation.operands.map(Some));
            angles = rotation.tables.map(Some);
        }
        let cx = Builder::new(model, InsertPoint::Before(self.id), Constraints::default());
        cx.set_origins(&node.origins);
        let heads = [self.heads, self.shared_heads, self.shared_heads];
        let operands = [0, 1, 2].map(|i| given[i].map(|x| self.flat(&cx, x, heads[i])));
        let (last, total) = lengths(&cx, self.mask.tokens);
        let caches = [node.input(4), node.input(5), Some(last), Some(total)];
        let inputs: Vec<_> = operands.into_iter().chain(caches).chain(angles).collect();
        let softcap = (self.softcap > 0.0).then(|| ("softcap".into(), self.softcap.into()));
        let window = self.mask.window.map(|w| ("local_window_size".into(), w.into()));
        let rotary = rotation.map(|_| ("do_rotary".into(), 1.into()));
        let attributes = [
            ("num_heads".into(), self.heads.into()),
            ("kv_num_heads".into(), self.shared_heads.into()),
            ("scale".into(), self.scale.into()),
        ];
        let attributes = attributes.into_iter().chain(softcap).chain(window).chain(rotary);
        let (domain, op) = ("com.microsoft", "GroupQueryAttention");
        let results = [joined, keys, values];
        let made = cx.emit_custom(domain, op, Node::given(&inputs), attributes.collect(), &results);
        let apart = cx.ints(&[0, 0, self.heads, self.width]);
        let apart = cx.reshape_op(made[0], apart, attrs::Reshape::default());
        let heads = cx.transpose(apart, &[0, 2, 1, 3]);
        drop(cx);
        for (old, new) in [(output, heads), (key, made[1]), (value, made[2])] {
            rewrite::substitute(model, old, new);
        }
        model.erase(self.id);
    }

    /// The rotation that the operator does itself: its kernel takes tables whose width is a
    /// multiple of 8.
    fn rotation(&self, model: &mut Model, node: &Node, tables: &mut Tables) -> Option<Rotation> {
        let (queries, keys) = (rotated(model, node.input(0)?)?, rotated(model, node.input(1)?)?);
        let width = if queries.width == 0 { self.width } else { queries.width };
        let same = queries.angles == keys.angles && queries.width == keys.width;
        let [cos, sin] = (same && width % 16 == 0).then_some(queries.angles)?;
        let tables = [tables.of(model, cos)?, tables.of(model, sin)?];
        Some(Rotation { operands: [queries.operand, keys.operand], tables })
    }

    /// `(batch, length, heads * width)` of `(batch, heads, length, width)`; a rotary embedding is
    /// computed in that form.
    fn flat(&self, cx: &Builder, x: Value, heads: i64) -> Value {
        let maker = cx.model().producer(x).map(|id| cx.model()[id].clone());
        let rotary = maker.filter(|n| n.is("RotaryEmbedding") && n.inputs().len() == 3);
        if let Some(node) = rotary
            && let [Some(inner), Some(cos), Some(sin)] = *node.inputs()
            && let Ok(options) = attrs::RotaryEmbedding::read(&node)
        {
            let inner = self.flat(cx, inner, heads);
            let options = attrs::RotaryEmbedding { num_heads: Some(heads), ..options };
            return cx.rotary_embedding(inner, cos, sin, None, options);
        }
        let together = cx.ints(&[0, 0, heads * self.width]);
        cx.reshape_op(cx.transpose(x, &[0, 2, 1, 3]), together, attrs::Reshape::default())
    }
}

/// Queries and keys before they are rotated, and the cosines and sines of all positions.
struct Rotation {
    operands: [Value; 2],
    tables: [Value; 2],
}

/// A rotary embedding of both halves of all heads, or of their first part.
struct Rotated {
    operand: Value,
    angles: [Value; 2],
    /// The size of the part; 0 for all.
    width: i64,
}

fn rotated(model: &Model, x: Value) -> Option<Rotated> {
    let node = Some(&model[model.producer(x)?]).filter(|n| n.is("RotaryEmbedding"))?;
    let &[Some(operand), Some(cos), Some(sin)] = node.inputs() else { return None };
    let options = attrs::RotaryEmbedding::read(node).ok()?;
    let width = options.rotary_embedding_dim;
    (!options.interleaved).then_some(Rotated { operand, angles: [cos, sin], width })
}

/// The product of the result with 0 where the mask leaves a row no key, if nothing else uses it. A
/// token sees itself, and nobody looks at the results of others.
fn kept(model: &Model, node: &Node, mask: &DecoderMask) -> Option<NodeId> {
    let output = node.outputs()[0];
    let (product, at) = model[output].only_use()?;
    let factor = model[product].input(1 - at.min(1)).filter(|_| model[product].is("Mul"))?;
    let largest = &model[model.producer(factor)?];
    let bools = &model[model.producer(largest.input(0)?)?];
    let keys = model[largest.input(1)?].constant()?.to_vec::<i64>()?;
    let over = largest.is("ReduceMax") && matches!(keys[..], [-1 | 3]);
    (over && bools.is("Cast") && bools.input(0) == Some(mask.bools)).then_some(product)
}

/// The position of the last token of each row, and the number of keys.
fn lengths(cx: &Builder, tokens: Value) -> (Value, Value) {
    let count = cx.reduce(Reduction::Sum, cx.cast(tokens, DType::I64), &[1], false);
    let last = cx.sub(count, 1);
    let range = attrs::Shape { start: 1, end: Some(2) };
    let total = cx.cast(cx.shape_op(tokens, range), DType::I32);
    (cx.cast(last, DType::I32), total)
}
