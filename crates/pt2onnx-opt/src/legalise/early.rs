//! Operators of opsets 8 and 9 by those of opset 7.

use super::{
    Emitted, Outcome, Rewritten, constant_numbers, front, index::indices::nonnegative, input,
    insert_casts, keep_inputs, replace, set,
};
use pt2onnx_ir::{Attribute, Builder, Model, Node, NodeId, Shape, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// Positions that are written as numbers instead of being computed.
const MOST_PLACES: usize = 4096;

/// `Max`, `Min`, `Mean` and `Sum` did not broadcast: the inputs are expanded to the same sizes.
pub(super) fn same_sizes(model: &mut Model, id: NodeId) -> Outcome {
    let shape = |v: &Option<Value>| v.and_then(|v| model.shape(v).cloned());
    let shapes: Option<Vec<_>> = model[id].inputs().iter().map(shape).collect();
    let shapes = shapes.ok_or("the sizes of its inputs are not known")?;
    if shapes.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(Rewritten::InPlace);
    }
    replace(model, id, |cx, node| {
        let dims = shapes.iter().fold(Shape::new(), |a, b| cx.broadcast_shapes(&a, b));
        let inputs: Vec<_> = node.inputs().iter().map(|v| v.map(|v| cx.expand(v, &dims))).collect();
        let op = pt2onnx_ir::schema::lookup(node.op(), 8).ok_or("it is no operator")?.name;
        Ok(vec![cx.emit1(op, &inputs, Default::default())])
    })
}

/// `Expand` by `Tile`: dimensions of size 1 are repeated.
pub(super) fn expand(cx: &Builder, node: &Node) -> Emitted {
    let unknown = "its sizes are not known";
    let (x, target) = (input(node, 0)?, input(node, 1)?);
    let dims = node.outputs().first().and_then(|v| cx.known_shape(*v)).ok_or(unknown)?;
    let from = cx.known_shape(x).ok_or(unknown)?;
    let lead = dims.len().checked_sub(from.len()).ok_or(unknown)?;
    let whole: Vec<Expr> = (0..lead).map(|_| Expr::int(1)).chain(from).collect();
    let mut repeated = Vec::new();
    for (own, wanted) in whole.iter().zip(&dims) {
        if own == wanted {
            repeated.push(0);
        } else if own.as_int() == Some(1) {
            repeated.push(1);
        } else {
            return Err(format!("a size of {own} may be 1 or {wanted}").into());
        }
    }
    let known: Option<Vec<i64>> = { dims.iter().zip(&repeated) }
        .map(|(d, &repeated)| if repeated == 1 { d.as_int() } else { Some(1) })
        .collect();
    let repeats = match known {
        Some(known) => cx.ints(&known),
        None => {
            let all = cx.known_shape(target).and_then(|s| s.first()?.as_int());
            if all != Some(dims.len() as i64) {
                return Err(unknown.into());
            }
            let kept: Vec<i64> = repeated.iter().map(|r| 1 - r).collect();
            cx.add(cx.mul(target, cx.ints(&repeated)), cx.ints(&kept))
        }
    };
    let made = cx.tile_op(cx.reshape(x, &whole), repeats);
    cx.set_type(made, Type::tensor(cx.dtype(x), dims));
    Ok(vec![made])
}

/// `Where`: elements of both choices are gathered by their positions. Arithmetic would turn an
/// infinity that is not chosen into NaN.
pub(super) fn select(cx: &Builder, node: &Node) -> Emitted {
    let (condition, x, y) = (input(node, 0)?, input(node, 1)?, input(node, 2)?);
    let one = Expr::int(1);
    if cx.numel(x) == one && cx.numel(y) == one {
        let both = [y, x].map(|v| cx.reshape(v, &[Expr::int(1)]));
        let rank = cx.rank(x).max(cx.rank(y)).saturating_sub(cx.rank(condition));
        let condition = cx.unsqueeze(condition, &(0..rank).collect::<Vec<_>>());
        return Ok(vec![cx.gather(cx.concat(&both, 0), cx.cast(condition, DType::I64), 0)]);
    }
    let dims = cx.broadcast_shapes(&cx.shape(x), &cx.shape(y));
    let dims = cx.broadcast_shapes(&cx.shape(condition), &dims);
    let count = Expr::product(dims.iter().cloned());
    let flat = |v| cx.reshape(cx.expand(v, &dims), std::slice::from_ref(&count));
    let both = cx.concat(&[flat(x), flat(y)], 0);
    let second = cx.mul(cx.cast(cx.not(condition), DType::I64), cx.number(&count));
    let mut places = cx.add(places(cx, &dims), second);
    if !nonnegative(&cx.model(), places) {
        // Makes this visible.
        places = cx.abs(places);
    }
    Ok(vec![cx.gather(both, places, 0)])
}

/// The position of each element of a tensor of these sizes, in row-major order.
fn places(cx: &Builder, dims: &[Expr]) -> Value {
    let known: Option<Vec<usize>> =
        dims.iter().map(|d| d.as_int().and_then(|d| usize::try_from(d).ok())).collect();
    let count = |known: &Vec<usize>| {
        let count = known.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        count.filter(|count| *count <= MOST_PLACES)
    };
    if let Some((count, shape)) = known.and_then(|known| Some((count(&known)?, known))) {
        let all: Vec<i64> = (0..count as i64).collect();
        if let Some(places) = Tensor::vector(&all).reshaped(shape) {
            return cx.constant(places);
        }
    }
    let (mut places, mut stride) = (None, Expr::int(1));
    for (axis, size) in dims.iter().enumerate().rev() {
        let mut along = cx.iota(size);
        if stride.as_int() != Some(1) {
            along = cx.mul(along, cx.number(&stride));
        }
        let mut sizes = vec![size.clone()];
        sizes.resize(dims.len() - axis, Expr::int(1));
        let along = cx.reshape(along, &sizes);
        places = Some(places.map_or(along, |places| cx.add(places, along)));
        stride = stride * size;
    }
    places.unwrap_or_else(|| cx.scalar(0, DType::I64))
}

/// `IsNaN`: NaN is neither above -1 nor below 1.
pub(super) fn is_nan(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    Ok(vec![cx.not(cx.or(cx.greater(x, -1.0), cx.less(x, 1.0)))])
}

/// `Sign`: the difference of two comparisons; NaN for NaN.
pub(super) fn sign(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    let kind = cx.dtype(x);
    let [above, below] = [cx.greater(x, 0), cx.less(x, 0)].map(|v| cx.cast(v, kind));
    let sign = cx.sub(above, below);
    Ok(vec![if kind.is_float() { cx.select(cx.is_nan(x), x, sign) } else { sign }])
}

/// `Greater` and `Less` of int64, which no float holds: upper halves are compared, then lower ones.
pub(super) fn of_int64(model: &mut Model, id: NodeId) -> Outcome {
    if !insert_casts::is_of(model, id, &[DType::I64]) {
        return Ok(Rewritten::InPlace);
    }
    replace(model, id, |cx, node| {
        let halves = |x: Value| {
            let upper = cx.div(x, 1i64 << 32);
            (upper, cx.sub(x, cx.mul(upper, 1i64 << 32)))
        };
        let (a, b) = (halves(input(node, 0)?), halves(input(node, 1)?));
        let compare = |a: Value, b: Value| {
            let [a, b] = [a, b].map(|v| cx.cast(v, DType::F64));
            if node.is("Greater") { cx.greater(a, b) } else { cx.less(a, b) }
        };
        let lower = cx.and(cx.equal(a.0, b.0), compare(a.1, b.1));
        Ok(vec![cx.or(compare(a.0, b.0), lower)])
    })
}

/// `OneHot` of a known depth: each index is compared with each class.
pub(super) fn one_hot(model: &mut Model, id: NodeId) -> Outcome {
    let depth = constant_numbers(model, input(&model[id], 1)?);
    let Some(&[depth]) = depth.as_deref() else {
        return Err("a computed depth needs a newer opset".into());
    };
    replace(model, id, |cx, node| {
        let indices = cx.cast(input(node, 0)?, DType::I64);
        let rank = cx.rank(indices);
        let axis = attrs::OneHot::read(node)?.axis;
        let axis = front(axis, rank + 1)?;
        let mut sizes = vec![Expr::int(depth as i64)];
        sizes.resize(rank - axis + 1, Expr::int(1));
        let classes = cx.reshape(cx.iota(&Expr::int(depth as i64)), &sizes);
        let hot = cx.equal(cx.unsqueeze(indices, &[axis]), classes);
        Ok(vec![cx.gather(input(node, 2)?, cx.cast(hot, DType::I64), 0)])
    })
}

/// `NonZero` of a vector of ones, as `Range` becomes it: a `Loop` counts.
pub(super) fn counted(model: &mut Model, id: NodeId) -> Outcome {
    let other = "a NonZero of values that are not known needs a newer opset";
    let source = model.producer(input(&model[id], 0)?).ok_or(other)?;
    let source = &model[source];
    let (ones, shape) = match source.op() {
        "Expand" => (source.input(0).and_then(|v| model.const_ints(v)), source.input(1)),
        _ => {
            let value = attrs::ConstantOfShape::read(source).ok().and_then(|c| c.value);
            (value.and_then(|t| t.to_vec::<i64>()), source.input(0))
        }
    };
    let shape = shape.filter(|_| ones == Some(vec![1])).ok_or(other)?;
    replace(model, id, |cx, node| {
        if cx.known_shape(shape).and_then(|s| s.first()?.as_int()) != Some(1) {
            return Err(other.into());
        }
        let [place, going] = [DType::I64, DType::Bool].map(|kind| Type::tensor(kind, []));
        // The oldest form needs a state.
        let (state, zero) = (place.clone(), cx.scalar(0, DType::I64));
        let always = cx.constant(Tensor::scalar(true));
        let body = cx.region(&[place, going, state], |v| {
            vec![cx.identity(v[1]), cx.identity(v[2]), cx.identity(v[0])]
        });
        let count = cx.reshape(shape, &[]);
        let places = cx.loop_op(2, count, always, &[zero], body)[1];
        let dims = node.outputs().first().and_then(|v| cx.known_shape(*v));
        let size = dims.and_then(|d| d.get(1).cloned()).unwrap_or_else(|| cx.unknown_dim());
        cx.set_type(places, Type::tensor(DType::I64, [size]));
        Ok(vec![cx.unsqueeze(places, &[0])])
    })
}

/// The scales of `Upsample` become an attribute.
pub(super) fn scales(model: &mut Model, id: NodeId) -> Outcome {
    let given = constant_numbers(model, input(&model[id], 1)?);
    let given = given.ok_or("computed scales need a newer opset")?;
    keep_inputs(model, id, 1);
    set(model, id, "scales", Attribute::Floats(given.into_iter().map(|s| s as f32).collect()));
    Ok(Rewritten::InPlace)
}

/// `Scan` had batches before: its nodes mean something else.
pub(super) fn scan(_: &mut Model, _: NodeId) -> Outcome {
    Err("a Scan without batches needs a newer opset".into())
}
