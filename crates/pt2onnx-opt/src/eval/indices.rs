//! Evaluates operators whose indices are data: `OneHot`, `NonZero`, `GatherND`, `EyeLike`, `TopK`.

use super::{
    Call, Eval, Row, array, axis, by_width, dim,
    elements::{Elements, Numeric, Power, Rounding, tensor_of},
    of_elements, shaped, tensor,
};
use ndarray::{ArrayD, Axis, Dimension, IxDyn};
use pt2onnx_ir::{attrs, schema};
use pt2onnx_tensor::{DType, Tensor};

pub(super) static OPS: &[Row] = &[
    ("OneHot", Eval::One(one_hot)),
    ("NonZero", Eval::One(non_zero)),
    ("GatherND", Eval::One(gather_nd)),
    ("EyeLike", Eval::One(eye_like)),
    ("TopK", Eval::Many(top_k)),
];

/// An index that is not in `-depth..depth` has no place: all its elements are the first value.
fn one_hot(call: &Call) -> Option<Tensor> {
    let (indices, values) = (call.input(0)?, call.input(2)?);
    let depth = usize::try_from(call.scalar(1)?).ok().filter(|&d| d > 0)?;
    let along = axis(attrs::OneHot::read(call.node).ok()?.axis, indices.rank() + 1)?;
    let mut sizes = indices.shape().to_vec();
    sizes.insert(along, depth);
    call.room(values.dtype(), &sizes)?;
    let places = shaped(indices.shape(), call.ints(0)?)?;
    by_width!(values.dtype(), T => {
        let values: Vec<T> = array::<T>(values)?.into_iter().collect();
        let [off, on] = values[..] else { return None };
        let mut result = ArrayD::from_elem(dim(&sizes), off);
        for (at, &place) in places.indexed_iter() {
            if let Some(place) = axis(place, depth) {
                let mut at: Vec<usize> = (0..at.ndim()).map(|i| at[i]).collect();
                at.insert(along, place);
                *result.get_mut(IxDyn(&at))? = on;
            }
        }
        tensor(call.input(2)?.dtype(), &result)
    })
}

/// The positions of the elements other than 0, one in each column.
fn non_zero(call: &Call) -> Option<Tensor> {
    let x = call.input(0).filter(|x| x.rank() > 0)?;
    let found: Vec<bool> = Elements::of(x)?.iter().map(|e| e.double() != 0.0).collect();
    let found = shaped(x.shape(), found)?;
    let places: Vec<IxDyn> = found.indexed_iter().filter(|(_, f)| **f).map(|(at, _)| at).collect();
    call.room(DType::I64, &[x.rank(), places.len()])?;
    let column = |i: usize| places.iter().map(move |at| at[i] as i64);
    let all: Vec<i64> = (0..x.rank()).flat_map(column).collect();
    Tensor::from_slice([x.rank(), places.len()], &all).ok()
}

/// Without batch dimensions.
fn gather_nd(call: &Call) -> Option<Tensor> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    if attrs::GatherND::read(call.node).ok()?.batch_dims != 0 {
        return None;
    }
    let (&depth, lead) = indices.shape().split_last().filter(|(d, _)| **d > 0)?;
    let window = x.shape().get(depth..)?;
    let sizes = [lead, window].concat();
    call.room(x.dtype(), &sizes)?;
    let rows = call.ints(1)?;
    by_width!(x.dtype(), T => {
        let x = array::<T>(x)?;
        let mut all: Vec<T> = Vec::new();
        for row in rows.chunks_exact(depth) {
            let mut view = x.view();
            for (&i, &size) in row.iter().zip(x.shape()) {
                view.index_axis_inplace(Axis(0), axis(i, size)?);
            }
            all.extend(view.iter());
        }
        of_elements(call.input(0)?.dtype(), &sizes, all)
    })
}

fn eye_like(call: &Call) -> Option<Tensor> {
    let x = call.input(0).filter(|x| x.rank() == 2)?;
    let given = attrs::EyeLike::read(call.node).ok()?;
    let dtype = given.dtype.map_or(Some(x.dtype()), schema::dtype)?;
    call.room(dtype, x.shape())?;
    let [rows, columns] = x.shape()[..] else { return None };
    let places = (0..rows as i64).flat_map(|r| (0..columns as i64).map(move |c| (r, c)));
    let one = |(r, c): (i64, i64)| Numeric::Int((r.checked_add(given.k) == Some(c)).into());
    let rounding = Rounding { saturate: true, power: Power::Nearest };
    tensor_of(dtype, x.shape(), places.map(one).map(Some), rounding)
}

/// The largest or smallest elements, and their positions. The order of NaN is not defined.
fn top_k(call: &Call) -> Option<Vec<Tensor>> {
    let x = call.input(0)?;
    let options = attrs::TopK::read(call.node).ok().filter(|options| options.sorted)?;
    let along = axis(options.axis, x.rank())?;
    let count = usize::try_from(call.scalar(1)?).ok().filter(|&k| k <= x.shape()[along])?;
    let mut sizes = x.shape().to_vec();
    sizes[along] = count;
    call.room(DType::I64, &sizes)?;
    let numbers: Vec<Numeric> = Elements::of(x)?.iter().collect();
    let defined = numbers.iter().all(|n| !n.double().is_nan());
    let numbers = shaped(x.shape(), numbers).filter(|_| defined)?;
    let mut places = ArrayD::<i64>::zeros(dim(&sizes));
    let lanes = numbers.lanes(Axis(along)).into_iter();
    for (lane, mut found) in lanes.zip(places.lanes_mut(Axis(along))) {
        let mut order: Vec<usize> = (0..lane.len()).collect();
        order.sort_by(|&a, &b| {
            if options.largest { lane[b].compare(lane[a]) } else { lane[a].compare(lane[b]) }
        });
        found.iter_mut().zip(order).for_each(|(place, at)| *place = at as i64);
    }
    let values = by_width!(x.dtype(), T => {
        let x_ = array::<T>(x)?;
        let mut values = ArrayD::<T>::zeros(dim(&sizes));
        let all = x_.lanes(Axis(along)).into_iter();
        for ((lane, places), mut found) in
            all.zip(places.lanes(Axis(along))).zip(values.lanes_mut(Axis(along)))
        {
            found.iter_mut().zip(places).for_each(|(value, &at)| *value = lane[at as usize]);
        }
        tensor(x.dtype(), &values)
    })?;
    Some(vec![values, tensor(DType::I64, &places)?])
}
