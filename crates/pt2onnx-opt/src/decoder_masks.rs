//! Masks of decoders: conjunctions of comparisons between the positions of keys and queries, and of
//! an input that says which tokens there are.

use crate::{
    analysis::{counted, number_of, size_of},
    masks::hides,
};
use pt2onnx_ir::{Model, Node, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// A mask that lets each query see the keys up to its own position, or the last ones of them, as
/// far as tokens are there.
pub(crate) struct DecoderMask {
    /// The bools that the mask consists of: whether a query sees a key.
    pub bools: Value,
    /// The input `(batch, keys)` of the model that is not 0 for tokens that are there.
    pub tokens: Value,
    /// How many keys a query sees at most.
    pub window: Option<i64>,
}

/// At most this many nodes are looked at.
const FAR: usize = 64;

/// Reads a mask: bools, or numbers that are added to scores. The queries follow `past` keys.
pub(crate) fn decoder_mask(model: &Model, mask: Value, past: &Expr) -> Option<DecoderMask> {
    let bools = chosen_by(model, mask)?;
    let (mut causal, mut tokens, mut window) = (false, None, None);
    let (mut open, mut left) = (vec![bools], FAR);
    while let Some(part) = open.pop() {
        left = left.checked_sub(1)?;
        let node = &model[model.producer(part)?];
        match comparison(model, node, past) {
            Some(Part::Causal) => causal = true,
            Some(Part::Window(keys)) => window = Some(window.map_or(keys, |w: i64| w.min(keys))),
            None if node.is("And") => open.extend(node.inputs().iter().flatten()),
            None => {
                let of = tokens_of(model, part)?;
                tokens.is_none_or(|known| known == of).then_some(())?;
                tokens = Some(of);
            }
        }
    }
    let tokens = tokens.filter(|_| causal)?;
    Some(DecoderMask { bools, tokens, window })
}

/// The bools themselves, or those by which zeros and numbers that hide keys are chosen.
fn chosen_by(model: &Model, mask: Value) -> Option<Value> {
    if model.dtype(mask)? == DType::Bool {
        return Some(mask);
    }
    let choice = &model[model.producer(mask)?];
    let (_, seen) = number_of(model, choice.input(1)?)?;
    let (dtype, hidden) = number_of(model, choice.input(2)?)?;
    (choice.is("Where") && seen == 0.0 && hides(2.0 * hidden, dtype)).then(|| choice.input(0))?
}

enum Part {
    /// A query sees keys up to its own position.
    Causal,
    /// It sees this many of the last keys.
    Window(i64),
}

/// The keys that a comparison of positions hides.
fn comparison(model: &Model, node: &Node, past: &Expr) -> Option<Part> {
    let (a, b) = (node.input(0)?, node.input(1)?);
    let (low, high, strict) = match node.op() {
        "LessOrEqual" => (a, b, 0),
        "Less" => (a, b, 1),
        "GreaterOrEqual" => (b, a, 0),
        "Greater" => (b, a, 1),
        _ => return None,
    };
    let (low, high) = (position(model, low, FAR)?, position(model, high, FAR)?);
    // The difference of the two positions for a query and the key at its own.
    match (low.axis, high.axis) {
        (KEYS, QUERIES) => {
            let ahead = high.from - low.from - past.clone() - Expr::int(strict);
            (ahead.as_int()? == 0).then_some(Part::Causal)
        }
        (QUERIES, KEYS) => {
            let behind = high.from + past.clone() - low.from - Expr::int(strict);
            behind.as_int().filter(|&b| b >= 0).map(|b| Part::Window(b + 1))
        }
        _ => None,
    }
}

/// Axes from the end.
const KEYS: usize = 0;
const QUERIES: usize = 1;

/// Numbers that count from one on along one axis.
struct Position {
    /// The axis, from the end.
    axis: usize,
    from: Expr,
}

/// How the elements of a value count along one of its axes; the others have one element.
fn position(model: &Model, value: Value, far: usize) -> Option<Position> {
    if counted(model, value).is_some() {
        return Some(Position { axis: 0, from: Expr::ZERO });
    }
    let node = &model[model.producer(value)?];
    let far = far.checked_sub(1)?;
    let x = node.input(0).filter(|_| node.domain.is_empty())?;
    let moved = |by: fn(Expr, Expr) -> Expr, x: Value, size: Value| {
        let Position { axis, from } = position(model, x, far)?;
        Some(Position { axis, from: by(from, size_of(model, size)?) })
    };
    match node.op() {
        "Add" => {
            let y = node.input(1)?;
            moved(|a, b| a + b, x, y).or_else(|| moved(|a, b| a + b, y, x))
        }
        "Sub" => moved(|a, b| a - b, x, node.input(1)?),
        "Reshape" | "Unsqueeze" | "Squeeze" => {
            let Position { from, .. } = position(model, x, far)?;
            let shape = model.shape(value)?;
            let mut long = (0..shape.len()).filter(|&i| shape[i].as_int() != Some(1));
            let (at, None) = (long.next()?, long.next()) else { return None };
            Some(Position { axis: shape.len() - 1 - at, from })
        }
        _ => None,
    }
}

/// The input of the model of whose elements these are the truth values, one for each key.
fn tokens_of(model: &Model, bools: Value) -> Option<Value> {
    let shape = model.shape(bools)?;
    let (keys, rest) = shape.split_last()?;
    // All queries and heads have the same: only the first of four dimensions is that of rows.
    let one = |d: &Expr| d.as_int() == Some(1);
    let rows = usize::from(shape.len() == 4);
    (rest.iter().skip(rows).all(one) && keys.as_int() != Some(1)).then_some(())?;
    let (mut value, mut left) = (bools, FAR);
    while let Some(id) = model.producer(value) {
        left = left.checked_sub(1)?;
        let node = &model[id];
        let same = match node.op() {
            "Cast" => matches!(model.dtype(value)?, DType::Bool),
            "Unsqueeze" | "Reshape" => {
                model.shape(value)?.last() == model.shape(node.input(0)?)?.last()
            }
            // The first ones of them.
            "Gather" => {
                let last = node.int("axis").unwrap_or(0) == 1 && model.rank(node.input(0)?)? == 2;
                last && counted(model, node.input(1)?).is_some()
            }
            _ => false,
        };
        value = node.input(0).filter(|_| same && node.domain.is_empty())?;
    }
    let numbers = matches!(model.dtype(value)?, DType::I64 | DType::I32 | DType::Bool);
    (numbers && model.rank(value)? == 2 && model.inputs().contains(&value)).then_some(value)
}
