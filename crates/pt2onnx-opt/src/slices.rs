//! Infers the sizes of slices with computed ends.

use crate::eval;
use pt2onnx_ir::{
    Builder, Model, Node, NodeId, TensorType, Traits, Type, Value, is_unknown_symbol,
};
use pt2onnx_symbolic::{Expr, Symbol, lowest};
use rustc_hash::FxHashMap;

/// The ends of slices from the start whose size is not known: the smaller of that and a number.
pub(crate) type Ends = FxHashMap<Symbol, Expr>;

/// The type of a slice, with the sizes of dimensions that it takes whole.
pub(crate) fn whole(cx: &Builder, id: NodeId, ty: Type) -> Type {
    let model = cx.model();
    let node = Some(&model[id]).filter(|n| n.is("Slice"));
    let (Some(node), Type::Tensor(TensorType { dtype, shape: Some(shape) })) = (node, &ty) else {
        return ty;
    };
    let ints = |i: usize| model[node.input(i)?].constant()?.to_vec::<i64>();
    let whole = || {
        let from = model.shape(node.input(0)?).filter(|f| f.len() == shape.len())?;
        let ends = ints(2)?;
        let mut sizes = shape.clone();
        for (i, axis) in from_start(&model, node, sizes.len())? {
            if *ends.get(i)? >= i64::from(i32::MAX) {
                sizes[axis] = from[axis].clone();
            }
        }
        Some(Type::tensor(*dtype, sizes))
    };
    whole().unwrap_or(ty)
}

/// Start, end and axis of a slice along one dimension in steps of 1.
pub(crate) fn single(model: &Model, node: &Node) -> Option<(i64, i64, i64)> {
    let one = |i: usize| model.const_int(node.input(i)?);
    let or = |i: usize, default| if node.input(i).is_some() { one(i) } else { Some(default) };
    (or(4, 1)? == 1).then(|| Some((one(1)?, one(2)?, or(3, 0)?)))?
}

/// The dimensions that a slice takes from the start without steps, with their places in its axes.
fn from_start(model: &Model, node: &Node, rank: usize) -> Option<Vec<(usize, usize)>> {
    let ints = |i: usize| model[node.input(i)?].constant()?.to_vec::<i64>();
    let starts = ints(1)?;
    let axes = node.input(3).map_or(Some((0..starts.len() as i64).collect()), |_| ints(3))?;
    let steps = node.input(4).map_or(Some(vec![1; starts.len()]), |_| ints(4))?;
    let mut found = Vec::new();
    for (i, &axis) in axes.iter().enumerate() {
        if (*starts.get(i)?, *steps.get(i)?) == (0, 1) {
            found.push((i, eval::axis(axis, rank)?));
        }
    }
    Some(found)
}

/// Notes where the slices of a node with this type end.
pub(crate) fn note(cx: &Builder, id: NodeId, ty: &Type, ends: &mut Ends) {
    let found = || {
        let model = cx.model();
        let node = Some(&model[id]).filter(|n| n.is("Slice"))?;
        let shape = ty.as_tensor()?.shape.as_ref()?;
        let from = model.shape(node.input(0)?).filter(|f| f.len() == shape.len())?;
        let given = cx.contents(node.input(2)?)?;
        let places = from_start(&model, node, shape.len())?;
        let end = |(i, axis): (usize, usize)| {
            let symbol = shape[axis].as_symbol().filter(|s| is_unknown_symbol(s))?;
            // A dimension without elements gives none.
            from[axis].as_int().filter(|&size| size > 0)?;
            let end = given.get(i).filter(|e| lowest(e).is_some_and(|l| l >= 0))?;
            Some((Symbol::from(symbol), end.clone()))
        };
        Some(places.into_iter().filter_map(end).collect::<Vec<_>>())
    };
    let found = found().unwrap_or_default();
    ends.extend(found);
}

/// The type of what broadcasts: `n` and the smaller of `n` and another size broadcast to `n`.
pub(crate) fn broadcast(cx: &Builder, id: NodeId, ty: Type, ends: &Ends) -> Type {
    let model = cx.model();
    let node = &model[id];
    let Type::Tensor(TensorType { dtype, shape: Some(shape) }) = &ty else {
        return ty;
    };
    let expands = node.is("Expand");
    if ends.is_empty() || !expands && !node.traits().contains(Traits::BROADCASTING) {
        return ty;
    }
    let operand = |(i, &v): (usize, &Value)| match i {
        1 if expands => cx.contents(v),
        _ => model.shape(v).cloned(),
    };
    let operands: Option<Vec<_>> =
        node.inputs().iter().flatten().enumerate().map(operand).collect();
    let Some(operands) = operands else {
        return ty;
    };
    let dim = |(i, dim): (usize, &Expr)| {
        let from_end = shape.len() - i;
        let at = operands.iter().filter_map(|o| o.get(o.len().checked_sub(from_end)?));
        let wide: Vec<&Expr> = at.filter(|d| d.as_int() != Some(1)).collect();
        let end = |d: &Expr| ends.get(&Symbol::from(d.as_symbol()?));
        let agrees = |n: &Expr| wide.iter().all(|d| *d == n || end(d) == Some(n));
        let unknown = dim.as_symbol().is_some_and(is_unknown_symbol);
        let found = wide.iter().find(|n| unknown && agrees(n));
        found.map_or_else(|| dim.clone(), |n| (*n).clone())
    };
    Type::tensor(*dtype, shape.iter().enumerate().map(dim).collect::<Vec<_>>())
}
