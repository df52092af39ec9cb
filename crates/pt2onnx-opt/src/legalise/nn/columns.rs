//! `Col2Im` by `Gather`: along each axis, each pixel is the sum of the elements of windows that
//! fall on it.

use crate::legalise::{Emitted, Reason, input};
use pt2onnx_ir::{Builder, Node, Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;

/// The most pixels, and elements of windows, along an axis.
const MOST: i64 = 1 << 24;

/// Images of any number of dimensions.
pub(crate) fn col2im(cx: &Builder, node: &Node) -> Emitted {
    Ok(vec![added(cx, node)?])
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
    let windows = axes.iter().map(|axis| Expr::int(axis.window));
    let apart = windows.chain(axes.iter().map(|axis| axis.count.clone()));
    let apart = cx.reshape(x, &outer.iter().cloned().chain(apart).collect::<Vec<_>>());
    let pairs = (0..n).flat_map(|i| [2 + i, 2 + n + i]);
    let paired = cx.transpose(apart, &[0, 1].into_iter().chain(pairs).collect::<Vec<_>>());
    let joined = axes.iter().map(Axis::elements);
    let joined = cx.reshape(paired, &outer.into_iter().chain(joined).collect::<Vec<_>>());
    Ok(axes.iter().enumerate().fold(joined, |x, (i, axis)| axis.add(cx, x, i + 2)))
}

struct Axis {
    image: Expr,
    /// The number of elements of a window, and the step between them.
    window: i64,
    dilation: i64,
    /// The padding before the first pixel.
    before: i64,
    /// The step between windows, and their number.
    stride: i64,
    count: Expr,
}

fn axes(cx: &Builder, node: &Node) -> Result<Vec<Axis>, Reason> {
    let given = cx.model().const_ints(input(node, 1)?);
    let made = || cx.known_shape(*node.outputs().first()?)?.get(2..).map(<[Expr]>::to_vec);
    let image = given.map(|sizes| sizes.into_iter().map(Expr::int).collect()).or_else(made);
    let image = image.ok_or("the sizes of the image are not known")?;
    let window = cx.model().const_ints(input(node, 2)?);
    let window = window.ok_or("computed sizes of windows need a newer opset")?;
    let n = image.len();
    let options = attrs::Col2Im::read(node)?;
    let ones = || vec![1; n];
    let dilations = options.dilations.unwrap_or_else(ones);
    let strides = options.strides.unwrap_or_else(ones);
    let pads = options.pads.unwrap_or_else(|| vec![0; 2 * n]);
    let of = |i: usize| {
        let (image, window) = (image[i].clone(), *window.get(i)?);
        let (dilation, stride) = (*dilations.get(i)?, *strides.get(i)?);
        let (before, after) = (*pads.get(i)?, *pads.get(i + n)?);
        let small = [window, dilation, stride].iter().all(|v| (1..=MOST).contains(v))
            && [before, after, dilation * (window - 1)].iter().all(|v| (0..=MOST).contains(v))
            && image.as_int().is_none_or(|size| (1..=MOST).contains(&size));
        let room = small.then(|| &image + (before + after - dilation * (window - 1) - 1))?;
        let count = room.floor_div(&Expr::int(stride)) + 1;
        let possible = count.as_int().is_none_or(|count| count > 0 && window * count <= MOST);
        possible.then_some(Axis { image, window, dilation, before, stride, count })
    };
    (0..n)
        .map(of)
        .collect::<Option<_>>()
        .ok_or_else(|| "its sizes are impossible or too large".into())
}

impl Axis {
    fn elements(&self) -> Expr {
        &self.count * self.window
    }

    /// The sums of the elements along this axis of `x`, where they fall on one pixel. A zero behind
    /// them stands for those that are not there.
    fn add(&self, cx: &Builder, x: Value, axis: usize) -> Value {
        let known = self.image.as_int().zip(self.count.as_int());
        let known = known.and_then(|(image, count)| self.known_places(cx, image, count));
        let (places, all_are_there) = known.unwrap_or_else(|| (self.places(cx), false));
        let mut x = x;
        if !all_are_there {
            let last = cx.ints(&[axis as i64]);
            x = cx.pad(x, cx.ints(&[0, 1]), None, last, attrs::Pad { mode: "constant" });
        }
        let found = cx.gather(x, places, axis);
        match cx.rank(places) {
            1 => found,
            _ => cx.reduce(Reduction::Sum, found, &[axis + 1], false),
        }
    }

    /// Which elements fall on each pixel, counted window element by window element, as a matrix, or
    /// a vector if each pixel has one; and whether all rows are full. Nothing if that is too large
    /// for a constant.
    fn known_places(&self, cx: &Builder, image: i64, count: i64) -> Option<(Value, bool)> {
        let mut found = vec![Vec::new(); image as usize];
        for (k, window) in (0..self.window).flat_map(|k| (0..count).map(move |w| (k, w))) {
            let pixel = window * self.stride + k * self.dilation - self.before;
            if let Some(elements) = usize::try_from(pixel).ok().and_then(|p| found.get_mut(p)) {
                elements.push(k * count + window);
            }
        }
        let most = found.iter().map(Vec::len).max().unwrap_or(0).max(1);
        if image.checked_mul(most as i64)? > MOST {
            return None;
        }
        let full = found.iter().all(|elements| elements.len() == most);
        let zeros = std::iter::repeat(self.window * count);
        let row = |elements: Vec<i64>| elements.into_iter().chain(zeros.clone()).take(most);
        let places = cx.ints(&found.into_iter().flat_map(row).collect::<Vec<i64>>());
        Some(match most {
            1 => (places, full),
            _ => (cx.reshape(places, &[image, most as i64].map(Expr::int)), full),
        })
    }

    /// [`Self::known_places`], computed when the model runs: a column for each window that may
    /// reach a pixel, from the last one on.
    fn places(&self, cx: &Builder) -> Value {
        let reach = self.dilation * (self.window - 1);
        let columns: Vec<i64> = (0..=reach / self.stride).collect();
        let pixels = cx.add(cx.unsqueeze(cx.iota(&self.image), &[1]), self.before);
        let window = cx.sub(cx.div(pixels, self.stride), cx.ints(&columns));
        let start = cx.sub(pixels, cx.mul(window, self.stride));
        let element = cx.div(start, self.dilation);
        let whole = cx.equal(cx.mul(element, self.dilation), start);
        let count = cx.size(&self.count);
        let window_is_there = cx.and(cx.less(-1, window), cx.less(window, count));
        let is_there = cx.and(window_is_there, cx.and(whole, cx.less(element, self.window)));
        let place = cx.add(cx.mul(element, count), window);
        cx.select(is_there, place, cx.size(&self.elements()))
    }
}
