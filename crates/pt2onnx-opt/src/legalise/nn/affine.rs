//! `AffineGrid` as a sum of products: the places along each axis times a column of the map.

use crate::legalise::{Emitted, Reason, floats, input};
use pt2onnx_ir::{Builder, Node, Value, attrs};
use pt2onnx_tensor::DType;

/// The most places along an axis that become a constant.
const MOST: i64 = 1 << 16;

/// Grids for images and volumes.
pub(crate) fn affine_grid(cx: &Builder, node: &Node) -> Emitted {
    Ok(vec![grid(cx, node)?])
}

fn grid(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    let (theta, sizes) = (input(node, 0)?, input(node, 1)?);
    let aligned = attrs::AffineGrid::read(node)?.align_corners;
    let dims = cx.known_shape(theta).filter(|dims| dims.len() == 3);
    let n = dims.and_then(|dims| usize::try_from(dims[1].as_int()?).ok());
    let n = n.filter(|n| [2, 3].contains(n)).ok_or("the shape of the map is not known")?;
    let between: Vec<usize> = (1..=n).collect();
    let column =
        |i: usize| cx.unsqueeze(cx.gather(theta, cx.scalar(i as i64, DType::I64), 2), &between);
    let kind = cx.dtype(theta);
    let known = cx.model().const_ints(sizes).unwrap_or_default();
    let products = (0..n).map(|axis| {
        let places = match known.get(axis + 2) {
            Some(&size @ 1..=MOST) => {
                let mut shape = vec![1; n + 2];
                shape[axis + 1] = size as usize;
                cx.cast(floats(cx, kind, &known_places(size, aligned), &shape), kind)
            }
            _ => {
                let size = cx.gather(sizes, cx.scalar(axis as i64 + 2, DType::I64), 0);
                let others: Vec<usize> = (0..n + 2).filter(|other| *other != axis + 1).collect();
                cx.unsqueeze(places(cx, size, aligned, kind), &others)
            }
        };
        // The first column is for the last dimension.
        cx.mul(places, column(n - 1 - axis))
    });
    Ok(products.fold(column(n), |sum, product| cx.add(sum, product)))
}

/// So many places around 0, the outermost at -1 and 1 if aligned, else half a step inside.
fn known_places(size: i64, aligned: bool) -> Vec<f64> {
    let last = size - 1;
    let steps = if aligned { last.max(1) } else { size };
    (0..size).map(|i| (2 * i - last) as f64 / steps as f64).collect()
}

/// [`known_places`] of a size that is not known.
fn places(cx: &Builder, size: Value, aligned: bool, kind: DType) -> Value {
    let [zero, one] = [0, 1].map(|i| cx.scalar(i, DType::I64));
    let last = cx.sub(size, one);
    let steps = if aligned { cx.max(&[last, one]) } else { size };
    let doubled = cx.mul(cx.range(zero, size, one), cx.scalar(2, DType::I64));
    cx.div(cx.cast(cx.sub(doubled, last), kind), cx.cast(steps, kind))
}
