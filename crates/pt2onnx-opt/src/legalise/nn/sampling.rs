//! `GridSample` by `Gather`: at each place, the weighted sum of the pixels around it.

use crate::legalise::{Emitted, Reason, floats, input};
use pt2onnx_ir::{Builder, Node, Operand, Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The pixels that are read along each dimension: they begin so many before a place rounded down.
/// Their weights are the products of a row vector, the powers of what was rounded off, and a
/// matrix.
struct Filter {
    before: i64,
    weights: &'static [&'static [f64]],
}

const LINEAR: Filter = Filter { before: 0, weights: &[&[1.0, 0.0], &[-1.0, 1.0]] };

/// With -0.75 as the parameter of the cubic polynomials.
const CUBIC: Filter = Filter {
    before: 1,
    weights: &[
        &[0.0, 1.0, 0.0, 0.0],
        &[-0.75, 0.0, 0.75, 0.0],
        &[1.5, -2.25, 1.5, -0.75],
        &[-0.75, 1.25, -1.25, 0.75],
    ],
};

/// Images of any number of dimensions.
pub(crate) fn grid_sample(cx: &Builder, node: &Node) -> Emitted {
    Ok(vec![sampled(cx, node)?])
}

fn sampled(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    let (x, grid) = (input(node, 0)?, input(node, 1)?);
    let options = attrs::GridSample::read(node)?;
    let filter = match options.mode {
        "nearest" => None,
        "linear" | "bilinear" => Some(&LINEAR),
        "cubic" | "bicubic" => Some(&CUBIC),
        mode => return Err(format!("there is no mode `{mode}`").into()),
    };
    let (kind, places) = (cx.dtype(x), cx.dtype(grid));
    let wide = if [kind, places].contains(&DType::F64) { DType::F64 } else { DType::F32 };
    if filter.is_some() && !kind.is_float() {
        return Err(format!("an interpolation of {kind} needs a newer opset").into());
    }
    let dims = cx.known_shape(x).filter(|dims| dims.len() > 2);
    let dims = dims.ok_or("the rank of the input is not known")?;
    let (batch, sizes) = (&dims[0], &dims[2..]);
    let n = sizes.len();
    let grid = cx.cast(grid, wide);
    // Along each dimension, the positions of pixels, counted in the image with a margin, and their
    // weights. Each dimension has an axis for them behind those of the places.
    let apart = |values: Value, d: usize| {
        let axes: Vec<usize> = (0..n).filter(|other| *other != d).map(|i| n + 1 + i).collect();
        cx.unsqueeze(values, &axes)
    };
    let (mut position, mut weight) = (None::<Value>, None::<Value>);
    for (d, size) in sizes.iter().enumerate() {
        let axis = Axis { cx, size, kind: wide, options: &options };
        let place = cx.take(grid, n + 1, &Expr::int((n - 1 - d) as i64));
        let (pixels, weights) = axis.pixels(cx.unsqueeze(place, &[n + 1]), filter);
        let pixels = apart(pixels, d);
        position = Some(match position {
            None => pixels,
            Some(rows) => cx.add(cx.mul(rows, cx.size(&(size + 2))), pixels),
        });
        let weights = weights.map(|weights| apart(weights, d));
        weight = weight.map_or(weights, |product| Some(cx.mul(product, weights?)));
    }
    let mut position = position.ok_or("an image without dimensions")?;
    let pixels = sizes.iter().fold(Expr::int(1), |all, size| all * (size + 2));
    if batch.as_int() != Some(1) {
        let others: Vec<usize> = (1..=2 * n).collect();
        let starts = cx.mul(cx.iota(batch), cx.size(&pixels));
        position = cx.add(position, cx.unsqueeze(starts, &others));
    }
    // The pixels of all images, with a margin of zeros, one after another.
    let x = if filter.is_some() { cx.cast(x, wide) } else { x };
    let spatial: Vec<usize> = (2..n + 2).collect();
    let axes = cx.ints(&spatial.iter().map(|&a| a as i64).collect::<Vec<_>>());
    let margin = cx.ints(&vec![1; 2 * n]);
    let padded = cx.pad(x, margin, None, axes, attrs::Pad { mode: "constant" });
    let last: Vec<usize> = [&[0][..], &spatial, &[1]].concat();
    let flat = cx.reshape(cx.transpose(padded, &last), &[batch * &pixels, dims[1].clone()]);
    let found = cx.gather(flat, position, 0);
    let around: Vec<usize> = (n + 1..2 * n + 1).collect();
    let summed = match weight {
        None => cx.squeeze(found, &around),
        Some(weight) => {
            let weighted = cx.mul(found, cx.unsqueeze(weight, &[2 * n + 1]));
            cx.reduce(Reduction::Sum, weighted, &around, false)
        }
    };
    let first: Vec<usize> = [0, n + 1].into_iter().chain(1..=n).collect();
    Ok(cx.cast(cx.transpose(summed, &first), kind))
}

struct Axis<'a, 'm> {
    cx: &'a Builder<'m>,
    size: &'a Expr,
    /// The type of positions.
    kind: DType,
    options: &'a attrs::GridSample<'a>,
}

impl Axis<'_, '_> {
    /// The pixels for places from -1 to 1, along a new last axis: their positions, from 0 for the
    /// margin before the image to `size + 1` for that behind it, and their weights.
    fn pixels(&self, place: Value, filter: Option<&Filter>) -> (Value, Option<Value>) {
        let cx = self.cx;
        let place = self.in_pixels(place);
        let cubic = filter.is_some_and(|filter| filter.weights.len() == 4);
        let place = if cubic { place } else { self.inside(place) };
        let Some(Filter { before, weights }) = filter else {
            return (self.position(cx.round(place)), None);
        };
        let first = cx.floor(place);
        let numbers = |count: usize, from: i64| -> Value {
            let all: Vec<f64> = (0..count).map(|i| i as f64 - from as f64).collect();
            floats(cx, self.kind, &all, &[count])
        };
        let pixels = cx.add(first, numbers(weights.len(), *before));
        let pixels = if cubic { self.inside(pixels) } else { pixels };
        let powers = cx.pow(cx.sub(place, first), numbers(weights.len(), 0));
        let matrix = floats(cx, self.kind, &weights.concat(), &[weights.len(); 2]);
        (self.position(pixels), Some(cx.matmul(powers, matrix)))
    }

    /// Places from -1 to 1 in pixels.
    fn in_pixels(&self, place: Value) -> Value {
        let (cx, place) = (self.cx, self.cx.add(place, 1.0));
        if self.options.align_corners {
            cx.mul(cx.mul(place, 0.5), self.number(&(self.size - 1)))
        } else {
            cx.mul(cx.sub(cx.mul(place, self.number(self.size)), 1.0), 0.5)
        }
    }

    /// Where pixels are read for places outside of the image.
    fn inside(&self, place: Value) -> Value {
        let cx = self.cx;
        let reflected = match self.options.padding_mode {
            "border" => place,
            "reflection" => {
                // The image lies between two mirrors, `span` apart.
                let (start, span) = if self.options.align_corners {
                    // In a single pixel, whose middle both cross, any distance will do.
                    (0.0, (self.size - 1).max(&Expr::int(1)))
                } else {
                    (-0.5, self.size.clone())
                };
                let span = self.number(&span);
                let far = cx.abs(cx.sub(place, start));
                let turns = cx.floor(cx.div(far, span));
                let rest = cx.sub(far, cx.mul(turns, span));
                let half = cx.mul(turns, 0.5);
                let even = cx.equal(cx.floor(half), half);
                cx.add(cx.select(even, rest, cx.sub(span, rest)), start)
            }
            _ => return place,
        };
        let last = self.number(&(self.size - 1));
        cx.minimum(cx.maximum(reflected, 0.0), last)
    }

    /// Positions in the image with its margin. Positions outside, and NaN, fall on the margin.
    fn position(&self, pixel: Value) -> Value {
        let cx = self.cx;
        let place = cx.add(cx.cast(pixel, DType::I64), 1i64);
        cx.minimum(cx.maximum(place, 0i64), cx.size(&(self.size + 1)))
    }

    fn number(&self, size: &Expr) -> Operand {
        match size.as_int() {
            Some(known) => Operand::from(known as f64),
            None => Operand::from(self.cx.cast(self.cx.number(size), self.kind)),
        }
    }
}
