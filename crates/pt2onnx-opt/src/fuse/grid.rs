//! Elements at all points of a grid, of which a vector for each dimension tells the places: dimension after dimension is picked.

use crate::{
    eval,
    facts::{self, counted, known},
    fusion::Fusion,
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Builder, Model, Value, attrs};
use pt2onnx_symbolic::Expr;

/// `GatherND` of such points becomes a `Gather` for each dimension. At most two of them pick; the others take everything and go.
pub(crate) fn grid_fusions() -> Result<Vec<Fusion>, PatternError> {
    Ok(vec![Fusion::new("g:GatherND(x, i)", picked)?])
}

/// The places along one dimension of the data.
struct Places {
    /// A vector, or one that has dimensions of size 1 around it.
    spread: Value,
    /// The dimension of the result that they become, and its size.
    at: usize,
    size: Expr,
}

fn picked(cx: &Builder, found: &Match) -> Option<Value> {
    let (x, points) = (found.value("x")?, found.value("i")?);
    let gather = found.node(cx, "g")?;
    let data = cx.known_shape(x)?;
    let places = { places(&cx.model(), points) }?;
    let plain = attrs::GatherND::read(&gather).ok()?.batch_dims == 0 && places.len() <= data.len();
    let all = |(p, size): (&Places, &Expr)| {
        let model = cx.model();
        known(size) && counted(&model, p.spread) == Some(size)
    };
    let picking = places.iter().zip(&data).filter(|pair| !all(*pair)).count();
    if !plain || picking > 2 {
        return None;
    }
    let mut y = x;
    for (axis, place) in places.iter().enumerate() {
        let vector = cx.reshape(place.spread, std::slice::from_ref(&place.size));
        y = cx.gather(y, vector, axis);
    }
    let rank = cx.known_shape(points)?.len().checked_sub(1)?;
    let added: Vec<usize> = (0..rank).filter(|i| places.iter().all(|p| p.at != *i)).collect();
    Some(cx.unsqueeze(y, &added))
}

/// The places of points that nothing else uses: the coordinates, each of which changes along one dimension, are joined as the last one.
fn places(model: &Model, points: Value) -> Option<Vec<Places>> {
    let shape = facts::shape(model, points).filter(|_| model[points].uses().len() == 1)?;
    let joined = &model[model.producer(points)?];
    let (_, grid) = shape.split_last()?;
    let axis = eval::axis(joined.int("axis")?, shape.len())?;
    if !joined.is("Concat") || axis != grid.len() {
        return None;
    }
    let places: Vec<Places> =
        joined.inputs().iter().map(|&v| coordinate(model, v?, grid)).collect::<Option<_>>()?;
    let spans = |(i, size): (usize, &Expr)| match places.iter().find(|p| p.at == i) {
        Some(place) => place.size == *size && known(size),
        None => size.as_int() == Some(1),
    };
    let sorted = places.windows(2).all(|w| w[0].at < w[1].at);
    (sorted && grid.iter().enumerate().all(spans)).then_some(places)
}

/// The vector that a coordinate of a grid is spread from.
fn coordinate(model: &Model, value: Value, grid: &[Expr]) -> Option<Places> {
    let column = &model[model.producer(value)?];
    if !matches!(column.op(), "Unsqueeze" | "Reshape") || !column.domain.is_empty() {
        return None;
    }
    let mut spread = column.input(0)?;
    let (one, sizes) = facts::shape(model, value)?.split_last()?;
    let same = sizes == &facts::shape(model, spread)?[..] && sizes.len() == grid.len();
    if one.as_int() != Some(1) || !same {
        return None;
    }
    if let Some(expand) = model.producer(spread).map(|id| &model[id]).filter(|n| n.is("Expand")) {
        spread = expand.input(0)?;
    }
    let sizes = facts::shape(model, spread)?;
    let mut wide = sizes.iter().enumerate().filter(|(_, d)| d.as_int() != Some(1));
    let ((from, size), None) = (wide.next()?, wide.next()) else {
        return None;
    };
    let at = (grid.len() + from).checked_sub(sizes.len())?;
    Some(Places { spread: vector(model, spread), at, size: size.clone() })
}

/// The vector that a value is reshaped from, or else the value.
fn vector(model: &Model, value: Value) -> Value {
    let reshaped = |&value: &Value| {
        let node = &model[model.producer(value)?];
        let forms = matches!(node.op(), "Unsqueeze" | "Reshape" | "Squeeze");
        node.input(0).filter(|_| forms && node.domain.is_empty())
    };
    let mut sources = std::iter::successors(Some(value), reshaped);
    sources.find(|&source| facts::rank(model, source) == Some(1)).unwrap_or(value)
}
