//! Evaluates reductions, cumulative sums and positions of extremes.

use super::{Binary, Call, Eval, Number, Row, array, axes, axis, by_number, shaped, tensor};
use ndarray::{Array2, ArrayD, Axis};
use pt2onnx_ir::attrs;
use pt2onnx_tensor::{DType, Tensor};

pub(super) static OPS: &[Row] = &[
    ("ReduceSum", Eval::One(|c| reduce(c, Kind::Sum))),
    ("ReduceProd", Eval::One(|c| reduce(c, Kind::Prod))),
    ("ReduceMean", Eval::One(|c| reduce(c, Kind::Mean))),
    ("ReduceMin", Eval::One(|c| reduce(c, Kind::Min))),
    ("ReduceMax", Eval::One(|c| reduce(c, Kind::Max))),
    ("ReduceL1", Eval::One(|c| reduce(c, Kind::L1))),
    ("ReduceL2", Eval::One(|c| reduce(c, Kind::L2))),
    ("ReduceSumSquare", Eval::One(|c| reduce(c, Kind::SumSquare))),
    ("CumSum", Eval::One(|c| cumulate(c, Binary::Add))),
    ("CumProd", Eval::One(|c| cumulate(c, Binary::Mul))),
    ("Softmax", Eval::One(|c| softmax(c, |x, sum| x.exp() / sum))),
    ("LogSoftmax", Eval::One(|c| softmax(c, |x, sum| x - sum.ln()))),
    ("ArgMax", Eval::One(|c| position(c, |new, best| new > best))),
    ("ArgMin", Eval::One(|c| position(c, |new, best| new < best))),
];

#[derive(Clone, Copy)]
enum Kind {
    Sum,
    Prod,
    Mean,
    Min,
    Max,
    L1,
    L2,
    SumSquare,
}

fn reduce(call: &Call, kind: Kind) -> Option<Tensor> {
    let x = call.input(0)?;
    let options = attrs::ReduceSum::read(call.node).ok()?;
    let given = call.ints_or(1, Vec::new)?;
    let over = match given.is_empty() {
        true if options.noop_with_empty_axes => return None,
        true => (0..x.rank()).collect(),
        false => axes(&given, x.rank())?,
    };
    let shape = without(x.shape(), &over, options.keepdims);
    call.room(x.dtype(), &shape)?;
    if x.dtype() == DType::Bool {
        let elements = array::<bool>(x)?.mapv(u8::from);
        let (Kind::Min | Kind::Max) = kind else { return None };
        return tensor(DType::Bool, &of_lanes(&elements, &over, &shape, |lane| fold(kind, lane))?);
    }
    by_number!(x.dtype(), T => {
        tensor(x.dtype(), &of_lanes(&array::<T>(x)?, &over, &shape, |lane| fold(kind, lane))?)
    })
}

fn without(shape: &[usize], axes: &[usize], keep: bool) -> Vec<usize> {
    let dims = shape.iter().enumerate();
    dims.filter_map(|(i, &d)| if axes.contains(&i) { keep.then_some(1) } else { Some(d) }).collect()
}

/// One element from each lane along `over`, as an array of `shape`.
fn of_lanes<T: Number, R: Clone>(
    x: &ArrayD<T>,
    over: &[usize],
    shape: &[usize],
    f: impl Fn(&[T]) -> Option<R>,
) -> Option<ArrayD<R>> {
    let kept = (0..x.ndim()).filter(|i| !over.contains(i));
    let order: Vec<usize> = kept.chain(over.iter().copied()).collect();
    let length: usize = over.iter().map(|&i| x.shape()[i]).product();
    let lanes = x.view().permuted_axes(order);
    let lanes: Array2<T> =
        lanes.to_shape((shape.iter().product::<usize>(), length)).ok()?.to_owned();
    let elements = lanes.outer_iter().map(|lane| f(&lane.to_vec())).collect::<Option<Vec<R>>>()?;
    shaped(shape, elements)
}

/// Floats are summed in float64 and rounded once. Nothing for extremes and means of NaN or nothing.
fn fold<T: Number>(kind: Kind, lane: &[T]) -> Option<T> {
    let step = |op, start| lane.iter().try_fold(start, |a, &b| T::binary(op, a, b));
    let extreme = |op| {
        let (first, rest) = lane.split_first()?;
        let found = rest.iter().try_fold(*first, |a, &b| T::binary(op, a, b))?;
        (!found.is_nan()).then_some(found)
    };
    match kind {
        Kind::Min => return extreme(Binary::Min),
        Kind::Max => return extreme(Binary::Max),
        Kind::Mean if lane.is_empty() => return None,
        _ => {}
    }
    if T::ZERO.whole().is_some() {
        return match kind {
            Kind::Sum => step(Binary::Add, T::ZERO),
            Kind::Prod => step(Binary::Mul, T::ONE),
            Kind::Mean => {
                let total: i128 = lane.iter().filter_map(|v| v.whole()).sum();
                T::wrapped(total / lane.len() as i128)
            }
            _ => None,
        };
    }
    let values = lane.iter().map(|v| v.double());
    T::rounded(match kind {
        Kind::Prod => values.product(),
        Kind::Mean => values.sum::<f64>() / lane.len() as f64,
        Kind::L1 => values.map(f64::abs).sum(),
        Kind::L2 => values.map(|v| v * v).sum::<f64>().sqrt(),
        Kind::SumSquare => values.map(|v| v * v).sum(),
        // An empty sum of floats is -0.0 in Rust.
        _ => values.fold(0.0, |a, b| a + b),
    })
}

fn cumulate(call: &Call, op: Binary) -> Option<Tensor> {
    let x = call.input(0)?;
    let along = axis(call.scalar(1)?, x.rank())?;
    call.room(x.dtype(), x.shape())?;
    let attrs::CumSum { exclusive, reverse } = attrs::CumSum::read(call.node).ok()?;
    by_number!(x.dtype(), T => {
        let mut x_ = array::<T>(x)?;
        for mut lane in x_.lanes_mut(Axis(along)) {
            if reverse {
                lane.invert_axis(Axis(0));
            }
            let mut total = if matches!(op, Binary::Mul) { T::ONE } else { T::ZERO };
            for v in lane.iter_mut() {
                let next = T::binary(op, total, *v)?;
                *v = if exclusive { total } else { next };
                total = next;
            }
        }
        tensor(x.dtype(), &x_)
    })
}

/// `f` of each element less the largest along an axis, and of the sum of the exponentials of these.
/// Rows with NaN or infinities are not defined.
fn softmax(call: &Call, f: fn(f64, f64) -> f64) -> Option<Tensor> {
    let x = call.input(0)?;
    let along = axis(attrs::Softmax::read(call.node).ok()?.axis, x.rank())?;
    call.room(x.dtype(), x.shape())?;
    by_number!(x.dtype(), T => {
        let mut x_ = array::<T>(x)?;
        for mut lane in x_.lanes_mut(Axis(along)) {
            let largest = lane.iter().map(|v| v.double()).fold(f64::NEG_INFINITY, f64::max);
            let less = |v: &T| v.double() - largest;
            let sum: f64 = lane.iter().map(|v| less(v).exp()).sum();
            if lane.iter().any(|v| !v.double().is_finite()) {
                return None;
            }
            for v in &mut lane {
                *v = T::rounded(f(less(v), sum))?;
            }
        }
        tensor(x.dtype(), &x_)
    })
}

/// The position along `axis` of the element that beats all others; not defined for NaN.
fn position(call: &Call, beats: fn(f64, f64) -> bool) -> Option<Tensor> {
    let x = call.input(0)?;
    let options = attrs::ArgMax::read(call.node).ok()?;
    let (along, last) = (axis(options.axis, x.rank())?, options.select_last_index);
    let shape = without(x.shape(), &[along], options.keepdims);
    call.room(DType::I64, &shape)?;
    by_number!(x.dtype(), T => {
        let found = of_lanes(&array::<T>(x)?, &[along], &shape, |lane| {
            // i64 beyond 2^53 would not compare exactly as double.
            let values: Vec<f64> = lane.iter().map(|v| v.double()).collect();
            let exact = values.iter().all(|v| !v.is_nan() && (v.is_infinite() || T::rounded(*v).is_some()));
            let mut best = (0i64, *values.first().filter(|_| exact)?);
            for (i, &v) in values.iter().enumerate().skip(1) {
                if beats(v, best.1) || (last && v == best.1) {
                    best = (i as i64, v);
                }
            }
            Some(best.0)
        })?;
        tensor(DType::I64, &found)
    })
}
