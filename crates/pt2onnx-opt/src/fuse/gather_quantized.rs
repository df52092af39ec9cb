//! Rows of a quantized table are gathered before they are dequantized.

use super::{Measure, Pass, Run};
use crate::{Changed, GraphMut, Options, pool, rewrite::substitute};
use pt2onnx_ir::{Attributes, InsertPoint, Model, NodeId, TensorType, Type, Value, attrs};
use pt2onnx_symbolic::axis;
use pt2onnx_tensor::DType;

pub(crate) static GATHER_QUANTIZED: Pass = Pass {
    name: "gather-quantized",
    since: 10,
    description: "Moves Gather of a quantized table before its DequantizeLinear, which is then \
                  computed for the rows gathered instead of the table at each call.",
    precondition: "The table is a constant of integers of 8 or 16 bits, and has more elements than \
                   what is gathered, or at least 65536. Scales are one number, or those of another \
                   axis.",
    lowers: Measure::Fixed,
    run: Run::Graph(run),
    ..Pass::FUSION
};

/// Tables of this many elements are taken for larger than what a call gathers of them.
const LARGE: usize = 1 << 16;

fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    let nodes = graph.nodes();
    let model = &*graph.model;
    let found = pool::find(&nodes, |id| dequantized(model, id));
    let mut walk = graph.walk_over(found);
    let mut changed = false;
    while let Some((at, found)) = walk.next(graph.model) {
        changed |= swap(graph.model, nodes[at], &found).is_some();
    }
    changed
}

/// The `DequantizeLinear` of a table that a `Gather` takes rows of.
struct Dequantized {
    node: NodeId,
    table: Value,
    dtype: DType,
    attributes: Attributes,
}

fn dequantized(model: &Model, id: NodeId) -> Option<Dequantized> {
    let gather = Some(&model[id]).filter(|n| n.is("Gather") && n.domain.is_empty())?;
    let node = model.producer(gather.input(0)?)?;
    let given = Some(&model[node]).filter(|n| n.is("DequantizeLinear") && n.domain.is_empty())?;
    let table = given.input(0)?;
    let tensor = model[table].constant()?;
    let (dtype, rank) = (tensor.dtype(), tensor.rank());
    let gathered = axis(attrs::Gather::read(gather).ok()?.axis, rank)?;
    let scales = model.rank(given.input(1)?)?;
    let blocks = given
        .attribute("block_size")
        .is_some_and(|_| attrs::DequantizeLinear::read(given).map_or(true, |d| d.block_size != 0));
    let mut attributes = given.attributes.clone();
    if scales > 0 {
        let own = axis(attrs::DequantizeLinear::read(given).ok()?.axis, rank)?;
        let indices = model.rank(gather.input(1)?)?;
        let moved = if own > gathered { own + indices - 1 } else { own };
        (own != gathered && scales == 1).then_some(())?;
        attributes.retain(|(name, _)| name != "axis");
        attributes.push(("axis".into(), (moved as i64).into()));
    }
    let result = model.shape(*gather.outputs().first()?);
    let counts = result.and_then(|s| s.iter().map(|d| d.as_int()).product::<Option<i64>>());
    let fewer = match counts {
        Some(count) => count < i64::try_from(tensor.numel()).ok()?,
        None => tensor.numel() >= LARGE,
    };
    let integers = matches!(dtype, DType::I8 | DType::U8 | DType::I16 | DType::U16);
    (integers && fewer && !blocks).then_some(Dequantized { node, table, dtype, attributes })
}

fn swap(model: &mut Model, gather: NodeId, found: &Dequantized) -> Option<()> {
    let old = *model[gather].outputs().first()?;
    let at = InsertPoint::Before(gather);
    let add = |model: &mut Model, op, inputs: &[Option<Value>], attributes, ty: Option<Type>| {
        let node = model.add_node(at, op, inputs, attributes, 1);
        model.merge_origins(node, gather);
        let output = model[node].outputs()[0];
        model[output].ty = ty;
        output
    };
    let ty = model[old].ty.clone();
    let shape = model.shape(old).cloned();
    let rows = Some(Type::Tensor(TensorType { dtype: found.dtype, shape }));
    let (indices, attributes) = (model[gather].input(1), model[gather].attributes.clone());
    let rows = add(model, "Gather", &[Some(found.table), indices], attributes, rows);
    let mut inputs = model[found.node].inputs().to_vec();
    *inputs.first_mut()? = Some(rows);
    let new = add(model, "DequantizeLinear", &inputs, found.attributes.clone(), ty);
    substitute(model, old, new);
    model.erase(gather);
    Some(())
}
