//! Products of several dimensions whose results are only reshaped: one `Reshape` before them makes
//! each a `Gemm`, with its bias.

use super::{Measure, Pass, Phase, Run};
use crate::{
    Changed, GraphMut, Options, Walk, grouped::grouped, ort_reserved::is_feature_map, pool,
};
use pt2onnx_ir::{Attributes, InsertPoint, Model, NodeId, TensorType, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

pub(crate) static PROJECTIONS: Pass = Pass {
    name: "projections",
    description: "Replaces MatMul and Add of more than two dimensions whose results are only \
                  reshaped by Gemm, after one Reshape of the tensor that they share.",
    precondition: "The tensor is the result of a Transpose or Reshape, as feature maps are before \
                   attention. The nodes become fewer.",
    lowers: Measure::Operators(&["MatMul"]),
    phase: Phase::Late,
    run: Run::Graph(run),
    ..Pass::FUSION
};

/// `Reshape(Add(MatMul(x, weight), bias))`.
struct Projection {
    product: NodeId,
    sum: NodeId,
    reshape: NodeId,
    inputs: [Value; 2],
    /// The sizes after the `Reshape`; at most one is -1.
    sizes: Vec<i64>,
}

/// `x` must be transposed or reshaped itself ([`is_feature_map`]).
fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    let nodes = graph.nodes();
    let model = &mut *graph.model;
    let found = pool::find(&nodes, |id| {
        let (x, projection) = projection(model, id)?;
        Some(((x, model[id].region()), projection))
    });
    let groups = grouped(found.into_iter().map(|(_, projection)| projection));
    let mut walk = Walk::new(groups.into_iter().collect(), graph.budget);
    let mut changed = false;
    while let Some(((x, _), group)) = walk.next(model) {
        changed |= flatten(model, x, &group).is_some();
    }
    changed
}

/// The projection that begins with a node, and its `x`.
fn projection(model: &Model, id: NodeId) -> Option<(Value, Projection)> {
    let product = Some(&model[id]).filter(|node| node.is("MatMul"))?;
    let [x, weight] = [product.input(0)?, product.input(1)?];
    let (dtype, shape) = model.tensor_type(x)?;
    let float = matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    let width = model.shape(weight).filter(|w| w.len() == 2)?.get(1)?.as_int()?;
    if !float || shape.len() < 3 || shape.last()?.as_int()? == 0 {
        return None;
    }
    let (result, sum) = only_user(model, id, "Add")?;
    let bias = *model[sum].inputs().iter().flatten().find(|&&v| v != result)?;
    let fits = matches!(model.shape(bias)?.as_slice(), [n] if n.as_int() == Some(width));
    let (_, reshape) = only_user(model, sum, "Reshape")?;
    let after = model.shape(*model[reshape].outputs().first()?)?;
    let sizes: Vec<i64> = after.iter().map(|d| d.as_int().unwrap_or(-1)).collect();
    let constant = model[model[reshape].input(1)?].constant().is_some();
    let unknown = sizes.iter().filter(|&&s| s == -1).count();
    (fits && constant && unknown <= 1 && !sizes.contains(&0))
        .then_some((x, Projection { product: id, sum, reshape, inputs: [weight, bias], sizes }))
}

/// The result of a node, and its only user, if that is such an operator and has it as data.
fn only_user(model: &Model, id: NodeId, op: &str) -> Option<(Value, NodeId)> {
    let [result] = *model[id].outputs() else { return None };
    let (user, at) = model[result].only_use()?;
    let same = model[user].region() == model[id].region() && model[user].domain.is_empty();
    (same && model[user].is(op) && (at == 0 || op == "Add")).then_some((result, user))
}

/// Makes the products of a group matrix products, if that is fewer nodes.
fn flatten(model: &mut Model, x: Value, group: &[Projection]) -> Option<()> {
    let first = group.first()?.product;
    // A Reshape that only the group uses goes into the new one.
    let absorbed = model[model.producer(x)?].is("Reshape") && model[x].uses().len() == group.len();
    if !is_feature_map(model, x) || group.len() < 2 && !absorbed {
        return None;
    }
    let (dtype, shape) = model.tensor_type(x)?;
    let depth = shape.last()?.as_int()?;
    let rows = Expr::product(shape.get(..shape.len() - 1)?.to_vec());
    let matrix = |width: i64| {
        let shape = Some(vec![rows.clone(), Expr::int(width)]);
        Some(Type::Tensor(TensorType { dtype, shape }))
    };
    let sizes = model.add_constant(Tensor::vector(&[-1, depth]));
    let add = |model: &mut Model, before: NodeId, op, inputs: &[Value], width: i64| {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        let at = InsertPoint::Before(before);
        let node = model.add_node(at, op, &inputs, Attributes::new(), 1);
        model[node].origins = model[before].origins.clone();
        let output = model[node].outputs()[0];
        model[output].ty = matrix(width);
        (node, output)
    };
    let (_, rows) = add(model, first, "Reshape", &[x, sizes], depth);
    for projection in group {
        let [weight, bias] = projection.inputs;
        let width = model.shape(weight)?.last()?.as_int()?;
        let (gemm, result) = add(model, projection.sum, "Gemm", &[rows, weight, bias], width);
        model.merge_origins(gemm, projection.product);
        let sizes = model.add_constant(Tensor::vector(&projection.sizes));
        model.set_inputs(projection.reshape, &[Some(result), Some(sizes)]);
    }
    Some(())
}
