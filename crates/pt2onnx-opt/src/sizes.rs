//! Sizes that a model computes at run time, as expressions over the sizes of its inputs.

use crate::{eval, facts::known, graph::GraphMut};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, attrs, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

/// The longest vector that is followed; vectors of sizes are short.
const LONGEST: usize = 64;

/// The elements of integer vectors and scalars that nodes compute.
pub(crate) type Computed = FxHashMap<Value, Vec<Expr>>;

/// The elements of a node's output, an int64 vector or scalar. The node has the canonical form.
pub(crate) fn contents(cx: &Builder, id: NodeId) -> Option<Vec<Expr>> {
    let node = cx.model()[id].clone();
    let [output] = node.outputs() else {
        return None;
    };
    let rank = |v: Value| Some(cx.known_shape(v)?.len());
    if cx.known_dtype(*output)? != DType::I64 || rank(*output)? > 1 {
        return None;
    }
    let input = |i: usize| cx.contents(node.input(i)?);
    let numbers = |i: usize| input(i)?.iter().map(Expr::as_int).collect::<Option<Vec<i64>>>();
    let elements = match node.op() {
        "Shape" => {
            let dims = cx.known_shape(node.input(0)?)?;
            let range = attrs::Shape::read(&node).ok()?;
            eval::shape_range(&dims, range.start, range.end).to_vec()
        }
        "Size" => vec![Expr::product(cx.known_shape(node.input(0)?)?)],
        "Identity" | "Squeeze" | "Unsqueeze" | "Reshape" | "Flatten" => input(0)?,
        "Cast" if attrs::Cast::to(&node) == Ok(schema::data_type(DType::I64)) => {
            let same = cx.known_dtype(node.input(0)?)? == DType::I64;
            input(0).filter(|_| same)?
        }
        "Gather" => {
            let data = input(0).filter(|_| node.input(0).and_then(rank) == Some(1))?;
            let pick = |i: &i64| data.get(eval::axis(*i, data.len())?).cloned();
            numbers(1)?.iter().map(pick).collect::<Option<_>>()?
        }
        "Slice" => slice(&node, input(0)?, numbers)?,
        "Concat" => {
            let parts = (0..node.inputs().len()).map(input);
            parts.collect::<Option<Vec<_>>>()?.concat()
        }
        "Add" => elementwise(input(0)?, input(1)?, |a, b| a + b)?,
        "Sub" => elementwise(input(0)?, input(1)?, |a, b| a - b)?,
        "Mul" => elementwise(input(0)?, input(1)?, |a, b| a * b)?,
        "ReduceProd" if node.input(1).is_none() => vec![Expr::product(input(0)?)],
        _ => return None,
    };
    (elements.len() <= LONGEST).then_some(elements)
}

/// A slice with step 1 along the only axis.
fn slice(
    node: &Node,
    data: Vec<Expr>,
    numbers: impl Fn(usize) -> Option<Vec<i64>>,
) -> Option<Vec<Expr>> {
    let one = |i: usize| match numbers(i)?.as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    if node.input(4).is_some() && one(4)? != 1 {
        return None;
    }
    Some(eval::shape_range(&data, one(1)?, Some(one(2)?)).to_vec())
}

fn elementwise(a: Vec<Expr>, b: Vec<Expr>, f: fn(&Expr, &Expr) -> Expr) -> Option<Vec<Expr>> {
    let length = match (a.len(), b.len()) {
        (a, b) if a == b || b == 1 => a,
        (1, b) => b,
        _ => return None,
    };
    let at = |v: &[Expr], i: usize| v.get(if v.len() == 1 { 0 } else { i }).cloned();
    (0..length).map(|i| Some(f(&at(&a, i)?, &at(&b, i)?))).collect()
}

/// Replaces computed sizes by known ones. Numbers become constants. In the shape of a `Reshape`, sizes of the operand become 0,
/// and one other unknown size becomes -1.
pub(crate) fn spell_out(graph: &mut GraphMut<'_>, computed: &Computed) {
    let nodes = graph.nodes();
    let model = &mut *graph.model;
    for id in nodes {
        if model[id].is("Reshape") {
            reshape(model, id, computed);
        }
        let [output] = *model[id].outputs() else {
            continue;
        };
        let elements = computed.get(&output).map(|all| all.iter().map(Expr::as_int));
        let Some(numbers) = elements.and_then(Iterator::collect::<Option<Vec<i64>>>) else {
            continue;
        };
        let ty = model[output].ty.as_ref().and_then(|t| t.as_tensor());
        let sizes = match ty.and_then(|t| t.shape.as_ref()).map(Vec::len) {
            Some(0) => Vec::new(),
            _ => vec![numbers.len()],
        };
        if let Ok(tensor) = Tensor::from_slice(sizes, &numbers)
            && model[output].uses().len() > 0
            && model[id].op() != "Identity"
        {
            let constant = model.add_constant(tensor);
            model.replace_all_uses(output, constant);
        }
    }
}

fn reshape(model: &mut Model, id: NodeId, computed: &Computed) -> Option<()> {
    let node = &model[id];
    let (x, target) = (node.input(0)?, computed.get(&node.input(1)?)?);
    let from = model[x].ty.as_ref()?.as_tensor()?.shape.as_ref()?;
    if attrs::Reshape::read(node).ok()?.allowzero {
        return None;
    }
    let copied = |i: usize, dim: &Expr| known(dim) && from.get(i) == Some(dim);
    let sizes = target.iter().enumerate().map(|(i, dim)| match dim.as_int() {
        Some(number) => number,
        None if copied(i, dim) => 0,
        None => -1,
    });
    let sizes: Vec<i64> = sizes.collect();
    let count = |wanted: i64| sizes.iter().filter(|&&s| s == wanted).count();
    let written = |wanted: i64| target.iter().any(|d| d.as_int() == Some(wanted));
    // A tensor without elements does not determine -1 if another size may be 0.
    let told = count(-1) == 0 || written(-1) || count(0) == 0;
    if count(-1) > 1 || written(0) || !told {
        return None;
    }
    let sizes = model.add_constant(Tensor::vector(&sizes));
    model.replace_input(id, 1, Some(sizes));
    Some(())
}
