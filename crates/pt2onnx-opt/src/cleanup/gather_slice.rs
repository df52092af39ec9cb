//! Slices and gathers of known elements, with the views around them, become one `Gather`.

use super::{NodeView, Operand, Rewrite, eval, known, slices};
use pt2onnx_ir::{Traits, Use, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;

/// Rules that add a constant of indices, instead of replacing one, add at most this many.
const MANY: usize = 64;

pub(super) fn rule(n: &NodeView) -> Option<Rewrite> {
    only_part(n)
        .or_else(|| part_of_one(n))
        .or_else(|| one_hot(n))
        .or_else(|| reshaped(n))
        .or_else(|| transposed(n))
        .or_else(|| taken_apart(n))
}

/// `Gather(values, ..)` instead of a `OneHot` whose places are known.
fn one_hot(n: &NodeView) -> Option<Rewrite> {
    let values = n.node.input(2).filter(|_| n.node.is("OneHot"))?;
    let [depth] = n.ints(1)?[..] else { return None };
    let indices = n.ints(0)?;
    let mut sizes = n.model[n.node.input(0)?].constant()?.shape().to_vec();
    let axis = eval::axis(attrs::OneHot::read(n.node).ok()?.axis, sizes.len() + 1)?;
    let classes =
        usize::try_from(depth).ok().filter(|d| d.saturating_mul(indices.len()) <= MANY)?;
    let inner: usize = sizes.get(axis..)?.iter().product();
    let hot = |class: i64| move |&i: &i64| i64::from(i == class || i == class - depth);
    let row = |row: &[i64]| (0..depth).flat_map(|c| row.iter().map(hot(c))).collect::<Vec<_>>();
    let picked: Vec<i64> = indices.chunks(inner.max(1)).flat_map(row).collect();
    sizes.insert(axis, classes);
    let indices = Tensor::vector(&picked).reshaped(sizes)?;
    Some(n.become_gather(values, Operand::Constant(indices), 0))
}

/// A `Gather` from a vector that gives another shape, instead of one that is reshaped.
fn reshaped(n: &NodeView) -> Option<Rewrite> {
    let forms = n.node.traits().contains(Traits::SHAPE_ONLY);
    let picked = n.node.input(0).filter(|&v| forms && n.is_used_once(v))?;
    let gather = n.producer(picked).filter(|gather| gather.node.is("Gather"))?;
    let source = gather.node.input(0).filter(|&v| n.shape(v).is_some_and(|s| s.len() == 1))?;
    let places = gather.node.input(1)?;
    let indices = n.model[places].constant()?;
    if !n.is_used_once(places) && indices.numel() > MANY {
        return None;
    }
    let sizes = n.shape(n.output())?.iter().map(|d| usize::try_from(d.as_int()?).ok());
    let indices = indices.reshaped(sizes.collect::<Option<Vec<_>>>()?)?;
    (!n.checks_sizes()).then(|| n.become_gather(source, Operand::Constant(indices), 0))
}

/// `Gather(x, i)` instead of `Squeeze(Slice(x, i, i + 1))` and of `Squeeze(Gather(x, [i]))`.
fn part_of_one(n: &NodeView) -> Option<Rewrite> {
    let part = n.node.input(0).filter(|&v| n.node.is("Squeeze") && n.is_used_once(v))?;
    let [removed] = n.ints(1)?[..] else { return None };
    let inner = n.producer(part)?;
    let source = inner.node.input(0)?;
    let rank = n.shape(part)?.len();
    let (index, axis) = match inner.node.op() {
        "Slice" => {
            let (from, to, axis) = slices::single(n.model, inner.node)?;
            let last = from == -1 && to >= i64::from(i32::MAX);
            let single = to == from.checked_add(1)? && to != 0 || last;
            single.then_some((from, axis))?
        }
        "Gather" if n.shape(inner.node.input(1)?)?.len() == 1 => {
            (n.model.const_int(inner.node.input(1)?)?, attrs::Gather::read(inner.node).ok()?.axis)
        }
        _ => return None,
    };
    let axis = eval::axis(axis, rank)?;
    let index = Operand::Constant(Tensor::scalar(index));
    (eval::axis(removed, rank)? == axis).then(|| n.become_gather(source, index, axis as i64))
}

/// The dimension along which a `Gather` takes one part, which leaves that dimension out.
fn part_along(n: &NodeView) -> Option<usize> {
    let source = n.node.input(0).filter(|_| n.node.is("Gather"))?;
    let one = n.shape(n.node.input(1)?)?.is_empty();
    one.then(|| eval::axis(attrs::Gather::read(n.node).ok()?.axis, n.shape(source)?.len()))?
}

/// `Squeeze(x)` instead of the only part of `x` along a dimension: nothing is copied.
fn only_part(n: &NodeView) -> Option<Rewrite> {
    let axis = part_along(n)?;
    let [index] = n.ints(1)?[..] else { return None };
    let source = n.node.input(0)?;
    let one = n.shape(source)?.get(axis)?.as_int() == Some(1);
    (one && matches!(index, 0 | -1)).then(|| n.become_view("Squeeze", source, &[axis as i64]))
}

/// `Gather(x, i)` instead of `Gather(Transpose(x), i)`, if the other dimensions keep their order.
fn transposed(n: &NodeView) -> Option<Rewrite> {
    let axis = part_along(n)?;
    let transpose = n.producer(n.node.input(0)?).filter(|t| t.node.is("Transpose"))?;
    let mut left = transpose.perm()?;
    let own = (axis < left.len()).then(|| left.remove(axis))?;
    let (source, indices) = (transpose.node.input(0)?, n.node.input(1)?);
    left.is_sorted().then(|| n.become_gather(source, indices, own))
}

/// `Slice(x)` instead of `Gather(Reshape(x), i)`, if the reshape takes one dimension apart in two,
/// and all of its users take parts along the first of them. The slices may become one `Split`.
fn taken_apart(n: &NodeView) -> Option<Rewrite> {
    let axis = part_along(n)?;
    let [index] = n.ints(1)?[..] else { return None };
    let whole = n.node.input(0)?;
    let reshape = n.producer(whole).filter(|r| r.node.is("Reshape") && !r.checks_sizes())?;
    let source = reshape.node.input(0)?;
    let (from, to) = (n.shape(source)?, n.shape(whole)?);
    let (count, size) = (to.get(axis)?.as_int()?, to.get(axis + 1)?.as_int()?);
    let same = |(a, b): (&Expr, &Expr)| a == b && known(a);
    let split = from.get(axis)?.as_int() == count.checked_mul(size)
        && from.len() + 1 == to.len()
        && from[..axis].iter().zip(to).all(same)
        && from[axis + 1..].iter().zip(&to[axis + 2..]).all(same);
    let gather_slice = |user: Use| {
        let Use::Input(user, 0) = user else { return false };
        let user = NodeView::of(n.model, user, n.weights);
        user.is_some_and(|user| part_along(&user) == Some(axis) && user.ints(1).is_some())
    };
    let index = if index < 0 { index.checked_add(count)? } else { index };
    let users = n.model[whole].uses();
    let all = users.len() <= MANY && users.into_iter().all(gather_slice);
    if !split || !(0..count).contains(&index) || !all {
        return None;
    }
    let start = index.checked_mul(size)?;
    let end = start.checked_add(size)?;
    Some(n.become_slice(source, [vec![start], vec![end], vec![axis as i64], vec![1]]))
}
