//! Where sizes can be read: the first tensor that has each of them.

use pt2onnx_ir::{Attributes, Def, InsertPoint, Model, Node, NodeId, Type, Use, Value, attrs};
use pt2onnx_symbolic::{Expr, Symbol};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};

/// The first opset whose `Shape` has `start` and `end`.
const SHAPE_OF_SOME: u32 = 15;

/// The first value in scope that has each size, and the dimension.
#[derive(Default)]
pub(super) struct Sources {
    places: FxHashMap<Symbol, (Value, usize)>,
    order: Vec<Symbol>,
}

/// A part of a vector of sizes.
#[derive(Clone, PartialEq)]
enum Part {
    Numbers(Vec<i64>),
    /// The sizes of a value from a dimension to another one.
    Sizes(Value, usize, usize),
}

impl Sources {
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Forgets the sizes that were added last.
    pub fn truncate(&mut self, length: usize) {
        for symbol in self.order.drain(length..) {
            self.places.remove(&symbol);
        }
    }

    /// Adds the sizes of a value that is in scope from now on.
    pub fn add(&mut self, model: &Model, value: Value) {
        for (axis, dim) in model.shape(value).into_iter().flatten().enumerate() {
            let symbol = dim.as_symbol().map(Symbol::from);
            if let Some(symbol) = symbol
                && !self.places.contains_key(&symbol)
            {
                self.places.insert(symbol.clone(), (value, axis));
                self.order.push(symbol);
            }
        }
    }

    /// Replaces an output of a node by sizes that are read from their sources in as few nodes as
    /// possible. Returns the new value. `None` if the node is one of these already, or not all
    /// elements are sizes.
    pub fn read(
        &self,
        model: &mut Model,
        id: NodeId,
        output: Value,
        elements: &[Expr],
        opset: u32,
        is_read: impl Fn(&[Expr]) -> bool,
    ) -> Option<Value> {
        let (dtype, shape) = model.tensor_type(output)?;
        let scalar = shape.is_empty();
        let parts = self.parts(model, elements)?;
        let good = found(model, output, scalar)? == parts;
        if dtype != DType::I64 || good && (opset < SHAPE_OF_SOME || !reads_alone(model, id)) {
            return None;
        }
        if parts.len() > 1 && same_source(&parts).is_none() && reads_directly(model, id) {
            return None;
        }
        if parts.len() > 1 && same_source(&parts).is_none() && costs(model, id, &parts, is_read) {
            return None;
        }
        if model[id].is("Shape") && needs_two(model, &parts, opset) && !only_sizes(model, id) {
            return None;
        }
        let at = InsertPoint::Before(id);
        let new = match parts.as_slice() {
            [Part::Sizes(x, from, _)] if scalar => element(model, at, *x, *from),
            _ if scalar => return None,
            [part] => emit(model, at, part, opset),
            parts if same_source(parts).is_some() => {
                let axes = parts.iter().flat_map(|p| match p {
                    Part::Sizes(_, from, to) => (*from as i64..*to as i64).collect(),
                    Part::Numbers(_) => Vec::new(),
                });
                gathered(model, at, same_source(parts)?, axes.collect())
            }
            parts => {
                let inputs: Vec<Option<Value>> =
                    parts.iter().map(|p| Some(emit(model, at, p, opset))).collect();
                let axis = Attributes::from_iter([("axis".into(), 0.into())]);
                node(model, at, "Concat", &inputs, (axis, Some(elements.len())))
            }
        };
        let made = model.producer(new)?;
        model[made].origins = model[id].origins.clone();
        crate::rewrite::substitute(model, output, new);
        Some(new)
    }

    /// Elements beside a size are read with it, where the same tensor has them there.
    fn parts(&self, model: &Model, elements: &[Expr]) -> Option<Vec<Part>> {
        let mut parts: Vec<Part> = Vec::new();
        let dim = |x: Value, axis: usize| model.shape(x)?.get(axis);
        for e in elements {
            let part = match (e.as_int(), parts.last()) {
                (_, Some(Part::Sizes(x, _, to))) if dim(*x, *to) == Some(e) => {
                    Part::Sizes(*x, *to, to + 1)
                }
                (Some(number), _) => Part::Numbers(vec![number]),
                (None, _) => {
                    let (x, axis) = *self.places.get(e.as_symbol()?)?;
                    let mut from = axis;
                    while let Some(Part::Numbers(numbers)) = parts.last_mut()
                        && let Some(before) = from.checked_sub(1)
                        && dim(x, before).and_then(Expr::as_int).as_ref() == numbers.last()
                    {
                        from = before;
                        numbers.pop();
                        if numbers.is_empty() {
                            parts.pop();
                        }
                    }
                    Part::Sizes(x, from, axis + 1)
                }
            };
            push(&mut parts, part);
        }
        Some(parts)
    }
}

/// Whether reading the parts of a `Concat` needs more nodes than it saves.
fn costs(model: &Model, id: NodeId, parts: &[Part], is_read: impl Fn(&[Expr]) -> bool) -> bool {
    let new = |part: &&Part| match part {
        Part::Numbers(_) => false,
        Part::Sizes(x, from, to) => {
            let sizes = model.shape(*x).and_then(|shape| shape.get(*from..*to));
            !sizes.is_some_and(&is_read)
        }
    };
    let only_here = |u: Use| matches!(u, Use::Input(user, _) if model[user].is("Concat"));
    let inputs: FxHashSet<Value> = model[id].inputs().iter().flatten().copied().collect();
    let saved =
        |v: &&Value| matches!(model[**v].def(), Def::Node(..)) && model[**v].uses().all(only_here);
    model[id].is("Concat") && parts.iter().filter(new).count() > inputs.iter().filter(saved).count()
}

/// Whether two nodes or more read the parts.
fn needs_two(model: &Model, parts: &[Part], opset: u32) -> bool {
    match parts {
        [Part::Sizes(x, from, to)] => {
            opset < SHAPE_OF_SOME && (*from, Some(*to)) != (0, model.rank(*x))
        }
        [Part::Numbers(_)] => false,
        _ => true,
    }
}

/// Whether only the sizes of a node's operand are used, so that the operand need not be computed.
fn only_sizes(model: &Model, id: NodeId) -> bool {
    let of_shape = |u: Use| matches!(u, Use::Input(user, _) if model[user].is("Shape"));
    model[id]
        .input(0)
        .is_some_and(|x| matches!(model[x].def(), Def::Node(..)) && model[x].uses().all(of_shape))
}

fn push(parts: &mut Vec<Part>, part: Part) {
    match (parts.last_mut(), part) {
        (Some(Part::Numbers(all)), Part::Numbers(more)) => all.extend(more),
        (Some(Part::Sizes(x, _, to)), Part::Sizes(y, from, end)) if *x == y && *to == from => {
            *to = end;
        }
        (_, part) => parts.push(part),
    }
}

/// Whether a node is `Shape`, or takes some elements of one.
fn reads_directly(model: &Model, id: NodeId) -> bool {
    let node = &model[id];
    let of_shape =
        || node.input(0).and_then(|v| model.producer(v)).is_some_and(|n| model[n].is("Shape"));
    node.is("Shape") || matches!(node.op(), "Gather" | "Slice") && of_shape()
}

/// Whether a node takes neighbours of a `Shape` that nothing else uses: one node can do both.
fn reads_alone(model: &Model, id: NodeId) -> bool {
    let node = &model[id];
    let whole = node.input(0).filter(|&whole| node.is("Gather") && model[whole].uses().len() == 1);
    let of_shape =
        whole.and_then(|whole| model.producer(whole)).is_some_and(|n| model[n].is("Shape"));
    let vector = node.outputs().first().is_some_and(|&v| model.rank(v) == Some(1));
    of_shape && vector && made_of_one(model, node.outputs()[0]).is_none_or(|parts| parts.len() == 1)
}

fn same_source(parts: &[Part]) -> Option<Value> {
    let source = |p: &Part| match p {
        Part::Sizes(x, ..) => Some(*x),
        Part::Numbers(_) => None,
    };
    let first = source(parts.first()?)?;
    parts.iter().all(|p| source(p) == Some(first)).then_some(first)
}

/// The parts that a value already consists of; an empty list if fewer nodes could make it.
fn found(model: &Model, value: Value, scalar: bool) -> Option<Vec<Part>> {
    let worse = Some(Vec::new());
    let made = model.producer(value)?;
    let node = &model[made];
    match node.op() {
        "Concat" => {
            let mut parts = Vec::new();
            for &input in node.inputs().iter().flatten() {
                let before = parts.len();
                match (model[input].constant(), plain(model, input, false)) {
                    (Some(t), _) => push(&mut parts, Part::Numbers(t.to_vec::<i64>()?)),
                    (None, Some(part)) => push(&mut parts, part),
                    _ => return worse,
                }
                if parts.len() == before {
                    return worse;
                }
            }
            match same_source(&parts) {
                Some(_) => worse,
                None => Some(parts),
            }
        }
        _ if made_of_one(model, value).is_some() => made_of_one(model, value),
        _ => Some(plain(model, value, scalar).into_iter().collect()),
    }
}

/// The parts that one `Gather` of a shape takes, in any order.
fn made_of_one(model: &Model, value: Value) -> Option<Vec<Part>> {
    let node = &model[model.producer(value)?];
    let whole = &model[model.producer(node.input(0).filter(|_| node.is("Gather"))?)?];
    let x = whole.input(0).filter(|_| whole.is("Shape") && whole.attributes.is_empty())?;
    let axes = model[node.input(1)?].constant().filter(|t| t.rank() == 1)?.to_vec::<i64>()?;
    let mut parts = Vec::new();
    for axis in axes {
        let axis = usize::try_from(axis).ok()?;
        push(&mut parts, Part::Sizes(x, axis, axis + 1));
    }
    (parts.len() > 1).then_some(parts)
}

/// The sizes that a value is, if they are read as [`emit`] and [`element`] read them.
fn plain(model: &Model, value: Value, scalar: bool) -> Option<Part> {
    let node = &model[model.producer(value)?];
    if node.is("Shape") {
        let x = node.input(0)?;
        let range = attrs::Shape::read(node).ok()?;
        let rank = model.rank(x)?;
        let from = usize::try_from(range.start).ok()?;
        let to = range.end.map_or(Some(rank), |e| usize::try_from(e).ok())?;
        return Some(Part::Sizes(x, from, to));
    }
    if scalar && takes_out(model, node) {
        let part = plain(model, node.input(0)?, false)?;
        return Some(part).filter(|p| matches!(p, Part::Sizes(_, from, to) if from + 1 == *to));
    }
    let whole = &model[model.producer(node.input(0).filter(|_| node.is("Gather"))?)?];
    let x = whole.input(0).filter(|_| whole.is("Shape") && whole.attributes.is_empty())?;
    let index = model[node.input(1)?].constant()?;
    let axes = index.to_vec::<i64>()?;
    let from = usize::try_from(*axes.first()?).ok()?;
    let run = axes.iter().enumerate().all(|(i, &a)| a == (from + i) as i64);
    (run && (index.rank() == 0) == scalar).then_some(Part::Sizes(x, from, from + axes.len()))
}

/// Whether a node makes a number of a vector. A `Reshape` of one that nothing else uses is not
/// shorter than a `Gather`, and the `Shape` that a `Gather` takes is of use for other sizes.
fn takes_out(model: &Model, node: &Node) -> bool {
    let is_vector = |u: Use| !matches!(u, Use::Input(user, 0) if model[user].is("Reshape"));
    let shared = |vector: Value| model[vector].uses().any(is_vector);
    node.is("Squeeze") || node.is("Reshape") && node.input(0).is_some_and(shared)
}

fn emit(model: &mut Model, at: InsertPoint, part: &Part, opset: u32) -> Value {
    match part {
        Part::Numbers(numbers) => model.add_constant(Tensor::vector(numbers)),
        Part::Sizes(x, from, to) => {
            let (x, from, to) = (*x, *from, *to);
            let whole = from == 0 && model.rank(x) == Some(to);
            if !whole && opset < SHAPE_OF_SOME {
                return gathered(model, at, x, (from as i64..to as i64).collect());
            }
            let mut attributes = Attributes::new();
            if from > 0 {
                attributes.push(("start".into(), (from as i64).into()));
            }
            if model.rank(x) != Some(to) {
                attributes.push(("end".into(), (to as i64).into()));
            }
            node(model, at, "Shape", &[Some(x)], (attributes, Some(to - from)))
        }
    }
}

fn shape(model: &mut Model, at: InsertPoint, x: Value) -> Value {
    let rank = model.rank(x);
    node(model, at, "Shape", &[Some(x)], (Attributes::new(), rank))
}

fn gathered(model: &mut Model, at: InsertPoint, x: Value, axes: Vec<i64>) -> Value {
    let whole = shape(model, at, x);
    let (length, axes) = (axes.len(), model.add_constant(Tensor::vector(&axes)));
    node(model, at, "Gather", &[Some(whole), Some(axes)], (Attributes::new(), Some(length)))
}

/// One size, as a scalar.
fn element(model: &mut Model, at: InsertPoint, x: Value, axis: usize) -> Value {
    let whole = shape(model, at, x);
    let index = model.add_constant(Tensor::scalar(axis as i64));
    node(model, at, "Gather", &[Some(whole), Some(index)], (Attributes::new(), None))
}

/// A node whose output is a vector of int64 of that length, or a scalar.
fn node(
    model: &mut Model,
    at: InsertPoint,
    op: &'static str,
    inputs: &[Option<Value>],
    (attributes, length): (Attributes, Option<usize>),
) -> Value {
    let id = model.add_node(at, op, inputs, attributes, 1);
    let output = model[id].outputs()[0];
    let sizes: Vec<Expr> = length.iter().map(|&l| Expr::int(l as i64)).collect();
    model[output].ty = Some(Type::tensor(DType::I64, sizes));
    output
}
