//! Evaluates `ScatterND` and `ScatterElements`.

use super::{
    Binary, Call, Eval, Number, Row, array, axis, by_number, by_width, dim, shaped, tensor,
};
use ndarray::IxDyn;
use pt2onnx_ir::attrs;
use pt2onnx_tensor::{DType, Element, Tensor};

pub(super) static OPS: &[Row] =
    &[("ScatterND", Eval::One(scatter_nd)), ("ScatterElements", Eval::One(scatter_elements))];

/// Writes updates to places, given as indices from the front.
fn write(
    call: &Call,
    reduction: &str,
    places: impl Iterator<Item = Option<Vec<usize>>>,
) -> Option<Tensor> {
    let (x, updates) = (call.input(0)?, call.input(2)?);
    if x.dtype() != updates.dtype() {
        return None;
    }
    call.room(x.dtype(), x.shape())?;
    fn each<T: Element>(
        x: &Tensor,
        updates: &Tensor,
        places: impl Iterator<Item = Option<Vec<usize>>>,
        f: impl Fn(T, T) -> Option<T>,
    ) -> Option<Tensor> {
        let mut result = array::<T>(x)?;
        for (&update, place) in array::<T>(updates)?.iter().zip(places) {
            let element = result.get_mut(IxDyn(&place?))?;
            *element = f(*element, update)?;
        }
        tensor(x.dtype(), &result)
    }
    let op = match reduction {
        "none" => {
            return by_width!(x.dtype(), T => each::<T>(x, updates, places, |_, new| Some(new)));
        }
        "add" => Binary::Add,
        "mul" => Binary::Mul,
        _ => return None,
    };
    by_number!(x.dtype(), T => each::<T>(x, updates, places, |old, new| T::binary(op, old, new)))
}

fn scatter_nd(call: &Call) -> Option<Tensor> {
    let (x, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let (&depth, lead) = indices.shape().split_last()?;
    let window = x.shape().get(depth..)?;
    if updates.shape() != [lead, window].concat() || depth == 0 {
        return None;
    }
    let rows = call.ints(1)?;
    let inner: Vec<Vec<usize>> = ndarray::indices(dim(window))
        .into_iter()
        .map(|at| (0..window.len()).map(|i| at[i]).collect())
        .collect();
    let places = rows.chunks(depth).flat_map(|row| {
        let start: Option<Vec<usize>> =
            row.iter().zip(x.shape()).map(|(&i, &size)| axis(i, size)).collect();
        inner.iter().map(move |rest| Some([start.as_deref()?, rest].concat()))
    });
    write(call, attrs::ScatterND::read(call.node).ok()?.reduction, places)
}

fn scatter_elements(call: &Call) -> Option<Tensor> {
    let (x, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let options = attrs::ScatterElements::read(call.node).ok()?;
    let along = axis(options.axis, x.rank())?;
    if indices.shape() != updates.shape() || indices.rank() != x.rank() {
        return None;
    }
    let picked = shaped(indices.shape(), call.ints(1)?)?;
    let place = |(at, &i): (IxDyn, &i64)| {
        let mut place: Vec<usize> = (0..x.rank()).map(|d| at[d]).collect();
        place[along] = axis(i, x.shape()[along])?;
        Some(place)
    };
    write(call, options.reduction, picked.indexed_iter().map(place))
}
