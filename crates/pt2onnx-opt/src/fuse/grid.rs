//! `GatherND` over a Cartesian grid becomes one `Gather` per axis.

use super::{Because, Fusion, Match, Measure, NoFusion, Pass, Patterns, Run};
use crate::{
    analysis::{counted, known, size_of},
    eval,
};
use pt2onnx_ir::{Builder, Model, Value, attrs};
use pt2onnx_symbolic::Expr;

pub(crate) static GRID: Pass = Pass {
    name: "grid",
    since: 11,
    description: "Replaces GatherND at all points of a grid by a Gather for each dimension, and \
                  Gather of all elements in their order by Reshape.",
    precondition: "All but two of the dimensions are taken whole; the places are those of all rows \
                   and columns.",
    lowers: Measure::Operators(&["GatherND", "Gather"]),
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// At most two axes of `GatherND` pick; the others take everything and go. `Gather` of all elements
/// of a flat tensor, whose places are `i * columns + j`, becomes a reshape.
fn fusions() -> Patterns {
    Ok(vec![
        Fusion::new("g:GatherND(x, i)", |cx, found| {
            picked(cx, found).because("the points are not a grid, or more than two axes pick")
        })?,
        Fusion::new("g:Gather(x, i)", |cx, found| in_order(cx, found).ok_or(NoFusion::NoMatch))?,
    ])
}

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

/// The places of points that nothing else uses: coordinates of one dimension each, joined.
fn places(model: &Model, points: Value) -> Option<Vec<Places>> {
    let shape = model.shape(points).filter(|_| model[points].uses().len() == 1)?;
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
    let (one, sizes) = model.shape(value)?.split_last()?;
    let same = sizes == &model.shape(spread)?[..] && sizes.len() == grid.len();
    if one.as_int() != Some(1) || !same {
        return None;
    }
    if let Some(expand) = model.producer(spread).map(|id| &model[id]).filter(|n| n.is("Expand")) {
        spread = expand.input(0)?;
    }
    let sizes = model.shape(spread)?;
    let mut wide = sizes.iter().enumerate().filter(|(_, d)| d.as_int() != Some(1));
    let ((from, size), None) = (wide.next()?, wide.next()) else { return None };
    let at = (grid.len() + from).checked_sub(sizes.len())?;
    Some(Places { spread: vector(model, spread), at, size: size.clone() })
}

/// At most this many views are between a value and its vector or size.
const FAR: usize = 16;

/// The vector that a value is reshaped from, or else the value.
fn vector(model: &Model, value: Value) -> Value {
    let reshaped = |&value: &Value| {
        let node = &model[model.producer(value)?];
        let forms = matches!(node.op(), "Unsqueeze" | "Reshape" | "Squeeze");
        node.input(0).filter(|_| forms && node.domain.is_empty())
    };
    let mut sources = std::iter::successors(Some(value), reshaped).take(FAR);
    sources.find(|&source| model.rank(source) == Some(1)).unwrap_or(value)
}

/// The elements in their order, if the places are those of all rows and columns.
fn in_order(cx: &Builder, found: &Match) -> Option<Value> {
    let (x, places) = (found.value("x")?, found.value("i")?);
    let (source, sizes) = {
        let model = cx.model();
        let grid = model.shape(places)?;
        let (rows, columns) = rows_and_columns(&model, places)?;
        let flat = model.shape(x)?;
        let (count, rest) = flat.split_first()?;
        let is_place = |(i, size): (usize, &Expr)| match i {
            _ if i == rows.at => *size == rows.size,
            _ if i == columns.at => *size == columns.size,
            _ => size.as_int() == Some(1),
        };
        let all = rows.at < columns.at
            && grid.iter().enumerate().all(is_place)
            && [count, &rows.size, &columns.size].into_iter().chain(rest).all(known)
            && Expr::product([rows.size.clone(), columns.size.clone()]) == *count;
        let first = attrs::Gather::read(&found.node(cx, "g")?).ok()?.axis == 0;
        (all && first).then(|| {
            let sizes: Vec<Expr> = grid.iter().chain(rest).cloned().collect();
            (flat_source(&model, x).unwrap_or(x), sizes)
        })?
    };
    let y = cx.reshape(source, &sizes);
    is_one_node(cx, y, source)?.then_some(y)
}

/// The value that is reshaped to this one.
fn flat_source(model: &Model, x: Value) -> Option<Value> {
    let node = &model[model.producer(x)?];
    let source = node.input(0)?;
    let dims = model.shape(source)?;
    let views = matches!(node.op(), "Flatten" | "Reshape") && node.domain.is_empty();
    (views && dims.iter().all(known)).then_some(source)
}

/// Whether a value is computed by one node from another one, and from constants.
fn is_one_node(cx: &Builder, y: Value, x: Value) -> Option<bool> {
    let model = cx.model();
    let mut inputs = model[model.producer(y)?].inputs().iter().flatten();
    Some(inputs.all(|&v| v == x || model[v].constant().is_some()))
}

/// The places of rows and columns in `i * columns + j`.
fn rows_and_columns(model: &Model, places: Value) -> Option<(Places, Places)> {
    let of = |value: Value, op: &str| {
        let node = &model[model.producer(value)?];
        let own = node.is(op) && node.domain.is_empty();
        own.then(|| Some((node.input(0)?, node.input(1)?)))?
    };
    let rank = model.rank(places)?;
    let either = |(a, b): (Value, Value)| [(a, b), (b, a)];
    either(of(places, "Add")?).into_iter().find_map(|(inner, outer)| {
        let columns = range(model, inner, rank)?;
        let (row, _) = either(of(outer, "Mul")?)
            .into_iter()
            .find(|(_, count)| size_of(model, *count).as_ref() == Some(&columns.size))?;
        Some((range(model, row, rank)?, columns))
    })
}

/// The numbers from 0 on along one dimension of a tensor that is broadcast to a rank.
fn range(model: &Model, value: Value, rank: usize) -> Option<Places> {
    let spread = vector(model, value);
    let size = counted(model, spread)?;
    let own = model.shape(value)?;
    let mut wide = own.iter().enumerate().filter(|(_, d)| d.as_int() != Some(1));
    let ((at, wide), None) = (wide.next()?, wide.next()) else { return None };
    let at = (at + rank).checked_sub(own.len())?;
    (wide == size).then(|| Places { spread, at, size: size.clone() })
}
