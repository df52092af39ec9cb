//! Commutes `Reshape` and `Transpose` so that two of three nodes are enough: a reshape that only
//! splits dimensions, or only merges them, can be before a transpose or after it.

use super::{Because, Fusion, Match, NoFusion, Pass, Patterns, Run};
use crate::analysis::{self, known};
use pt2onnx_ir::{Builder, Value};
use pt2onnx_symbolic::Expr;
use std::ops::Range;

pub(crate) static COMMUTE_RESHAPE_TRANSPOSE: Pass = Pass {
    name: "commute-reshape-transpose",
    description: "Merges Reshape and Transpose: of two reshapes around a transpose, two transposes \
                  around a reshape, or two reshapes to computed sizes, one is left.",
    precondition: "A reshape between others only splits dimensions, or only merges some, and no \
                   sizes have to be computed.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

fn fusions() -> Patterns {
    let outer_views = "o:Reshape({r:Reshape(x) | r:Unsqueeze(x) | r:Squeeze(x) | r:Flatten(x)})";
    Ok(vec![
        Fusion::new("r:Reshape(t:Transpose(x:Reshape(y)))", |cx, found| {
            fixed(cx, found, &["r", "x"])?;
            let y = found.get("y")?;
            split(cx, found, y).or_else(|| merged(cx, found, y)).because(OTHERWISE)
        })?,
        Fusion::new(outer_views, |cx, found| {
            fixed(cx, found, &["r", "o"])?;
            reshaped_once(cx, found).because("the sizes are not known, or are computed")
        })?,
        Fusion::new("o:Transpose(r:Reshape(t:Transpose(x)))", |cx, found| {
            fixed(cx, found, &["r"])?;
            transposed_once(cx, found).because(OTHERWISE)
        })?,
    ])
}

const OTHERWISE: &str = "the reshape does more than split or merge known dimensions";

/// One reshape instead of the reshapes `r` and `o`.
fn reshaped_once(cx: &Builder, found: &Match) -> Option<Value> {
    sizes(cx, found.value("r")?)?;
    let x = found.value("x")?;
    sizes(cx, x)?;
    let y = cx.reshape(x, &sizes(cx, found.output())?);
    (y == x || is_plain(cx, y)?).then_some(y)
}

/// One transpose instead of `t` and `o` around a reshape `r`.
fn transposed_once(cx: &Builder, found: &Match) -> Option<Value> {
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
        // The groups of dimensions that the reshape merges, in the order of the outer transpose.
        let inner = perm(cx, found, "t")?;
        let from = sizes(cx, found.value("t")?)?;
        let groups = analysis::merged(&from, &sizes(cx, found.value("r")?)?)?;
        let order = outer.iter().map(|&p| groups.get(p).cloned());
        let order = order.collect::<Option<Vec<_>>>()?.into_iter().flatten();
        let perm = order.map(|i| inner.get(i).copied()).collect::<Option<Vec<_>>>()?;
        reshaped(cx, x, &perm, &sizes(cx, found.output())?)
    })
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
    // The dimensions of the result for each dimension of the operand.
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

/// An error if the sizes of one of these reshapes [are chosen](analysis::are_chosen) at run time.
fn fixed(cx: &Builder, found: &Match, names: &[&str]) -> Result<(), NoFusion> {
    for name in names {
        let node = found.get_node(cx, name)?;
        let sizes = node.input(1).filter(|_| node.is("Reshape"));
        let chosen = sizes.is_some_and(|sizes| analysis::are_chosen(&cx.model(), sizes));
        (!chosen).because("the sizes are chosen at run time")?;
    }
    Ok(())
}

fn perm(cx: &Builder, found: &Match, name: &str) -> Option<Vec<usize>> {
    let perm = analysis::perm(&cx.model(), &found.node(cx, name)?)?;
    perm.into_iter().map(|p| usize::try_from(p).ok()).collect()
}

fn sizes(cx: &Builder, value: Value) -> Option<Vec<Expr>> {
    cx.known_shape(value).map(|s| s.to_vec()).filter(|s| s.iter().all(known))
}
