//! Sums and comparisons of large integers, which ONNX Runtime computes wrongly.
//!
//! It sums integers in float64, and takes int64 with equal upper halves for smaller or larger by
//! their lower halves as int32. Both matter only if the numbers may be large.

use crate::{
    eval,
    legalise::{Emitted, Outcome, Reason, Rewritten, input, replace},
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Traits, Value, attrs};
use pt2onnx_tensor::DType;
use rustc_hash::FxHashSet;

/// Elements of a sum are fewer than 2 to this power: then sums of 32 bits are exact in float64.
const COUNT_BITS: u32 = 21;
/// For an unknown number.
const ALL_BITS: u32 = 64;
/// Numbers that 32 bits have.
const HALF: i64 = 1 << 32;
/// The first opset with `TopK` of integers.
const TOP_K: u32 = 11;
/// The input of `GroupQueryAttention` with the positions of last tokens.
const LENGTHS: usize = 5;
/// How many nodes are looked at for one number.
const NODES: u32 = 64;

/// Rewrites a node whose integers ONNX Runtime may compute otherwise. [`Rewritten::InPlace`] if it
/// computes them as ONNX specifies. `sums` holds the sums and extremes made here, which are exact
/// whatever becomes of their inputs.
pub(crate) fn exact(
    model: &mut Model,
    id: NodeId,
    opset: u32,
    sums: &mut FxHashSet<Value>,
) -> Outcome {
    let node = &model[id];
    if node.outputs().first().is_some_and(|sum| sums.contains(sum)) {
        return Ok(Rewritten::InPlace);
    }
    let exact_bits = match node.op() {
        "ReduceSum" => 53 - COUNT_BITS,
        "Min" | "Max" | "Clip" | "Sign" | "ReduceMin" | "ReduceMax" => 31,
        _ => return Ok(Rewritten::InPlace),
    };
    let Some(kind) = node.input(0).and_then(|x| model.dtype(x)) else {
        return Ok(Rewritten::InPlace);
    };
    let bits = node.inputs().iter().flatten().map(|&x| bits(model, x)).max().unwrap_or(0);
    match (node.op(), kind) {
        ("ReduceSum", DType::I32) if bits + COUNT_BITS > 31 => replace(model, id, |cx, node| {
            let sum = reduced(cx, node, cx.cast(input(node, 0)?, DType::I64));
            sums.insert(sum);
            Ok(vec![cx.cast(sum, DType::I32)])
        }),
        ("ReduceSum", DType::I64) if bits > exact_bits && !counts_tokens(model, id) => {
            replace(model, id, |cx, node| by_halves(cx, node, sums))
        }
        ("ReduceMin" | "ReduceMax", DType::I64) if bits > exact_bits => {
            replace(model, id, |cx, node| {
                let picked = (opset >= TOP_K).then(|| picked(cx, node)).flatten();
                picked.map_or_else(|| extreme(cx, node, sums), |extreme| Ok(vec![extreme]))
            })
        }
        ("Min" | "Max", DType::I64) if bits > exact_bits => replace(model, id, |cx, node| {
            let larger = node.is("Max");
            let all: Vec<Value> = node.inputs().iter().flatten().copied().collect();
            let chosen = all.into_iter().reduce(|a, b| bounded(cx, a, b, larger));
            Ok(vec![chosen.ok_or_else(|| Reason("it has no inputs".into()))?])
        }),
        ("Clip", DType::I64) if bits > exact_bits => replace(model, id, |cx, node| {
            let mut x = input(node, 0)?;
            for (index, larger) in [(1, true), (2, false)] {
                if let Some(bound) = node.input(index) {
                    x = bounded(cx, x, bound, larger);
                }
            }
            Ok(vec![x])
        }),
        ("Sign", DType::I64) if bits > exact_bits => replace(model, id, |cx, node| {
            let x = input(node, 0)?;
            let [above, below] =
                [cx.greater(x, 0), cx.less(x, 0)].map(|side| cx.cast(side, DType::I64));
            Ok(vec![cx.sub(above, below)])
        }),
        _ => Ok(Rewritten::InPlace),
    }
}

/// The larger or the smaller number.
fn bounded(cx: &Builder, a: Value, b: Value, larger: bool) -> Value {
    let first = if larger { cx.less(a, b) } else { cx.greater(a, b) };
    cx.select(first, b, a)
}

/// `x` reduced in place of the node's input.
fn reduced(cx: &Builder, node: &Node, x: Value) -> Value {
    let op = match node.op() {
        "ReduceMax" => "ReduceMax",
        "ReduceMin" => "ReduceMin",
        _ => "ReduceSum",
    };
    cx.emit1(op, &[Some(x), node.input(1)], node.attributes.clone())
}

/// The upper and the lower 32 bits, which are not negative.
fn halves(cx: &Builder, x: Value) -> [Value; 2] {
    let lower = cx.mod_(x, cx.scalar(HALF, DType::I64), attrs::Mod::default());
    [cx.div(cx.sub(x, lower), HALF), lower]
}

/// The sums of the upper and of the lower 32 bits.
fn by_halves(cx: &Builder, node: &Node, sums: &mut FxHashSet<Value>) -> Emitted {
    let [upper, lower] = halves(cx, input(node, 0)?).map(|part| reduced(cx, node, part));
    sums.extend([upper, lower]);
    Ok(vec![cx.add(cx.mul(upper, HALF), lower)])
}

/// The largest or the smallest number along one or two axes, by `TopK`, which compares all bits. It
/// must find one, so that sizes must be known.
fn picked(cx: &Builder, node: &Node) -> Option<Value> {
    let x = node.input(0)?;
    let shape = cx.known_shape(x)?;
    let axes = cx.constant_of(node.input(1)?)?.to_vec::<i64>()?;
    let axes: Vec<usize> =
        axes.into_iter().map(|a| eval::axis(a, shape.len())).collect::<Option<_>>()?;
    let finds = axes.iter().all(|&axis| shape[axis].as_int().is_some_and(|size| size > 0));
    let one = cx.vector(&[1_i64]);
    let pick = |x, &axis: &usize| {
        let axis = i64::try_from(axis).unwrap_or_default();
        cx.top_k(x, one, attrs::TopK { axis, largest: node.is("ReduceMax"), sorted: true })[0]
    };
    let most = (finds && matches!(axes.len(), 1 | 2)).then(|| axes.iter().fold(x, pick))?;
    let keeps = node.int("keepdims").unwrap_or(1) != 0;
    Some(if keeps { most } else { cx.squeeze(most, &axes) })
}

/// The largest or the smallest number: of those with the largest or the smallest upper half, that
/// with such a lower half. Both are compared as int32.
fn extreme(cx: &Builder, node: &Node, done: &mut FxHashSet<Value>) -> Emitted {
    let [upper, lower] = halves(cx, input(node, 0)?);
    let lower = cx.add(lower, i64::from(i32::MIN));
    let mut keeping = node.clone();
    keeping.set_attribute("keepdims", 1i64);
    let most = reduced(cx, &keeping, upper);
    let others = if node.is("ReduceMax") { i32::MIN } else { i32::MAX };
    let lower = cx.select(cx.equal(upper, most), lower, cx.scalar(i64::from(others), DType::I64));
    let keeps = node.int("keepdims").unwrap_or(1) != 0;
    let upper = if keeps { most } else { reduced(cx, node, upper) };
    let lower = reduced(cx, node, lower);
    done.extend([most, upper, lower]);
    Ok(vec![cx.add(cx.mul(upper, HALF), cx.sub(lower, i64::from(i32::MIN)))])
}

/// Whether a sum is the number of tokens that `GroupQueryAttention` looks at, or one more: it sums
/// a mask of zeros and ones.
fn counts_tokens(model: &Model, sum: NodeId) -> bool {
    let users = |id: NodeId| {
        let results = model[id].outputs().iter();
        results.flat_map(|&v| model[v].uses()).filter_map(|used| used.input())
    };
    let differences = users(sum).filter(|&(id, _)| model[id].is("Sub"));
    let casts = differences.flat_map(|(id, _)| users(id)).filter(|&(id, _)| model[id].is("Cast"));
    casts.flat_map(|(id, _)| users(id)).any(|(id, at)| {
        let node = &model[id];
        at == LENGTHS && node.domain == "com.microsoft" && node.op() == "GroupQueryAttention"
    })
}

/// A number of bits `n` so that all elements are above `-2^n` and below `2^n`.
fn bits(model: &Model, value: Value) -> u32 {
    let mut left = NODES;
    bits_of(model, value, &mut left)
}

fn length(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

fn bits_of(model: &Model, value: Value, left: &mut u32) -> u32 {
    match model.dtype(value) {
        Some(DType::Bool) => return 1,
        Some(DType::I8 | DType::U8) => return 8,
        Some(DType::I16 | DType::U16) => return 16,
        Some(DType::I32) => return 31,
        Some(DType::U32) => return 32,
        Some(DType::I64) => {}
        _ => return ALL_BITS,
    }
    if let Some(tensor) = model[value].constant() {
        let largest = || tensor.to_vec::<i64>()?.iter().map(|i| i.unsigned_abs()).max();
        let small = tensor.has_data() && tensor.numel() <= 4096;
        return match small.then(largest) {
            Some(Some(largest)) => length(largest),
            _ => ALL_BITS,
        };
    }
    let Some(id) = model.producer(value).filter(|_| *left > 0) else {
        return ALL_BITS;
    };
    *left -= 1;
    let node = &model[id];
    let number = |v: Value| Some(model[v].constant()?.to_vec::<i64>()?.first()?.unsigned_abs());
    let single = |v: &Value| model[*v].constant().is_some_and(|t| t.numel() == 1);
    let divisor = node.input(1).filter(single).and_then(number).filter(|&d| d > 0);
    let mut of = |i: usize| node.input(i).map_or(0, |x| bits_of(model, x, left));
    let found = match node.op() {
        _ if !node.domain.is_empty() => ALL_BITS,
        _ if node.traits().contains(Traits::COUNTING) => 31,
        "TopK" if node.outputs().get(1) == Some(&value) => 31,
        "Unique" if node.outputs().first() != Some(&value) => 31,
        _ if node.traits().contains(Traits::DATA_MOVEMENT) => of(0),
        "Cast" | "ReduceMax" | "ReduceMin" | "Abs" | "Neg" | "TopK" | "Unique" | "Trilu" => of(0),
        "Div" => of(0).saturating_sub(divisor.map_or(0, u64::ilog2)),
        "Mod" => divisor.map_or_else(|| of(1), |d| length(d - 1)),
        "Range" => of(0).max(of(1)),
        "Add" | "Sub" => of(0).max(of(1)) + 1,
        "Mul" => of(0) + of(1),
        "Where" => of(1).max(of(2)),
        "Clip" if node.inputs().len() == 3 => of(1).max(of(2)),
        "ReduceSum" if counts_tokens(model, id) => 31,
        "CumSum" | "ReduceSum" => of(0) + COUNT_BITS,
        "Concat" | "Min" | "Max" => (0..node.inputs().len()).fold(0, |most, i| most.max(of(i))),
        _ => ALL_BITS,
    };
    found.min(ALL_BITS)
}
