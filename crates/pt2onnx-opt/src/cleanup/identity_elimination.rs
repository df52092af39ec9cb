//! Identity elimination: nodes whose output is one of their inputs, bit for bit. One exception:
//! `x + 0` is `x`, though `-0.0 + 0.0` is `0.0`.

use super::{NodeView, concat_of_slices, known};
use crate::{
    analysis::{counted, every, number_of},
    cse::is_compared,
    eval::axis,
};
use pt2onnx_ir::{Model, Node, Traits, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;

/// Conditions of up to this many bytes are read.
const READ: usize = 64 << 10;

/// The input that the node's output equals.
pub(super) fn rule(n: &NodeView) -> Option<Value> {
    let x = n.node.input(0)?;
    let same = match n.node.op() {
        "Identity" => true,
        "Cast" | "CastLike" => n.dtype(x)? == n.dtype(n.output())?,
        // A matrix stays as it is.
        "Flatten" if is_flat(n, x) => true,
        "Reshape" if reshapes_nothing(n, x) == Some(true) => true,
        // The order of elements is the same, so equal sizes mean equal tensors.
        _ if n.node.traits().contains(Traits::SHAPE_ONLY) => {
            n.same_shape(x, n.output()) && !n.checks_sizes()
        }
        // Whole numbers.
        "Floor" | "Ceil" | "Round" => {
            n.producer(x).is_some_and(|p| matches!(p.node.op(), "Floor" | "Ceil" | "Round"))
        }
        "Expand" => {
            n.same_shape(x, n.output()) || (ones(n) && n.ints(1)?.len() <= n.shape(x)?.len())
        }
        "Tile" => n.same_shape(x, n.output()) || ones(n),
        // Only dimensions of size 1 are reduced.
        "ReduceSum" | "ReduceMean" | "ReduceProd" | "ReduceMax" | "ReduceMin" => {
            n.same_shape(x, n.output())
        }
        "Transpose" => transposes_nothing(n, x)?,
        "Slice" => takes_all(n, x)?,
        "Gather" => takes_each(n, x)?,
        "Pad" => n.ints(1)?.iter().all(|&p| p == 0),
        "Concat" | "Sum" | "Min" | "Max" | "Mean" if n.node.inputs().len() == 1 => true,
        "Concat" => return concat_of_slices::whole(n),
        "Split" => true,
        "Mul" => return either_neutral(n, |t| is(t, 1.0)),
        // The sign of a zero may change: -0.0 + 0.0 is 0.0. Python's `sum()` starts at 0, so
        // `0 + x` is common.
        "Add" => return either_neutral(n, |t| every(t, |e| e == 0.0)),
        "Where" => return chosen(n),
        "ScatterND" => return writes_all(n),
        "And" => return either_neutral(n, |t| is(t, 1.0)),
        "Or" | "Xor" => return either_neutral(n, |t| is(t, 0.0)),
        "Div" | "Pow" => neutral(n, 1, 0, |t| is(t, 1.0)),
        "Sub" => neutral(n, 1, 0, |t| is(t, 0.0)),
        _ => false,
    };
    same.then_some(x)
}

/// Whether a `Reshape` keeps the sizes of its operand: all but one are known, and -1 is that one.
fn reshapes_nothing(n: &NodeView, x: Value) -> Option<bool> {
    let (target, shape) = (n.ints(1)?, n.shape(x)?);
    let same = |(&size, dim): (&i64, &Expr)| size > 0 && dim.as_int() == Some(size);
    let others = target.iter().zip(shape).filter(|pair| !same(*pair)).map(|(size, _)| *size);
    Some(target.len() == shape.len() && others.eq([-1]))
}

/// The input and the output of a `Dropout` that does nothing: it is not in training or drops none,
/// and its mask is not used.
pub(super) fn dropout(model: &Model, node: &Node) -> Option<(Value, Value)> {
    let (output, mask) = (*node.outputs().first()?, node.outputs().get(1));
    let training = || {
        let given = node.input(2).map(|v| model[v].constant().and_then(|t| t.to_vec::<bool>()));
        given.is_some_and(|t| t.is_none_or(|t| t.contains(&true)))
    };
    let ratio = || number_of(model, node.input(1)?);
    let drops = || ratio().is_none_or(|(_, ratio)| ratio != 0.0);
    let unused = mask.is_none_or(|v| model[*v].uses().len() == 0);
    let used = node.is("Dropout") && unused && model[output].uses().len() > 0;
    let idle = used && !(training() && drops());
    idle.then_some((node.input(0)?, output))
}

/// Whether a `Slice` takes everything in order.
fn takes_all(n: &NodeView, x: Value) -> Option<bool> {
    let steps = n.node.input(4).map_or(Some(Vec::new()), |_| n.ints(4))?;
    let whole = || {
        let (starts, ends) = (n.ints(1)?, n.ints(2)?);
        let ends = ends.iter().all(|&e| e >= i64::from(i32::MAX));
        Some(ends && starts.iter().all(|&s| s == 0) && steps.iter().all(|&s| s == 1))
    };
    let forward = steps.iter().all(|&s| s > 0);
    Some(forward && n.same_shape(x, n.output()) || whole() == Some(true))
}

/// Whether a `Gather` takes each part along a dimension once, in order.
fn takes_each(n: &NodeView, x: Value) -> Option<bool> {
    let shape = n.shape(x)?;
    let size = &shape[axis(attrs::Gather::read(n.node).ok()?.axis, shape.len())?];
    Some(counted(n.model, n.node.input(1)?)? == size && known(size))
}

/// The operand that a `Where` takes if its condition is the same for all elements.
fn chosen(n: &NodeView) -> Option<Value> {
    let condition =
        n.model[n.node.input(0)?].constant().filter(|t| t.nbytes() <= READ)?.to_vec::<bool>()?;
    let first = *condition.first()?;
    let taken = n.node.input(if first { 1 } else { 2 })?;
    (condition.iter().all(|&c| c == first) && n.same_shape(taken, n.output())).then_some(taken)
}

/// The updates of a `ScatterND` that writes each row once, in order.
fn writes_all(n: &NodeView) -> Option<Value> {
    let (x, rows, updates) = (n.node.input(0)?, n.node.input(1)?, n.node.input(2)?);
    let plain = attrs::ScatterND::read(n.node).ok()?.reduction == "none";
    if !plain || !n.same_shape(x, updates) {
        return None;
    }
    if let Some(given) = n.ints(1) {
        let sizes = n.model[rows].constant()?.shape();
        let all = n.shape(x)?.first()?.as_int()?;
        return (sizes == [given.len(), 1] && given.into_iter().eq(0..all)).then_some(updates);
    }
    let column =
        |v: Value| n.producer(v).filter(|u| matches!(u.node.op(), "Unsqueeze" | "Reshape"));
    let all = counted(n.model, column(rows)?.node.input(0)?)?;
    let [length, one] = &n.shape(rows)?[..] else { return None };
    let each = one.as_int() == Some(1) && length == n.shape(x)?.first()? && length == all;
    each.then_some(updates)
}

fn ones(n: &NodeView) -> bool {
    n.ints(1).is_some_and(|ints| ints.iter().all(|&i| i == 1))
}

/// Whether a `Flatten` makes a matrix of a matrix, by the same dimensions.
fn is_flat(n: &NodeView, x: Value) -> bool {
    let axis = attrs::Flatten::read(n.node).map(|a| a.axis);
    n.shape(x).is_some_and(|s| s.len() == 2) && matches!(axis, Ok(1 | -1))
}

/// Whether a `Transpose` moves only dimensions of size 1, and gives the same sizes.
fn transposes_nothing(n: &NodeView, x: Value) -> Option<bool> {
    let perm = n.perm()?;
    let same = perm.iter().copied().eq(0..perm.len() as i64);
    Some(same || n.moves_ones()? && n.same_shape(x, n.output()))
}

fn either_neutral(n: &NodeView, holds: fn(&Tensor) -> bool) -> Option<Value> {
    match (neutral(n, 1, 0, holds), neutral(n, 0, 1, holds)) {
        (true, _) => n.node.input(0),
        (_, true) => n.node.input(1),
        _ => None,
    }
}

/// Whether the constant input changes neither elements nor type nor shape of the other one.
fn neutral(n: &NodeView, constant: usize, other: usize, holds: fn(&Tensor) -> bool) -> bool {
    let inputs = n.node.input(constant).zip(n.node.input(other));
    inputs.is_some_and(|(constant, other)| {
        let Some(tensor) = n.model[constant].constant().filter(|t| t.has_data()) else {
            return false;
        };
        let keeps_shape = match n.shape(other) {
            // A tensor whose sizes are 1 or those of the last dimensions does not broadcast them.
            Some(shape) => n.same_shape(other, n.output()) || is_within(tensor.shape(), shape),
            None => tensor.rank() == 0,
        };
        // A large weight stays, whatever its values are now.
        let read = tensor.nbytes() <= n.weights || n.model[constant].name.is_none();
        keeps_shape
            && read
            && (tensor.nbytes() <= n.weights || is_compared(tensor))
            && holds(tensor)
    })
}

/// Whether a tensor of these sizes broadcasts to the shape.
fn is_within(sizes: &[usize], shape: &[Expr]) -> bool {
    let pairs = sizes.iter().rev().zip(shape.iter().rev());
    let fits = |(&size, dim): (&usize, &Expr)| size == 1 || dim.as_int() == Some(size as i64);
    sizes.len() <= shape.len() && pairs.into_iter().all(fits)
}

/// Whether all elements are this number, of this sign.
fn is(t: &Tensor, number: f64) -> bool {
    every(t, |e| e.to_bits() == number.to_bits())
}
