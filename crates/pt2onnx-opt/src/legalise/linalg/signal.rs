//! Fourier transforms: the axis becomes an attribute, and transforms of known length become matrix products.

use crate::legalise::{
    error::Reason,
    forms::{constant_ints, input, keep_inputs, rank_of, set},
    replace::{Done, replace},
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};
use std::f64::consts::TAU;

/// The longest transform that is written as a matrix product.
const LONGEST: i64 = 512;

/// In the older form, the axis is an attribute, by default 1 instead of -2, and there is no one-sided inverse.
pub(crate) fn axis(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    let axis = match model[id].input(2) {
        Some(axis) => {
            let known = constant_ints(model, axis).filter(|v| v.len() == 1);
            known.ok_or("a computed axis needs a newer opset")?[0]
        }
        None => -2,
    };
    // Not all runtimes understand negative axes there.
    let axis = match axis {
        0.. => axis,
        _ => axis + rank_of(model, id, 0)? as i64,
    };
    keep_inputs(model, id, 2);
    set(model, id, "axis", axis);
    let options = attrs::DFT::read(&model[id])?;
    match options.onesided && options.inverse {
        true => transform(model, id),
        false => Ok(Done::Kept),
    }
}

/// A product with the cosines and one with the sines.
pub(crate) fn transform(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    let length = match model[id].input(1) {
        None => None,
        Some(length) => {
            let known = constant_ints(model, length).filter(|v| v.len() == 1);
            Some(known.ok_or("a computed length needs a newer opset")?[0])
        }
    };
    replace(model, id, |cx, node| emit(cx, node, length))
}

fn emit(cx: &Builder, node: &Node, length: Option<i64>) -> Result<Vec<Value>, Reason> {
    let x = input(node, 0)?;
    let (kind, rank) = (cx.dtype(x), cx.rank(x));
    let axis = usize::try_from(node.read::<i64>("axis")?.unwrap_or(1)).ok();
    let axis = axis.filter(|a| a + 1 < rank).ok_or("its axis is out of range")?;
    let attrs::DFT { inverse, onesided } = attrs::DFT::read(node)?;
    let half = inverse && onesided;
    let size = cx.dim(x, axis as i64).as_int();
    let size = size.ok_or("a DFT of unknown length needs a newer opset")?;
    let length = length.unwrap_or(if half { 2 * (size - 1) } else { size });
    if !(1..=LONGEST).contains(&length) {
        return Err(format!("a DFT of more than {LONGEST} elements needs a newer opset").into());
    }
    // Elements beyond the length are cut off. Missing ones are 0 and need no rows.
    let used = if half { length / 2 + 1 } else { length }.min(size);
    let made = match (half, onesided) {
        (false, true) => length / 2 + 1,
        _ => length,
    };
    let wide = if kind == DType::F64 { DType::F64 } else { DType::F32 };
    let part = |index: i64| {
        let one = cx.take(cx.cast(x, wide), rank - 1, &Expr::int(index));
        let cut = cx.slice(one, axis, &Expr::int(0), &Expr::int(used), 1);
        cx.swap_axes(cut, axis, rank - 2)
    };
    let real = part(0);
    let imaginary = (cx.dim(x, -1).as_int() == Some(2)).then(|| part(1));
    let matrix = |f: fn(f64) -> f64| {
        let weight = |row: i64| match (half, inverse) {
            // Each stands for its conjugate too.
            (true, _) if row != 0 && 2 * row != length => 2.0 / length as f64,
            (_, true) => 1.0 / length as f64,
            _ => 1.0,
        };
        let element = |row: i64, column: i64| {
            let turns = (row * column % length) as f64 / length as f64;
            f(TAU * turns) * weight(row)
        };
        let all: Vec<f64> =
            (0..used).flat_map(|row| (0..made).map(move |column| element(row, column))).collect();
        let flat = match wide {
            DType::F64 => Tensor::vector(&all),
            _ => Tensor::vector(&all.iter().map(|&v| v as f32).collect::<Vec<f32>>()),
        };
        let shaped = flat.reshaped(vec![used as usize, made as usize]);
        shaped.map(|t| cx.constant(t)).ok_or("a matrix of another size")
    };
    let (cosines, sines) = (matrix(f64::cos)?, matrix(f64::sin)?);
    // e^(-it) forwards, e^(it) backwards.
    let turned = |a: Value, b: Option<Value>, plus: bool| {
        let first = cx.matmul(a, cosines);
        match b.map(|b| cx.matmul(b, sines)) {
            None => first,
            Some(second) if plus => cx.add(first, second),
            Some(second) => cx.sub(first, second),
        }
    };
    let mut parts = vec![turned(real, imaginary, !inverse)];
    if !half {
        parts.push(match imaginary {
            Some(imaginary) => turned(imaginary, Some(real), inverse),
            None if inverse => cx.matmul(real, sines),
            None => cx.neg(cx.matmul(real, sines)),
        });
    }
    let columns: Vec<Value> = parts
        .into_iter()
        .map(|p| cx.unsqueeze(cx.swap_axes(p, axis, rank - 2), &[rank - 1]))
        .collect();
    Ok(vec![cx.cast(cx.concat(&columns, rank - 1), kind)])
}
