//! Replaces attention with a cache by ONNX Runtime's own operator, for which past and present keys
//! and values are one buffer.

use super::{
    Because, Measure, NoFusion, Pass, Phase, Run,
    rotary_tables::Tables,
    sink_attention::{self, SinkAttention},
};
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
    description: "Replaces Attention with a cache, and its formula with sinks, by \
                  com.microsoft.GroupQueryAttention, for the target `ort-genai` only.",
    precondition: "The mask hides the keys after each query, those before a window, and those for \
                   which an input of the model is 0: onnxruntime-genai's `attention_mask`, which \
                   is 1 for the tokens of a row and 0 behind them. The input `position_ids` counts \
                   the tokens of a row: with `max_positions`, the operator rotates queries and \
                   keys by it.",
    lowers: Measure::Operators(&["Attention", "Softmax"]),
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

/// An attention that the operator computes.
struct Cached {
    /// Its last node.
    id: NodeId,
    given: Given,
    mask: DecoderMask,
    /// The product by which rows without keys become zeros.
    kept: Option<NodeId>,
    heads: i64,
    shared_heads: i64,
    width: i64,
    scale: f32,
}

/// The values of an attention with a cache.
struct Given {
    /// Queries, new keys and new values, `(batch, heads, length, width)`.
    operands: [Value; 3],
    /// Past keys and values.
    past: [Value; 2],
    /// The result, and all keys and values.
    results: [Value; 3],
    mask: Option<Value>,
    /// If not the default.
    scale: Option<f32>,
    softcap: f32,
    is_causal: bool,
    sinks: Option<Value>,
}

impl Given {
    fn read(model: &Model, id: NodeId) -> Option<Self> {
        let node = &model[id];
        if let Some(found) = sink_attention::formula(model, id) {
            let SinkAttention { queries, keys, values, mask, scale, sinks } = found;
            return Some(Self {
                operands: [queries, keys[1], values[1]],
                past: [keys[0], values[0]],
                results: [node.outputs().first().copied()?, keys[2], values[2]],
                mask: Some(mask),
                scale: Some(scale),
                softcap: 0.0,
                is_causal: false,
                sinks: Some(sinks),
            });
        }
        let &[output, keys, values] = node.outputs() else { return None };
        let options = node.is("Attention").then(|| attrs::Attention::read(node).ok())??;
        Some(Self {
            operands: [node.input(0)?, node.input(1)?, node.input(2)?],
            past: [node.input(4)?, node.input(5)?],
            results: [output, keys, values],
            mask: node.input(3),
            scale: options.scale,
            softcap: options.softcap,
            is_causal: options.is_causal,
            sinks: None,
        })
    }
}

impl Cached {
    fn read(model: &Model, id: NodeId) -> Result<Self, NoFusion> {
        let given = Given::read(model, id).ok_or(NoFusion::NoMatch)?;
        let sizes = |value: Value| {
            let (dtype, shape) = model.tensor_type(value)?;
            let float = matches!(dtype, DType::F32 | DType::F16);
            (float && shape.len() == 4 && shape.iter().all(known)).then_some(shape)
        };
        let ([q, k, v], past) = (given.operands.map(sizes), given.past.map(sizes));
        let all = q.zip(k).zip(v).zip(past[0]).zip(past[1]);
        let ((((q, k), v), past), _) =
            all.because("operands are not floats of four known sizes")?;
        let ints = q[1].as_int().zip(k[1].as_int()).zip(q[3].as_int());
        let ((heads, shared_heads), width) = ints.because("heads or their size are not known")?;
        let alike = k == v && k[3] == q[3] && k[2] == q[2] && heads % shared_heads == 0;
        alike.because("keys and values have different sizes")?;
        (width % 8 == 0).because("the size of a head is not a multiple of 8")?;
        (!given.is_causal).because("the attention is causal by an attribute")?;
        let mask = given.mask.and_then(|mask| decoder_mask(model, mask, &past[2]));
        let mask = mask.because("the mask is not one of a decoder")?;
        let scale = given.scale.unwrap_or(1.0 / (width as f32).sqrt());
        let kept = kept(model, given.results[0], &mask);
        Ok(Self { id, given, mask, kept, heads, shared_heads, width, scale })
    }

    fn replace(self, model: &mut Model, tables: &mut Tables) {
        let [output, keys, values] = self.given.results;
        if let Some(kept) = self.kept {
            rewrite::bypass(model, kept, output);
        }
        let cache = [keys, values].map(|v| model[v].ty.clone());
        let joined = model.tensor_type(output).and_then(|(dtype, shape)| {
            let width = Expr::int(self.heads.checked_mul(self.width)?);
            Some(Type::tensor(dtype, [shape[0].clone(), shape[2].clone(), width]))
        });
        let rotation = self.rotation(model, tables);
        let (mut operands, mut angles) = (self.given.operands, [None; 2]);
        if let Some(rotation) = &rotation {
            operands[..2].copy_from_slice(&rotation.operands);
            angles = rotation.tables.map(Some);
        }
        let origins = model[self.id].origins.clone();
        let cx = Builder::new(model, InsertPoint::Before(self.id), Constraints::default());
        cx.set_origins(&origins);
        let heads = [self.heads, self.shared_heads, self.shared_heads];
        let operands = [0, 1, 2].map(|i| Some(self.flat(&cx, operands[i], heads[i])));
        let (last, total) = lengths(&cx, self.mask.tokens);
        let [past_keys, past_values] = self.given.past.map(Some);
        let caches = [past_keys, past_values, Some(last), Some(total)];
        let sinks = self
            .given
            .sinks
            .map(|sinks| cx.reshape_op(sinks, cx.ints(&[self.heads]), attrs::Reshape::default()));
        let inputs = operands.into_iter().chain(caches).chain(angles).chain([None, None, sinks]);
        let inputs: Vec<_> = inputs.collect();
        let softcap =
            (self.given.softcap > 0.0).then(|| ("softcap".into(), self.given.softcap.into()));
        let window = self.mask.window.map(|w| ("local_window_size".into(), w.into()));
        let rotary = rotation.map(|_| ("do_rotary".into(), 1.into()));
        let attributes = [
            ("num_heads".into(), self.heads.into()),
            ("kv_num_heads".into(), self.shared_heads.into()),
            ("scale".into(), self.scale.into()),
        ];
        let attributes = attributes.into_iter().chain(softcap).chain(window).chain(rotary);
        let (domain, op) = ("com.microsoft", "GroupQueryAttention");
        let [all_keys, all_values] = cache;
        let results = [joined, all_keys, all_values];
        let made = cx.emit_custom(domain, op, Node::given(&inputs), attributes.collect(), &results);
        let apart = cx.ints(&[0, 0, self.heads, self.width]);
        let apart = cx.reshape_op(made[0], apart, attrs::Reshape::default());
        let heads = cx.transpose(apart, &[0, 2, 1, 3]);
        drop(cx);
        for (old, new) in [(output, heads), (keys, made[1]), (values, made[2])] {
            rewrite::substitute(model, old, new);
            erase_unused(model, old);
        }
    }

    /// The rotation that the operator does itself: its kernel takes tables whose width is a
    /// multiple of 8.
    fn rotation(&self, model: &mut Model, tables: &mut Tables) -> Option<Rotation> {
        let [queries, keys, _] = self.given.operands;
        let (queries, keys) = (rotated(model, queries)?, rotated(model, keys)?);
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
fn kept(model: &Model, output: Value, mask: &DecoderMask) -> Option<NodeId> {
    let (product, at) = model[output].only_use()?;
    let factor = model[product].input(1 - at.min(1)).filter(|_| model[product].is("Mul"))?;
    let largest = &model[model.producer(factor)?];
    let bools = &model[model.producer(largest.input(0)?)?];
    let keys = model[largest.input(1)?].constant()?.to_vec::<i64>()?;
    let over = largest.is("ReduceMax") && matches!(keys[..], [-1 | 3]);
    (over && bools.is("Cast") && bools.input(0) == Some(mask.bools)).then_some(product)
}

/// Erases the node that computes a value, if nothing uses its outputs, and then those that compute
/// its inputs: nodes between old and new keys would use keys that come later.
fn erase_unused(model: &mut Model, value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        let made = model.producer(value).filter(|&id| model.contains(id));
        if let Some(id) = made.filter(|&id| model.is_unused(id)) {
            open.extend(model[id].inputs().iter().flatten());
            model.erase(id);
        }
    }
}

/// The position of the last token of each row, and the number of keys.
fn lengths(cx: &Builder, tokens: Value) -> (Value, Value) {
    let count = cx.reduce(Reduction::Sum, cx.cast(tokens, DType::I64), &[1], false);
    let last = cx.sub(count, 1);
    let range = attrs::Shape { start: 1, end: Some(2) };
    let total = cx.cast(cx.shape_op(tokens, range), DType::I32);
    (cx.cast(last, DType::I32), total)
}
