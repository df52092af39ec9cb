//! `Col2Im` of known sizes by `Gather`: along each axis, each pixel is the sum of the elements of windows that fall on it.

use crate::legalise::{
    error::Reason,
    forms::{constant_ints, input},
    replace::{Done, replace},
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;

/// The most pixels and elements of windows along an axis.
const MOST: i64 = 1 << 16;

/// Images of any number of dimensions.
pub(crate) fn col2im(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    replace(model, id, |cx, node| Ok(vec![added(cx, node)?]))
}

fn added(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    let x = input(node, 0)?;
    let axes = axes(cx, node)?;
    let dims = cx.known_shape(x).filter(|dims| dims.len() == 3);
    let dims = dims.ok_or("the rank of the input is not known")?;
    let n = axes.len();
    let window = axes.iter().fold(Expr::int(1), |all, axis| all * axis.window);
    let outer = [dims[0].clone(), dims[1].floor_div(&window)];
    // From (batch, channels, window.., count..) to (batch, channels, window * count, ..).
    let apart = axes.iter().map(|a| a.window).chain(axes.iter().map(|a| a.count)).map(Expr::int);
    let apart = cx.reshape(x, &outer.iter().cloned().chain(apart).collect::<Vec<_>>());
    let pairs = (0..n).flat_map(|i| [2 + i, 2 + n + i]);
    let paired = cx.transpose(apart, &[0, 1].into_iter().chain(pairs).collect::<Vec<_>>());
    let joined = axes.iter().map(|axis| Expr::int(axis.window * axis.count));
    let joined = cx.reshape(paired, &outer.into_iter().chain(joined).collect::<Vec<_>>());
    Ok(axes.iter().enumerate().fold(joined, |x, (i, axis)| axis.add(cx, x, i + 2)))
}

/// An axis of the image.
struct Axis {
    /// Its size.
    image: i64,
    /// The number of elements of a window, and the step between them.
    window: i64,
    dilation: i64,
    /// What is in front of the first pixel.
    before: i64,
    /// The step between windows, and their number.
    stride: i64,
    count: i64,
}

fn axes(cx: &Builder, node: &Node) -> Result<Vec<Axis>, Reason> {
    let known = |i: usize| {
        let value = input(node, i)?;
        constant_ints(&cx.model(), value)
            .ok_or_else(|| Reason::from("computed sizes need a newer opset"))
    };
    let (image, window) = (known(1)?, known(2)?);
    let n = image.len();
    let options = attrs::Col2Im::read(node)?;
    let ones = || vec![1; n];
    let dilations = options.dilations.unwrap_or_else(ones);
    let strides = options.strides.unwrap_or_else(ones);
    let pads = options.pads.unwrap_or_else(|| vec![0; 2 * n]);
    let of = |i: usize| {
        let (image, window) = (image[i], *window.get(i)?);
        let (dilation, stride) = (*dilations.get(i)?, *strides.get(i)?);
        let (before, after) = (*pads.get(i)?, *pads.get(i + n)?);
        let small = [image, window, dilation, stride].iter().all(|v| (1..=MOST).contains(v))
            && [before, after].iter().all(|v| (0..=MOST).contains(v));
        let room = image + before + after - dilation * (window - 1) - 1;
        let count = (small && room >= 0).then(|| room / stride + 1)?;
        let axis = Axis { image, window, dilation, before, stride, count };
        (window * count <= MOST).then_some(axis)
    };
    (0..n)
        .map(of)
        .collect::<Option<_>>()
        .ok_or_else(|| "its sizes are impossible or too large".into())
}

impl Axis {
    /// The sums of the elements along this axis of `x`, where they fall on one pixel.
    fn add(&self, cx: &Builder, x: Value, axis: usize) -> Value {
        let zero = self.window * self.count;
        let found: Vec<Vec<i64>> = (0..self.image).map(|pixel| self.elements(pixel)).collect();
        let most = found.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let mut x = x;
        if found.iter().any(|elements| elements.len() < most) {
            let last = cx.ints(&[axis as i64]);
            x = cx.pad(x, cx.ints(&[0, 1]), None, last, attrs::Pad { mode: "constant" });
        }
        let padded = |elements: Vec<i64>| {
            let filled = elements.into_iter().chain(std::iter::repeat(zero));
            filled.take(most).collect::<Vec<_>>()
        };
        let places: Vec<i64> = found.into_iter().flat_map(padded).collect();
        if most == 1 {
            return cx.gather(x, cx.ints(&places), axis);
        }
        let table = [self.image, most as i64].map(Expr::int);
        let places = cx.reshape(cx.ints(&places), &table);
        let found = cx.gather(x, places, axis);
        cx.reduce(Reduction::Sum, found, &[axis + 1], false)
    }

    /// The elements that fall on a pixel, counted window element by window element.
    fn elements(&self, pixel: i64) -> Vec<i64> {
        let element = |k: i64| {
            let start = pixel + self.before - k * self.dilation;
            let window = start / self.stride;
            let is_there = start >= 0 && start % self.stride == 0 && window < self.count;
            is_there.then(|| k * self.count + window)
        };
        (0..self.window).filter_map(element).collect()
    }
}
