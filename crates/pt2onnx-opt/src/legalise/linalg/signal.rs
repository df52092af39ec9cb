//! Fourier transforms: the axis becomes an attribute, or the transforms become matrix products.

use crate::legalise::{
    Emitted, Outcome, Reason, Rewritten, floats, input, keep_inputs, rank_of, replace, set,
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Operand, Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use std::f64::consts::TAU;

/// The longest transform whose matrices are constants.
const LONGEST: i64 = 512;

/// The axis was an attribute, by default 1 instead of -2; no inverse was one-sided.
pub(crate) fn axis(model: &mut Model, id: NodeId) -> Outcome {
    let axis = match model[id].input(2) {
        Some(axis) => {
            let known = model.const_ints(axis).filter(|v| v.len() == 1);
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
    if options.onesided && options.inverse {
        replace(model, id, transform)
    } else {
        Ok(Rewritten::InPlace)
    }
}

/// A product with the cosines and one with the sines.
pub(crate) fn transform(cx: &Builder, node: &Node) -> Emitted {
    let axis = usize::try_from(node.read::<i64>("axis")?.unwrap_or(1)).ok();
    let options = attrs::DFT::read(node)?;
    Ok(vec![transformed(cx, input(node, 0)?, axis, node.input(1), options)?])
}

/// Windows of a signal, each transformed.
pub(crate) fn short_time(cx: &Builder, node: &Node) -> Emitted {
    let (signal, step) = (input(node, 0)?, scalar(cx, input(node, 1)?));
    let window = node.input(2);
    let length = match (node.input(3), window) {
        (Some(length), _) => scalar(cx, length),
        (None, Some(window)) => cx.dim(window, 0),
        (None, None) => {
            return Err("neither the length of its frames nor a window is given".into());
        }
    };
    let signal = match cx.known_shape(signal).map(|shape| shape.len()) {
        Some(3) => signal,
        // Real numbers need not have a dimension of real and imaginary parts.
        Some(2) => cx.unsqueeze(signal, &[2]),
        Some(rank) => return Err(format!("a signal of rank {rank}").into()),
        None => return Err("the rank of its input is not known".into()),
    };
    let count = (cx.dim(signal, 1) - &length).floor_div(&step) + 1;
    let starts = cx.unsqueeze(cx.mul(cx.iota(&count), cx.size(&step)), &[1]);
    let mut frames = cx.gather(signal, cx.add(starts, cx.iota(&length)), 1);
    if let Some(window) = window {
        frames = cx.mul(frames, cx.unsqueeze(window, &[1]));
    }
    let onesided = attrs::STFT::read(node)?.onesided;
    let options = attrs::DFT { onesided, ..attrs::DFT::default() };
    Ok(vec![transformed(cx, frames, Some(2), None, options)?])
}

/// The number that a tensor of one element holds.
fn scalar(cx: &Builder, value: Value) -> Expr {
    if let Some([known]) = cx.model().const_ints(value).as_deref() {
        return Expr::int(*known);
    }
    let number = cx.unknown_dim();
    cx.bind_scalar(number.clone(), value);
    number
}

/// The transform of `x` along an axis, made as long as `length` says.
fn transformed(
    cx: &Builder,
    x: Value,
    axis: Option<usize>,
    length: Option<Value>,
    attrs::DFT { inverse, onesided }: attrs::DFT,
) -> Result<Value, Reason> {
    let (kind, rank) = (cx.dtype(x), cx.rank(x));
    let axis = axis.filter(|a| a + 1 < rank).ok_or("its axis is out of range")?;
    let half = inverse && onesided;
    let size = cx.dim(x, axis as i64);
    let length = match length {
        Some(length) => scalar(cx, length),
        None if half => (&size - 1) * 2,
        None => size.clone(),
    };
    let halved = |length: &Expr| length.floor_div(&Expr::int(2)) + 1;
    // Elements beyond the length are cut off. Missing ones are 0 and need no rows.
    let used = if half { halved(&length) } else { length.clone() };
    let used = if used == size { used } else { used.min(&size) };
    let made = if onesided && !half { halved(&length) } else { length.clone() };
    let wide = if kind == DType::F64 { DType::F64 } else { DType::F32 };
    let x = cx.cast(x, wide);
    let rows = |one: Value| {
        let cut = cx.slice(one, axis, &Expr::int(0), &used, 1);
        cx.swap_axes(cut, axis, rank - 2)
    };
    let part = |index: i64| rows(cx.take(x, rank - 1, &Expr::int(index)));
    let real = part(0);
    let imaginary = match cx.dim(x, -1).as_int() {
        Some(1) => None,
        Some(_) => Some(part(1)),
        // The sum of the imaginary part, if there is one.
        None => {
            let rest = cx.slice(x, rank - 1, &Expr::int(1), &Expr::int(2), 1);
            Some(rows(cx.reduce(Reduction::Sum, rest, &[rank - 1], false)))
        }
    };
    let waves = Waves { rows: used, columns: made, length, inverse, half };
    let [cosines, sines] = waves.matrices(cx, wide);
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
    Ok(cx.cast(cx.concat(&columns, rank - 1), kind))
}

/// Cosines and sines of the products of row and column, in turns of `length`.
struct Waves {
    rows: Expr,
    columns: Expr,
    length: Expr,
    inverse: bool,
    /// Rows stand for their conjugates, too.
    half: bool,
}

impl Waves {
    /// Both matrices: constants, or computed if they are large or their sizes are not known.
    fn matrices(&self, cx: &Builder, kind: DType) -> [Value; 2] {
        let known = [&self.rows, &self.columns, &self.length].map(Expr::as_int);
        match known {
            [Some(rows), Some(columns), Some(length @ 1..=LONGEST)] => {
                [f64::cos, f64::sin].map(|f| self.constant(cx, kind, [rows, columns, length], f))
            }
            _ => self.computed(cx, kind),
        }
    }

    fn constant(
        &self,
        cx: &Builder,
        kind: DType,
        [rows, columns, length]: [i64; 3],
        f: fn(f64) -> f64,
    ) -> Value {
        let weight = |row: i64| match (self.half, self.inverse) {
            (true, _) if row != 0 && 2 * row != length => 2.0 / length as f64,
            (_, true) => 1.0 / length as f64,
            _ => 1.0,
        };
        let element = |row: i64, column: i64| {
            let turns = (row * column % length) as f64 / length as f64;
            f(TAU * turns) * weight(row)
        };
        let row = |row: i64| (0..columns).map(move |column| element(row, column));
        let all: Vec<f64> = (0..rows).flat_map(row).collect();
        floats(cx, kind, &all, &[rows as usize, columns as usize])
    }

    fn computed(&self, cx: &Builder, kind: DType) -> [Value; 2] {
        let rows = cx.unsqueeze(cx.iota(&self.rows), &[1]);
        let length = cx.size(&self.length);
        let whole = cx.mod_(cx.mul(rows, cx.iota(&self.columns)), length, Default::default());
        let turn = cx.div(cx.scalar(TAU, kind), Operand::Number(length));
        let angles = cx.mul(cx.cast(whole, kind), turn);
        let waves = [cx.cos(angles), cx.sin(angles)];
        if !self.inverse {
            return waves;
        }
        let weight = if self.half {
            let twice = cx.mul(rows, 2i64);
            let ends = cx.or(cx.equal(rows, 0i64), cx.equal(twice, length));
            Operand::from(cx.select(ends, cx.scalar(1.0, kind), 2.0))
        } else {
            Operand::from(1.0)
        };
        let weight = cx.div(weight, cx.cast(length, kind));
        waves.map(|waves| cx.mul(waves, weight))
    }
}
