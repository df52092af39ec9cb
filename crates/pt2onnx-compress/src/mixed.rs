//! Which weights keep 8 bits among those of 4: those that 4 bits harm most.

use crate::{Format, Options, Quantised, Scheme, Weight, block_ops};
use pt2onnx_ir::{Model, NodeId, Value};
use pt2onnx_tensor::DType;
use rustc_hash::FxHashSet;

/// How many times as large the error of a weight is that keeps 8 bits as that of others.
const NOISY: f64 = 1.5;

/// In how many places a weight is tried.
const PLACES: usize = 8;

/// The weights of the products on which no other depends, and those with a few large numbers: the
/// relative squared error of their 4 bits is well above the median.
///
/// # Arguments
/// * `weights`: Those that will be quantised.
pub(crate) fn kept_at_8_bits(
    model: &Model,
    weights: &[Weight],
    options: &Options,
) -> FxHashSet<Value> {
    let last = last_products(model, weights);
    let mut noise: Vec<(Value, f64)> = weights
        .iter()
        .filter_map(|weight| Some((weight.value, noise(model, weight, options)?)))
        .collect();
    noise.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let median = noise.get(noise.len() / 2).map_or(f64::INFINITY, |(_, noise)| *noise);
    let noisy = noise.into_iter().filter(|(_, noise)| *noise > NOISY * median);
    noisy.map(|(value, _)| value).chain(last).collect()
}

/// The squared error relative to the squares, in a few places. None if it cannot be read, which
/// writing it reports.
fn noise(model: &Model, weight: &Weight, options: &Options) -> Option<f64> {
    let axes = weight.axes(model).filter(|_| weight.tensor.rank() == 2)?;
    let block = options.block_size.unwrap_or(block_ops::BLOCK);
    let (scale, restored) = (DType::F32, weight.dtype);
    let symmetric = !options.zero_points;
    let scheme = Scheme { format: Format::Int4, symmetric, unsigned: false, scale, restored };
    let tried = Quantised::new(weight, scheme, Some(axes.sum), Some(block));
    let (unit, numbers) = (tried.unit(), weight.tensor.numel());
    let units = numbers.div_ceil(unit);
    for place in (0..units).step_by(units.div_ceil(PLACES).max(1)) {
        let start = place * unit;
        tried.codes(start, &mut vec![0; unit.min(numbers - start)]).ok()?;
    }
    let sums = tried.losses.sums()?;
    Some(sums.noise / sums.signal).filter(|noise| noise.is_finite())
}

/// The weights of products on which no product of another depends.
fn last_products(model: &Model, weights: &[Weight]) -> impl Iterator<Item = Value> {
    let products: Vec<(NodeId, Value)> = weights
        .iter()
        .flat_map(|weight| weight.products(model).into_iter().map(|(node, _)| (node, weight.value)))
        .collect();
    let before = |node: NodeId| {
        let outputs = model[node].regions().flat_map(|region| model[region].output_values());
        let values = model[node].inputs().iter().flatten().copied().chain(outputs);
        values.filter_map(|value| model.producer(value)).collect::<Vec<_>>()
    };
    let mut todo: Vec<NodeId> = products.iter().flat_map(|(node, _)| before(*node)).collect();
    let mut seen = FxHashSet::default();
    while let Some(node) = todo.pop() {
        if seen.insert(node) {
            todo.extend(before(node));
        }
    }
    products.into_iter().filter(move |(node, _)| !seen.contains(node)).map(|(_, value)| value)
}
