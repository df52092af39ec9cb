//! A transpose between reshapes, or a reshape between transposes: where the reshape only splits
//! dimensions, or only merges them, it can be done before the transpose or after it, and two of the
//! three nodes are enough.

use crate::{
    analysis::{self, known},
    fusion::Fusion,
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Builder, Value};
use pt2onnx_symbolic::Expr;
use std::ops::Range;

pub(crate) fn move_fusions() -> Result<Vec<Fusion>, PatternError> {
    Ok(vec![
        Fusion::new("r:Reshape(t:Transpose(x:Reshape(y)))", |cx, found| {
            if is_checked(cx, found, "r")? || is_checked(cx, found, "x")? {
                return None;
            }
            let y = found.value("y")?;
            split(cx, found, y).or_else(|| merged(cx, found, y))
        })?,
        Fusion::new(
            "o:Reshape({r:Reshape(x) | r:Unsqueeze(x) | r:Squeeze(x) | r:Flatten(x)})",
            |cx, found| {
                if is_checked(cx, found, "r")? || is_checked(cx, found, "o")? {
                    return None;
                }
                sizes(cx, found.value("r")?)?;
                let x = found.value("x")?;
                sizes(cx, x)?;
                let y = cx.reshape(x, &sizes(cx, found.output())?);
                (y == x || is_plain(cx, y)?).then_some(y)
            },
        )?,
        Fusion::new("o:Transpose(r:Reshape(t:Transpose(x)))", |cx, found| {
            if is_checked(cx, found, "r")? {
                return None;
            }
            let x = found.value("x")?;
            let outer = perm(cx, found, "o")?;
            let through = |perm: Vec<usize>| {
                outer.iter().map(|&p| perm.get(p).copied()).collect::<Option<Vec<usize>>>()
            };
            let first = || {
                let (sizes, perm) = split_first(cx, found)?;
                moved(cx, x, &sizes, &through(perm)?)
            };
            first().or_else(|| {
                // The groups of dimensions that the reshape merges, in the order of the outer
                // transpose.
                let inner = perm(cx, found, "t")?;
                let from = sizes(cx, found.value("t")?)?;
                let groups = analysis::merged(&from, &sizes(cx, found.value("r")?)?)?;
                let order = outer.iter().map(|&p| groups.get(p).cloned());
                let order = order.collect::<Option<Vec<_>>>()?.into_iter().flatten();
                let perm = order.map(|i| inner.get(i).copied()).collect::<Option<Vec<_>>>()?;
                reshaped(cx, x, &perm, &sizes(cx, found.output())?)
            })
        })?,
    ])
}

/// `Transpose(Reshape(y))`, if the outer reshape `r` splits what the transpose `t` has moved.
fn split(cx: &Builder, found: &Match, y: Value) -> Option<Value> {
    let (sizes, perm) = split_first(cx, found)?;
    moved(cx, y, &sizes, &perm)
}

/// `Reshape(Transpose(y))`, if the inner reshape `x` merges what the transpose `t` moves.
fn merged(cx: &Builder, found: &Match, y: Value) -> Option<Value> {
    let groups = analysis::merged(&sizes(cx, y)?, &sizes(cx, found.value("x")?)?)?;
    let order = perm(cx, found, "t")?.into_iter().map(|p| groups.get(p).cloned());
    let perm: Vec<usize> = order.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    reshaped(cx, y, &perm, &sizes(cx, found.output())?)
}

/// The sizes to which the operand of the transpose `t` is reshaped, and how they are moved then,
/// instead of the reshape `r` behind it.
fn split_first(cx: &Builder, found: &Match) -> Option<(Vec<Expr>, Vec<usize>)> {
    let perm = perm(cx, found, "t")?;
    let parts = sizes(cx, found.value("r")?)?;
    let groups = analysis::merged(&parts, &sizes(cx, found.value("t")?)?)?;
    // Of each dimension of the operand, the dimensions of the result.
    let mut from: Vec<Range<usize>> = vec![0..0; perm.len()];
    for (group, &p) in groups.iter().zip(&perm) {
        *from.get_mut(p)? = group.clone();
    }
    let order: Vec<usize> = from.into_iter().flatten().collect();
    let mut moved = vec![0; order.len()];
    for (at, &i) in order.iter().enumerate() {
        *moved.get_mut(i)? = at;
    }
    Some((order.iter().map(|&i| parts[i].clone()).collect(), moved))
}

/// `Transpose(Reshape(x))`, if no sizes have to be computed for it.
fn moved(cx: &Builder, x: Value, sizes: &[Expr], perm: &[usize]) -> Option<Value> {
    let y = cx.reshape(x, sizes);
    (y == x || is_plain(cx, y)?).then(|| cx.transpose(y, perm))
}

/// `Reshape(Transpose(x))`, if no sizes have to be computed for it.
fn reshaped(cx: &Builder, x: Value, perm: &[usize], sizes: &[Expr]) -> Option<Value> {
    let y = cx.transpose(x, perm);
    let z = cx.reshape(y, sizes);
    (z == y || is_plain(cx, z)?).then_some(z)
}

/// Whether a value is the result of a reshape to constant sizes, or of one node that adds or
/// removes dimensions of size 1.
fn is_plain(cx: &Builder, value: Value) -> Option<bool> {
    let model = cx.model();
    let node = &model[model.producer(value)?];
    let ones = |op: &str| matches!(op, "Squeeze" | "Unsqueeze");
    let twice = || {
        let before = model.producer(node.input(0)?)?;
        Some(node.is("Unsqueeze") && ones(model[before].op()))
    };
    let plain = ones(node.op()) && twice() != Some(true) || node.is("Reshape");
    Some(plain && model[node.input(1)?].constant().is_some())
}

/// Whether the sizes of a reshape [are chosen](analysis::are_chosen) at run time.
fn is_checked(cx: &Builder, found: &Match, name: &str) -> Option<bool> {
    let node = found.node(cx, name)?;
    let sizes = node.input(1).filter(|_| node.is("Reshape"));
    Some(sizes.is_some_and(|sizes| analysis::are_chosen(&cx.model(), sizes)))
}

fn perm(cx: &Builder, found: &Match, name: &str) -> Option<Vec<usize>> {
    let perm = analysis::perm(&cx.model(), &found.node(cx, name)?)?;
    perm.into_iter().map(|p| usize::try_from(p).ok()).collect()
}

/// The sizes of a value, if they are what their expressions say.
fn sizes(cx: &Builder, value: Value) -> Option<Vec<Expr>> {
    cx.known_shape(value).map(|s| s.to_vec()).filter(|s| s.iter().all(known))
}
