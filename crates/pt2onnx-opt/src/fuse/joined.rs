//! Linear layers of one input become one layer, whose weight has the columns of all, and a `Split` of its result.

use super::left::is_attention;
use crate::{
    facts,
    graph::{Changed, GraphMut},
    grouped::grouped,
    opsets::SIZES_AS_INPUTS,
    pass::Options,
};
use pt2onnx_ir::{
    Attributes, InsertPoint, Model, NodeId, RegionId, TensorType, Type, Use, Value, attrs,
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{Compute, DType, Tensor};
use std::{io, sync::Arc};

/// Weights of fewer bytes are computed at once.
const SMALL: usize = 64 << 10;

/// What layers that are joined have in common.
#[derive(PartialEq, Eq, Hash)]
struct Kind {
    x: Value,
    region: RegionId,
    op: &'static str,
    dtype: DType,
    rows: usize,
    /// Whether the columns of the product are rows of the weight.
    transposed: bool,
    /// Whether it is a `Gemm` with a bias.
    bias: bool,
}

struct Layer {
    node: NodeId,
    weight: Value,
    bias: Option<Value>,
    /// The `Add` of a bias.
    sum: Option<NodeId>,
    width: usize,
}

pub(crate) fn run(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    if !options.join_weights || graph.opset < SIZES_AS_INPUTS {
        return false;
    }
    let nodes = graph.nodes();
    let model = &mut *graph.model;
    let layers = nodes.into_iter().filter_map(|id| layer(model, id));
    let mut changed = false;
    for (kind, mut group) in grouped(layers) {
        // Biases are joined if all layers have one; otherwise, their sums stay.
        let sums = group.iter().all(|layer| layer.sum.is_some());
        if !kind.bias && !sums {
            group.iter_mut().for_each(|layer| (layer.bias, layer.sum) = (None, None));
        }
        let (before, after) = match sums {
            true => (2 * group.len(), 3),
            false => (group.len(), 2),
        };
        let biased: Option<Vec<NodeId>> = group.iter().map(|layer| layer.sum).collect();
        let left = biased.is_some_and(|sums| is_attention(model, &sums));
        let worth = before > after && !left;
        changed |= worth && join(model, &kind, &group).is_some();
    }
    changed
}

/// A layer whose weight nothing else uses.
fn layer(model: &Model, id: NodeId) -> Option<(Kind, Layer)> {
    let node = &model[id];
    let (x, weight, bias) = (node.input(0)?, node.input(1)?, node.input(2));
    let (op, transposed) = match node.op() {
        _ if !node.domain.is_empty() || model.is_unused(id) => return None,
        "MatMul" => ("MatMul", false),
        "Gemm" => {
            let given = attrs::Gemm::read(node).ok()?;
            let plain = given.alpha == 1.0 && given.beta == 1.0 && !given.trans_a;
            ("Gemm", plain.then_some(given.trans_b)?)
        }
        _ => return None,
    };
    let tensor = model[weight].constant().filter(|_| model[weight].uses().len() == 1)?;
    let (rows, width) = match (tensor.shape(), transposed) {
        (&[rows, width], false) | (&[width, rows], true) => (rows, width),
        _ => return None,
    };
    let fits = |bias: Value| model[bias].constant().is_some_and(|t| t.shape() == [width]);
    let float = matches!(tensor.dtype(), DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    if !float || rows == 0 || width == 0 || !bias.is_none_or(fits) {
        return None;
    }
    let (region, dtype) = (node.region(), tensor.dtype());
    let kind = Kind { x, region, op, dtype, rows, transposed, bias: bias.is_some() };
    let (bias, sum) = match (op, added(model, id, fits)) {
        ("MatMul", Some((bias, sum))) => (Some(bias), Some(sum)),
        _ => (bias, None),
    };
    Some((kind, Layer { node: id, weight, bias, sum, width }))
}

/// The bias that is added to a product that nothing else uses, and the `Add`.
fn added(model: &Model, id: NodeId, fits: impl Fn(Value) -> bool) -> Option<(Value, NodeId)> {
    let product = *model[id].outputs().first()?;
    let [Use::Input(sum, at)] = model[product].uses().collect::<Vec<_>>()[..] else {
        return None;
    };
    let node = &model[sum];
    let same = node.is("Add") && node.domain.is_empty() && node.region() == model[id].region();
    let other = usize::from(at == 0);
    let bias = same.then(|| node.input(other)).flatten().filter(|&bias| fits(bias))?;
    Some((bias, sum))
}

fn join(model: &mut Model, kind: &Kind, group: &[Layer]) -> Option<()> {
    let first = group.first()?.node;
    let constants = |of: fn(&Layer) -> Option<Value>| -> Option<Vec<Tensor>> {
        group.iter().map(|layer| model[of(layer)?].constant().cloned()).collect()
    };
    let total = group.iter().map(|layer| layer.width).sum::<usize>();
    let weights = constants(|layer| Some(layer.weight))?;
    let weight = match kind.transposed {
        true => joined(weights, 1, [total, kind.rows])?,
        false => joined(weights, kind.rows, [kind.rows, total])?,
    };
    let Layer { bias, sum, .. } = group.first()?;
    let bias = match bias {
        Some(_) => Some(joined(constants(|layer| layer.bias)?, 1, [total])?),
        None => None,
    };
    let mut shape = facts::shape(model, *model[first].outputs().first()?).cloned();
    let mut typed = |model: &mut Model, value: Value, width: usize| {
        if let Some(last) = shape.as_mut().and_then(|shape| shape.last_mut()) {
            *last = Expr::int(width as i64);
        }
        let ty = TensorType { dtype: kind.dtype, shape: shape.clone() };
        model[value].ty = Some(Type::Tensor(ty));
    };
    let at = InsertPoint::Before(first);
    let mut inputs = vec![Some(kind.x), Some(model.add_constant(weight))];
    let bias = bias.map(|bias| model.add_constant(bias));
    inputs.extend(bias.filter(|_| kind.bias).map(Some));
    let product = model.add_node(at, kind.op, &inputs, model[first].attributes.clone(), 1);
    let mut made = vec![product];
    let mut result = model[product].outputs()[0];
    if sum.is_some() {
        typed(model, result, total);
        made.push(model.add_node(at, "Add", &[Some(result), bias], Attributes::new(), 1));
        result = model[*made.last()?].outputs()[0];
    }
    typed(model, result, total);
    let sizes: Vec<i64> = group.iter().map(|layer| layer.width as i64).collect();
    let sizes = model.add_constant(Tensor::vector(&sizes));
    let axis = Attributes::from_iter([("axis".into(), (-1).into())]);
    let split = model.add_node(at, "Split", &[Some(result), Some(sizes)], axis, group.len());
    made.push(split);
    for (i, layer) in group.iter().enumerate() {
        let part = model[split].outputs()[i];
        typed(model, part, layer.width);
        let last = layer.sum.unwrap_or(layer.node);
        for &node in &made {
            model.merge_origins(node, layer.node);
            model.merge_origins(node, last);
        }
        let old = model[last].outputs()[0];
        crate::rewrite::substitute(model, old, part);
        for node in layer.sum.into_iter().chain([layer.node]) {
            model.erase(node);
        }
    }
    Some(())
}

/// A tensor each row of which has the rows of all parts. `None` if a part has no values.
fn joined(parts: Vec<Tensor>, rows: usize, shape: impl Into<Vec<usize>>) -> Option<Tensor> {
    let dtype = parts.first()?.dtype();
    let rows = Rows { rows, element: dtype.bits() / 8, parts };
    let whole = |part: &Tensor| rows.width(part).is_multiple_of(rows.unit());
    let has_values = |part: &Tensor| part.compute().is_some() || part.storage().is_some();
    if !rows.parts.iter().all(|part| has_values(part) && whole(part)) {
        return None;
    }
    let tensor = Tensor::computed(dtype, shape, Arc::new(rows)).ok()?;
    match tensor.nbytes() < SMALL {
        true => tensor.evaluated().ok(),
        false => Some(tensor),
    }
}

/// The elements of such a tensor.
#[derive(Debug)]
struct Rows {
    parts: Vec<Tensor>,
    rows: usize,
    /// The bytes of an element.
    element: usize,
}

impl Rows {
    /// The bytes of a row of a part.
    fn width(&self, part: &Tensor) -> usize {
        part.nbytes() / self.rows
    }
}

impl Compute for Rows {
    fn operands(&self) -> Vec<Tensor> {
        self.parts.clone()
    }

    fn prepare(&self) -> io::Result<()> {
        self.parts.iter().filter_map(Tensor::compute).try_for_each(|compute| compute.prepare())
    }

    fn unit(&self) -> usize {
        let units = self.parts.iter().filter_map(Tensor::compute).map(|compute| compute.unit());
        units.fold(self.element, usize::max)
    }

    fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        let whole: usize = self.parts.iter().map(|part| self.width(part)).sum();
        let (mut row, mut skipped, mut rest) = (start / whole, start % whole, out);
        while !rest.is_empty() {
            for part in &self.parts {
                let width = self.width(part);
                let from = skipped.min(width);
                let bytes = (width - from).min(rest.len());
                let (run, after) = std::mem::take(&mut rest).split_at_mut(bytes);
                skipped -= from;
                part.read(row * width + from, run)?;
                rest = after;
            }
            row += 1;
        }
        Ok(())
    }
}
