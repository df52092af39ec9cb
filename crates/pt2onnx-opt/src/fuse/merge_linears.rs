//! Linear layers of one input become one layer, whose weight has the columns of all, and a `Split`
//! of its result.

use super::{Pass, Phase, Run, concat_columns::Columns};
use crate::{
    Changed, GraphMut, Options, Target, Walk,
    grouped::grouped,
    opsets::SIZES_AS_INPUTS,
    ort_reserved::{is_attention, is_quantized},
};
use indexmap::IndexSet;
use pt2onnx_ir::{
    Attributes, InsertPoint, Model, NodeId, OriginId, RegionId, TensorType, Type, Value, attrs,
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

pub(crate) static MERGE_LINEARS: Pass = Pass {
    name: "merge-linears",
    description: "Replaces several MatMul or Gemm of one tensor by one with the columns of all, \
                  and Split. Only in models of other producers.",
    precondition: "The weights are constants that nothing else uses, or are computed from such, \
                   column by column, as those that are restored from integers. The nodes become \
                   fewer. In float16, layers whose biases stand behind a Reshape stay apart: \
                   ONNX Runtime rounds what it splits. Two of the same width stay apart for the \
                   targets `ort` and `ort-genai`. Queries, keys and values of a masked attention \
                   stay apart if they have biases: ONNX Runtime replaces the whole attention.",
    phase: Phase::Late,
    run: Run::Graph(run),
    ..Pass::FUSION
};

/// The targets whose runtime takes longer to copy halves than for a second product.
pub(super) const SLOW_HALVES: &[Target] = Target::CONTRIB;

/// The key of layers that are joined.
#[derive(PartialEq, Eq, Hash)]
struct Kind {
    x: Value,
    region: RegionId,
    op: &'static str,
    dtype: DType,
    rows: Expr,
    /// Whether the columns of the product are rows of the weight.
    transposed: bool,
    /// Whether it is a `Gemm` with a bias.
    bias: bool,
    /// The number of operators that make the weight of constants.
    steps: usize,
}

struct Layer {
    node: NodeId,
    weight: Columns,
    bias: Option<Columns>,
    /// The `Add` of a bias.
    sum: Option<NodeId>,
    width: usize,
}

fn run(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    if !options.join_weights || graph.opset < SIZES_AS_INPUTS {
        return false;
    }
    let nodes = graph.nodes();
    let model = &mut *graph.model;
    let layers = nodes.into_iter().filter_map(|id| layer(model, id));
    let mut walk = Walk::new(grouped(layers).into_iter().collect(), graph.budget);
    let mut changed = false;
    while let Some((kind, mut group)) = walk.next(model) {
        let Some(last) = group.pop() else { continue };
        group.retain(|layer| layer.weight.are_like(&last.weight, model));
        group.push(last);
        // Biases are joined if all layers have one; otherwise, their sums stay.
        let sums = group.iter().all(|layer| layer.sum.is_some());
        if !kind.bias && !sums {
            group.iter_mut().for_each(|layer| (layer.bias, layer.sum) = (None, None));
        }
        let each = 1 + kind.steps + usize::from(sums);
        let biased: Option<Vec<NodeId>> = group.iter().map(|layer| layer.sum).collect();
        let half = options.to_float16 || kind.dtype == DType::F16;
        let left = biased.is_some_and(|sums| is_attention(model, &sums))
            || half && group.iter().any(|layer| is_biased_later(model, layer.node));
        let halves = matches!(&group[..], [one, other] if one.width == other.width)
            && SLOW_HALVES.contains(&options.target);
        let worth = each * group.len() > each + 1 && !left && !halves;
        changed |= worth && split(model, &kind, &group).is_some();
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
    let (dtype, sizes) = model.tensor_type(weight)?;
    let (rows, width) = match (&sizes[..], transposed) {
        ([rows, width], false) | ([width, rows], true) => {
            (rows, usize::try_from(width.as_int()?).ok()?)
        }
        _ => return None,
    };
    let fits = |bias: Value| {
        let bias = model[bias].constant().filter(|t| t.shape() == [width]);
        bias.cloned().map(Columns::Own)
    };
    let float = matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    if !float || rows.as_int() == Some(0) || width == 0 {
        return None;
    }
    let weight = if transposed {
        Columns::rows_of(model, weight)?
    } else {
        Columns::of(model, weight, width)?
    };
    let (bias, sum) = match bias {
        Some(bias) => (Some(fits(bias)?), None),
        None if op == "MatMul" => added(model, id, fits).unzip(),
        None => (None, None),
    };
    let (region, rows, steps) = (node.region(), rows.clone(), weight.steps());
    if steps > 0 && is_quantized(model, x) {
        return None;
    }
    let inner = bias.is_some() && sum.is_none();
    let kind = Kind { x, region, op, dtype, rows, transposed, bias: inner, steps };
    Some((kind, Layer { node: id, weight, bias, sum, width }))
}

/// The bias that is added to a product that nothing else uses, and the `Add`.
fn added(
    model: &Model,
    id: NodeId,
    fits: impl Fn(Value) -> Option<Columns>,
) -> Option<(Columns, NodeId)> {
    let product = *model[id].outputs().first()?;
    let (sum, at) = model[product].only_use()?;
    let node = &model[sum];
    let same = node.is("Add") && node.domain.is_empty() && node.region() == model[id].region();
    let other = usize::from(at == 0);
    let bias = same.then(|| node.input(other)).flatten().and_then(fits)?;
    Some((bias, sum))
}

/// Whether something is added to the reshaped product, as in TensorFlow's layers of more than two
/// dimensions.
fn is_biased_later(model: &Model, id: NodeId) -> bool {
    let only = |id: NodeId| Some(model[*model[id].outputs().first()?].only_use()?.0);
    let reshaped = only(id).filter(|user| model[*user].is("Reshape"));
    reshaped.and_then(only).is_some_and(|user| model[user].is("Add"))
}

/// One layer of those whose results these are, with the columns of all in this order: its result.
/// The layers must be alike, and the results have no other users than `user`.
pub(super) fn side_by_side(model: &mut Model, results: &[Value], user: NodeId) -> Option<Value> {
    let alone = |&v: &Value| model[v].only_use().is_some_and(|(other, _)| other == user);
    let (kind, group) = results.iter().all(alone).then(|| alike(model, results))??;
    Some(join(model, &kind, &group)?.result)
}

/// Makes one layer, whose result is split, of those with these results, if they are alike.
pub(super) fn beside_split(model: &mut Model, results: &[Value]) -> Option<()> {
    let (kind, group) = alike(model, results)?;
    split(model, &kind, &group)
}

/// The layers whose results these are, if they can be joined.
fn alike(model: &Model, results: &[Value]) -> Option<(Kind, Vec<Layer>)> {
    let found = results.iter().map(|&result| {
        let last = model.producer(result)?;
        let is_layer = |id: &NodeId| matches!(model[*id].op(), "MatMul" | "Gemm");
        let mut operands = model[last].inputs().iter().flatten().filter_map(|&v| model.producer(v));
        let id = Some(last).filter(is_layer).or_else(|| operands.find(is_layer))?;
        layer(model, id).filter(|(_, layer)| layer.sum.unwrap_or(id) == last)
    });
    let (mut kinds, group): (Vec<Kind>, Vec<Layer>) =
        found.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let (kind, first) = (kinds.pop()?, group.first()?);
    let same = |layer: &Layer| {
        layer.weight.are_like(&first.weight, model) && layer.sum.is_some() == first.sum.is_some()
    };
    let fits = kinds.iter().all(|other| *other == kind) && group.iter().all(same);
    fits.then_some((kind, group))
}

/// A layer with the columns of several.
struct Joined {
    result: Value,
    nodes: Vec<NodeId>,
    origins: IndexSet<OriginId>,
}

fn join(model: &mut Model, kind: &Kind, group: &[Layer]) -> Option<Joined> {
    let first = group.first()?;
    let weights: Vec<&Columns> = group.iter().map(|layer| &layer.weight).collect();
    let biases: Vec<&Columns> = group.iter().filter_map(|layer| layer.bias.as_ref()).collect();
    let (weight, bias) = (Columns::side_by_side(&weights)?, Columns::side_by_side(&biases));
    if bias.is_none() && !biases.is_empty() {
        return None;
    }
    let width = group.iter().map(|layer| layer.width).sum();
    let like = Layer { node: first.node, weight, bias, sum: first.sum, width };
    let mut joined = made(model, kind, like);
    let all = group.iter().flat_map(|layer| [Some(layer.node), layer.sum]).flatten();
    joined.origins = all.flat_map(|node| model[node].origins.iter().copied()).collect();
    joined.mark(model);
    Some(joined)
}

/// A layer with this weight and bias in front of the node of such a layer, whose origins it has.
fn made(model: &mut Model, kind: &Kind, like: Layer) -> Joined {
    let first = like.node;
    let at = InsertPoint::Before(first);
    let mut inputs = vec![Some(kind.x), Some(like.weight.insert(model, first))];
    let bias = like.bias.map(|bias| bias.insert(model, first));
    inputs.extend(bias.filter(|_| kind.bias).map(Some));
    let product = model.add_node(at, kind.op, &inputs, model[first].attributes.clone(), 1);
    let (mut nodes, mut result) = (vec![product], model[product].outputs()[0]);
    let ty = widened(model, kind, first, like.width);
    model[result].ty = ty.clone();
    if like.sum.is_some() {
        let sum = model.add_node(at, "Add", &[Some(result), bias], Attributes::new(), 1);
        result = model[sum].outputs()[0];
        model[result].ty = ty;
        nodes.push(sum);
    }
    let own = [Some(first), like.sum].into_iter().flatten();
    let origins = own.flat_map(|node| model[node].origins.iter().copied()).collect();
    let made = Joined { result, nodes, origins };
    made.mark(model);
    made
}

/// Replaces a layer whose result `Split` halves, and nothing else uses, by two.
pub(super) fn halve(model: &mut Model, id: NodeId) -> Option<()> {
    let (kind, own) = layer(model, id)?;
    let last = own.sum.unwrap_or(id);
    let (user, _) = model[*model[last].outputs().first()?].only_use()?;
    let split = Some(&model[user]).filter(|n| n.is("Split") && n.domain.is_empty())?;
    let axis = attrs::Split::read(split).ok()?.axis;
    let rank = model.shape(split.input(0)?)?.len() as i64;
    let parts = <[Value; 2]>::try_from(split.outputs()).ok()?;
    let width = own.width / 2;
    let is_half =
        |&v: &Value| model.shape(v).and_then(|shape| shape.last()?.as_int()) == Some(width as i64);
    let fits = (axis == -1 || axis + 1 == rank) && parts.iter().all(is_half);
    let halves = fits.then(|| [0, width].map(|from| own.part(from, width)))?;
    let [Some(first), Some(second)] = halves else { return None };
    for (part, half) in parts.into_iter().zip([first, second]) {
        let made = made(model, &kind, half);
        crate::rewrite::substitute(model, part, made.result);
    }
    for node in [Some(user), own.sum, Some(id)].into_iter().flatten() {
        model.erase(node);
    }
    Some(())
}

impl Layer {
    /// The layer of some of the columns.
    fn part(&self, from: usize, width: usize) -> Option<Self> {
        let bias = match &self.bias {
            Some(bias) => Some(bias.part(from, width)?),
            None => None,
        };
        let weight = self.weight.part(from, width)?;
        Some(Self { node: self.node, weight, bias, sum: self.sum, width })
    }
}

impl Joined {
    /// Gives the nodes the origins of the layers.
    fn mark(&self, model: &mut Model) {
        for &node in &self.nodes {
            model[node].origins = self.origins.iter().copied().collect();
        }
    }
}

/// The type of a layer's product with this many columns.
fn widened(model: &Model, kind: &Kind, layer: NodeId, width: usize) -> Option<Type> {
    let mut shape = model.shape(*model[layer].outputs().first()?).cloned();
    if let Some(last) = shape.as_mut().and_then(|shape| shape.last_mut()) {
        *last = Expr::int(width as i64);
    }
    Some(Type::Tensor(TensorType { dtype: kind.dtype, shape }))
}

/// Replaces layers by one, and a `Split` of its result.
fn split(model: &mut Model, kind: &Kind, group: &[Layer]) -> Option<()> {
    let mut joined = join(model, kind, group)?;
    let sizes: Vec<i64> = group.iter().map(|layer| layer.width as i64).collect();
    let inputs = [Some(joined.result), Some(model.add_constant(Tensor::vector(&sizes)))];
    let axis = Attributes::from_iter([("axis".into(), (-1).into())]);
    let first = group.first()?.node;
    let split = model.add_node(InsertPoint::Before(first), "Split", &inputs, axis, group.len());
    joined.nodes.push(split);
    joined.mark(model);
    for (i, layer) in group.iter().enumerate() {
        let part = model[split].outputs()[i];
        model[part].ty = widened(model, kind, first, layer.width);
    }
    for (i, layer) in group.iter().enumerate() {
        let part = model[split].outputs()[i];
        let old = model[layer.sum.unwrap_or(layer.node)].outputs()[0];
        crate::rewrite::substitute(model, old, part);
        for node in layer.sum.into_iter().chain([layer.node]) {
            model.erase(node);
        }
    }
    Some(())
}
