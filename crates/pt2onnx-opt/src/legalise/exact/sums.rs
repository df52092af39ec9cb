//! Operators that a runtime lacks for some element types or sizes, by others with the same sums.
//!
//! They are convolutions, average pools, instance normalization, and, of float64, recurrent
//! networks and samples of images below opset 20. ONNX Runtime has them for float32 only, in which
//! sums whose terms cancel would lose most of their digits; other runtimes have no windows over
//! volumes.

use crate::{
    Target,
    legalise::{
        Emitted, Rewritten, input,
        nn::{recurrent::Network, sampling::grid_sample},
        replace,
    },
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Reduction, Shape, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

type Emit = fn(&Builder, &Node, &Windows) -> Emitted;

/// Replaces a node of float64 that the target has no kernel for. Where sizes are not known, nothing
/// is done: `fit` inserts casts.
pub(crate) fn exact(
    model: &mut Model,
    id: NodeId,
    opset: u32,
    target: Target,
) -> Option<Rewritten> {
    if !target.is_ort() || model.dtype(model[id].input(0)?) != Some(DType::F64) {
        return None;
    }
    match model[id].op() {
        "GRU" | "LSTM" | "RNN" => {
            let network = Network::of(model, &model[id])?;
            replace(model, id, |cx, node| network.emit(cx, node)).ok()
        }
        "GridSample" if opset < 20 => replace(model, id, grid_sample).ok(),
        _ => by_products(model, id, usize::MAX),
    }
}

/// Replaces a node by gathers, sums and matrix products of values of so many dimensions at most.
pub(crate) fn by_products(model: &mut Model, id: NodeId, most: usize) -> Option<Rewritten> {
    let emit: Emit = match model[id].op() {
        "AveragePool" => average_pool,
        "Conv" => conv,
        "ConvTranspose" => conv_transpose,
        "InstanceNormalization" => instance_normalization,
        _ => return None,
    };
    let windows = Windows::of(model, &model[id])?;
    if 2 + 2 * windows.kernel.len() > most {
        return None;
    }
    replace(model, id, |cx, node| emit(cx, node, &windows)).ok()
}

/// Windows over the spatial dimensions of an input; one number or size for each dimension.
#[derive(Clone)]
struct Windows {
    kernel: Vec<Expr>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    /// Zeros before and behind the input; negative ones cut elements off.
    begins: Vec<Expr>,
    ends: Vec<Expr>,
    /// How many windows there are.
    counts: Vec<Expr>,
    /// The sizes of the result.
    result: Shape,
}

impl Windows {
    /// `None` if they are not known.
    fn of(model: &Model, node: &Node) -> Option<Self> {
        let result = model.shape(*node.outputs().first()?)?.clone();
        let from = model.shape(node.input(0)?)?.get(2..)?.to_vec();
        let n = from.len();
        let counts = result.get(2..).filter(|counts| counts.len() == n)?.to_vec();
        let whole = Self {
            kernel: vec![Expr::int(1); n],
            strides: vec![1; n],
            dilations: vec![1; n],
            begins: vec![Expr::int(0); n],
            ends: vec![Expr::int(0); n],
            counts,
            result,
        };
        let kernel = || Some(model.shape(node.input(1)?)?.get(2..)?.to_vec());
        match node.op() {
            "Conv" => {
                let a = attrs::Conv::read(node).ok().filter(|a| a.auto_pad == "NOTSET")?;
                Some(whole.with(kernel()?, [a.strides, a.dilations, a.pads])?.counted(&from))
            }
            "ConvTranspose" => {
                let a = attrs::ConvTranspose::read(node).ok();
                let a = a.filter(|a| a.auto_pad == "NOTSET" && a.output_shape.is_none())?;
                let windows = whole.with(kernel()?, [a.strides, a.dilations, a.pads])?;
                let longer = a.output_padding.unwrap_or_else(|| vec![0; n]);
                (longer.len() == n).then(|| windows.transposed(&from, &longer))
            }
            "AveragePool" => {
                let a = attrs::AveragePool::read(node).ok().filter(|a| a.auto_pad == "NOTSET")?;
                let kernel = attrs::AveragePool::kernel_shape(node).ok()?;
                let windows = whole.with(
                    kernel.iter().map(|&k| Expr::int(k)).collect(),
                    [a.strides, a.dilations, a.pads],
                )?;
                Some(if a.ceil_mode { windows } else { windows.counted(&from) })
            }
            _ => Some(whole),
        }
    }

    /// With the kernel, the strides, the dilations and the pads of a node.
    fn with(self, kernel: Vec<Expr>, given: [Option<Vec<i64>>; 3]) -> Option<Self> {
        let n = self.kernel.len();
        let [strides, dilations, pads] = given;
        let pads = pads.unwrap_or_else(|| vec![0; 2 * n]);
        let strides = strides.unwrap_or(self.strides);
        let dilations = dilations.unwrap_or(self.dilations);
        let fits = [kernel.len(), strides.len(), dilations.len()].iter().all(|&l| l == n);
        if !fits || pads.len() != 2 * n {
            return None;
        }
        let mut begins: Vec<Expr> = pads.iter().map(|&pad| Expr::int(pad)).collect();
        let ends = begins.split_off(n);
        Some(Self { kernel, strides, dilations, begins, ends, ..self })
    }

    /// With as many windows as fit into an input of these sizes. Recorded sizes may have symbols
    /// that nothing computes.
    fn counted(mut self, from: &[Expr]) -> Self {
        for (i, from) in from.iter().enumerate() {
            let room = from + &self.ends[i] + &self.begins[i] - self.length(i);
            self.counts[i] = room.floor_div(&Expr::int(self.strides[i])) + 1;
        }
        self.result.truncate(2);
        self.result.extend(self.counts.iter().cloned());
        self
    }

    /// The windows of a transposed convolution over its input with `stride - 1` zeros behind each
    /// element: one at each element.
    fn transposed(mut self, from: &[Expr], longer: &[i64]) -> Self {
        let strides = std::mem::replace(&mut self.strides, vec![1; longer.len()]);
        for (i, longer) in longer.iter().enumerate() {
            let margin = self.length(i) - 1;
            self.begins[i] = &margin - &self.begins[i];
            self.ends[i] = margin - &self.ends[i] + (longer - (strides[i] - 1));
        }
        let spread: Vec<Expr> = from.iter().zip(&strides).map(|(from, &s)| from * s).collect();
        self.counted(&spread)
    }

    /// How many elements a window spans along dimension `i`.
    fn length(&self, i: usize) -> Expr {
        (&self.kernel[i] - 1) * self.dilations[i] + 1
    }

    /// How far the windows reach along dimension `i`.
    fn reach(&self, i: usize) -> Expr {
        (&self.counts[i] - 1) * self.strides[i] + self.length(i)
    }

    /// `(batch, channels, windows, elements, windows, elements, ..)` from `(batch, channels, ..)`.
    fn gather(&self, cx: &Builder, x: Value) -> Value {
        let pads = [&self.begins[..], &self.ends[..]].concat();
        let x = if pads.iter().all(|p| p.as_int() == Some(0)) {
            x
        } else {
            let axes: Vec<i64> = (2..).take(self.begins.len()).collect();
            let mode = attrs::Pad { mode: "constant" };
            cx.pad(x, cx.sizes(&pads), None, cx.ints(&axes), mode)
        };
        self.strides.iter().enumerate().fold(x, |x, (i, &stride)| {
            let axis = 2 + 2 * i;
            if self.kernel[i] == Expr::int(1) && stride == 1 {
                return cx.unsqueeze(x, &[axis + 1]);
            }
            cx.gather(x, self.places(cx, i), axis)
        })
    }

    /// The `(windows, elements)` places of the elements of each window along dimension `i`.
    fn places(&self, cx: &Builder, i: usize) -> Value {
        let (stride, dilation) = (self.strides[i], self.dilations[i]);
        let known = self.counts[i].as_int().zip(self.kernel[i].as_int());
        let table = known.filter(|&(n, k)| n >= 0 && k >= 0 && n.saturating_mul(k) <= 1 << 16);
        let table = table.and_then(|(n, k)| {
            let all = (0..n).flat_map(|j| (0..k).map(move |k| j * stride + k * dilation));
            Tensor::from_slice(vec![n as usize, k as usize], &all.collect::<Vec<i64>>()).ok()
        });
        match table {
            Some(table) => cx.constant(table),
            None => {
                let starts = cx.mul(cx.iota(&self.counts[i]), stride);
                cx.add(cx.unsqueeze(starts, &[1]), cx.mul(cx.iota(&self.kernel[i]), dilation))
            }
        }
    }

    /// The products of windows and rows `(groups, out / groups, elements)`: [`Windows::result`].
    fn products(&self, cx: &Builder, gathered: Value, rows: Value) -> Value {
        let n = self.kernel.len();
        let elements = (0..n).map(|i| 3 + 2 * i);
        let order: Vec<usize> =
            [0, 1].into_iter().chain(elements).chain((0..n).map(|i| 2 + 2 * i)).collect();
        let (groups, depth) = (cx.dim(rows, 0), cx.dim(rows, 2));
        let count = Expr::product(self.counts.clone());
        let columns = cx.transpose(gathered, &order);
        let columns = cx.reshape(columns, &[self.result[0].clone(), groups, depth, count]);
        cx.reshape(cx.matmul(rows, columns), &self.result)
    }
}

/// The result with a bias for each channel.
fn biased(cx: &Builder, node: &Node, result: Value) -> Value {
    let spatial: Vec<usize> = (1..cx.rank(result) - 1).collect();
    node.input(2).map_or(result, |bias| cx.add(result, cx.unsqueeze(bias, &spatial)))
}

/// For each group, the products of its windows and its rows of the weight.
fn conv(cx: &Builder, node: &Node, windows: &Windows) -> Emitted {
    let (x, weight) = (input(node, 0)?, input(node, 1)?);
    let group = Expr::int(attrs::Conv::read(node)?.group);
    let depth = Expr::product(cx.shape(weight)[1..].to_vec());
    let rows = [group.clone(), cx.dim(weight, 0).floor_div(&group), depth];
    let gathered = windows.gather(cx, x);
    let result = windows.products(cx, gathered, cx.reshape(weight, &rows));
    Ok(vec![biased(cx, node, result)])
}

/// The convolution of the input, zeros between its elements, with the weight read backwards.
fn conv_transpose(cx: &Builder, node: &Node, windows: &Windows) -> Emitted {
    let (mut x, weight) = (input(node, 0)?, input(node, 1)?);
    let n = windows.kernel.len();
    let options = attrs::ConvTranspose::read(node)?;
    let strides = options.strides.unwrap_or_else(|| vec![1; n]);
    for (i, &stride) in strides.iter().enumerate().filter(|(_, s)| **s > 1) {
        let (axis, mut sizes) = (2 + i, cx.shape(x));
        let mut pads = vec![0; 2 * (sizes.len() + 1)];
        pads[sizes.len() + 1 + axis + 1] = stride - 1;
        let apart = cx.unsqueeze(x, &[axis + 1]);
        let pads = cx.ints(&pads);
        let apart = cx.pad(apart, pads, None, None, attrs::Pad { mode: "constant" });
        sizes[axis] = &sizes[axis] * stride;
        x = cx.reshape(apart, &sizes);
    }
    let group = Expr::int(options.group);
    let spatial: Vec<i64> = (2..).take(n).collect();
    let all = |v: i64| cx.ints(&vec![v; n]);
    let reversed = cx.slice_op(weight, all(-1), all(i64::MIN), cx.ints(&spatial), all(-1));
    let kernel = cx.shape(weight)[2..].to_vec();
    let (channels, each) = (cx.dim(weight, 0).floor_div(&group), cx.dim(weight, 1));
    let sizes = [&[group.clone(), channels.clone(), each.clone()], &kernel[..]].concat();
    let order: Vec<usize> = [0, 2, 1].into_iter().chain(3..3 + n).collect();
    let reversed = cx.transpose(cx.reshape(reversed, &sizes), &order);
    let rows = [group, each, channels * Expr::product(kernel)];
    let gathered = windows.gather(cx, x);
    let result = windows.products(cx, gathered, cx.reshape(reversed, &rows));
    Ok(vec![biased(cx, node, result)])
}

/// The sums of the windows, divided by how many of their elements count.
fn average_pool(cx: &Builder, node: &Node, windows: &Windows) -> Emitted {
    let x = input(node, 0)?;
    let options = attrs::AveragePool::read(node)?;
    let n = windows.kernel.len();
    let (begins, dims) = (&windows.begins, cx.shape(x)[2..].to_vec());
    // A last window may reach past the padding.
    let missing = |i: usize| {
        let padded = &dims[i] + &windows.ends[i] + &begins[i];
        Expr::max(&(windows.reach(i) - padded), &Expr::int(0))
    };
    let missing: Vec<Expr> =
        if options.ceil_mode { (0..n).map(missing).collect() } else { vec![Expr::int(0); n] };
    let ends = windows.ends.iter().zip(&missing).map(|(end, more)| end + more).collect();
    let all = Windows { ends, ..windows.clone() };
    let elements: Vec<usize> = (0..n).map(|i| 3 + 2 * i).collect();
    let sums = cx.reduce(Reduction::Sum, all.gather(cx, x), &elements, false);
    let any = |sizes: &[Expr]| sizes.iter().any(|e| *e != Expr::int(0));
    let padded = any(begins) || any(&windows.ends);
    let partial = padded && !options.count_include_pad || any(&missing);
    if !partial {
        let size = cx.size(&Expr::product(windows.kernel.clone()));
        return Ok(vec![cx.div(sums, cx.cast(size, cx.dtype(x)))]);
    }
    let mut means = sums;
    for i in 0..n {
        // Along this dimension, the elements that count are those from `first` up to `end`.
        let (first, end) = if options.count_include_pad {
            (Expr::int(0), &dims[i] + &windows.ends[i] + &begins[i])
        } else {
            (begins[i].clone(), &dims[i] + &begins[i])
        };
        let places = all.places(cx, i);
        let started = cx.greater_or_equal(places, cx.size(&first));
        let inside = cx.and(started, cx.less(places, cx.size(&end)));
        let count = cx.reduce(Reduction::Sum, cx.cast(inside, cx.dtype(x)), &[1], false);
        let behind: Vec<usize> = (1..n - i).collect();
        means = cx.div(means, cx.unsqueeze(count, &behind));
    }
    Ok(vec![means])
}

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias` for each channel of each item.
fn instance_normalization(cx: &Builder, node: &Node, _: &Windows) -> Emitted {
    let (x, scale, bias) = (input(node, 0)?, input(node, 1)?, input(node, 2)?);
    let epsilon = f64::from(attrs::InstanceNormalization::read(node)?.epsilon);
    let axes: Vec<usize> = (2..cx.rank(x)).collect();
    let spatial: Vec<usize> = (1..cx.rank(x) - 1).collect();
    let mean = |x| cx.reduce(Reduction::Mean, x, &axes, true);
    let centred = cx.sub(x, mean(x));
    let variance = mean(cx.mul(centred, centred));
    let normal = cx.div(centred, cx.sqrt(cx.add(variance, epsilon)));
    let [scale, bias] = [scale, bias].map(|v| cx.unsqueeze(v, &spatial));
    Ok(vec![cx.add(cx.mul(normal, scale), bias)])
}
