//! Which values are known to be small: products of them with numbers of usual sizes are finite.

use crate::analysis;
use pt2onnx_ir::{Model, Node, Traits, Value};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

/// Values are followed through this many nodes.
const FAR: usize = 8;

/// The most answers of one question: paths through wide nodes are many.
const MAX_ANSWERS: usize = 1000;

/// Constants up to this size make no product infinite.
const USUAL: f64 = 1e9;

/// Whether float32 cannot overflow near any element, or it is NaN, whatever the inputs are.
pub(crate) fn is_small(model: &Model, value: Value) -> bool {
    Question { model, answers: FxHashMap::default() }.small(value, FAR)
}

/// The answers so far, by value and the number of nodes that may still be followed.
struct Question<'m> {
    model: &'m Model,
    answers: FxHashMap<(Value, usize), bool>,
}

impl Question<'_> {
    fn small(&mut self, value: Value, far: usize) -> bool {
        if let Some(&small) = self.answers.get(&(value, far)) {
            return small;
        }
        let small = self.answers.len() < MAX_ANSWERS && self.follow(value, far);
        self.answers.insert((value, far), small);
        small
    }

    fn follow(&mut self, value: Value, far: usize) -> bool {
        let model = self.model;
        let Some(node) = made_by(model, value) else {
            return usual(model, Some(value));
        };
        let mut of = |i: usize| node.input(i).is_some_and(|v| far > 0 && self.small(v, far - 1));
        match node.op() {
            _ if node.traits().contains(Traits::BOUNDED) => true,
            _ if node.traits().intersects(Traits::DATA_MOVEMENT | Traits::SHRINKING) => of(0),
            "Cast" => {
                let from = node.input(0).and_then(|v| model.dtype(v));
                from.is_some_and(|t| t.is_int() || t == DType::Bool)
            }
            "Clip" => usual(model, node.input(1)) && usual(model, node.input(2)),
            "Concat" | "Max" | "Min" => (0..node.inputs().len()).all(of),
            "LayerNormalization" if node.outputs()[0] != value => false,
            "LayerNormalization" => {
                usual(model, node.input(1)) && usual_or_none(model, node.input(2))
            }
            "InstanceNormalization" => usual(model, node.input(1)) && usual(model, node.input(2)),
            "Div" => {
                let [x, by] = [0, 1].map(|i| node.input(i));
                x.is_some() && by.is_some_and(|by| norm(model, by, far) == x)
            }
            _ => false,
        }
    }
}

/// The vectors that a value is at least the norms of, up to a factor that depends on their length.
fn norm(model: &Model, value: Value, far: usize) -> Option<Value> {
    let node = made_by(model, value).filter(|_| far > 0)?;
    let inner = || norm(model, node.input(0)?, far - 1);
    let apart = node.int("keepdims") == Some(0);
    match node.op() {
        _ if apart => None,
        "ReduceL2" => node.input(0),
        "Sqrt" => squares(model, node.input(0)?, far - 1),
        "Expand" => inner(),
        "Add" if positive(model, node.input(1)?) => inner(),
        // At least the norm, whatever the other bound is.
        "Max" if node.inputs().len() == 2 => inner(),
        "Clip" if node.input(2).is_none() => inner(),
        _ => None,
    }
}

/// The vectors that a value is at least the sums or means of the squares of.
fn squares(model: &Model, value: Value, far: usize) -> Option<Value> {
    let node = made_by(model, value).filter(|_| far > 0)?;
    let first = node.input(0)?;
    let apart = node.int("keepdims") == Some(0);
    match node.op() {
        _ if apart => None,
        "ReduceSumSquare" => Some(first),
        "ReduceSum" | "ReduceMean" => {
            let squared = made_by(model, first)?;
            let [a, b] = [squared.input(0)?, squared.input(1)?];
            let two = || analysis::number_of(model, b).is_some_and(|(_, number)| number == 2.0);
            let square = squared.is("Pow") && two() || squared.is("Mul") && a == b;
            square.then_some(a)
        }
        "Add" if positive(model, node.input(1)?) => squares(model, first, far - 1),
        "Max" if node.inputs().len() == 2 => squares(model, first, far - 1),
        "Clip" if node.input(2).is_none() => squares(model, first, far - 1),
        _ => None,
    }
}

fn made_by(model: &Model, value: Value) -> Option<&Node> {
    model.producer(value).map(|id| &model[id]).filter(|node| node.domain.is_empty())
}

/// Whether a value is a constant whose elements have usual sizes.
fn usual(model: &Model, value: Option<Value>) -> bool {
    let holds = |t: &Tensor| analysis::every(t, |v| v.abs() <= USUAL);
    value.and_then(|v| model[v].constant()).is_some_and(|t| t.has_data() && holds(t))
}

fn usual_or_none(model: &Model, value: Option<Value>) -> bool {
    value.is_none() || usual(model, value)
}

fn positive(model: &Model, value: Value) -> bool {
    analysis::number_of(model, value).is_some_and(|(_, number)| number >= 0.0)
}
