//! Operators that ONNX Runtime has for float32 only, in float64: convolutions, average pools and instance normalization become
//! others with the same sums. In float32, sums whose terms cancel would lose most of their digits.

use super::{
    error::Reason,
    forms::input,
    replace::{Done, replace},
};
use crate::{
    facts::{dtype, shape},
    target::Target,
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Reduction, Shape, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

type Emit = fn(&Builder, &Node, &Windows) -> Result<Vec<Value>, Reason>;

/// Replaces a node of float64 that the target has no kernel for. Where sizes are not known, nothing is done: `fit` inserts casts.
pub(super) fn exact(model: &mut Model, id: NodeId, target: Target) -> Option<Done> {
    if !matches!(target, Target::Ort | Target::OrtCpu) {
        return None;
    }
    let emit: Emit = match model[id].op() {
        "AveragePool" => average_pool,
        "Conv" => conv,
        "ConvTranspose" => conv_transpose,
        "InstanceNormalization" => instance_normalization,
        _ => return None,
    };
    if dtype(model, model[id].input(0)?) != Some(DType::F64) {
        return None;
    }
    let windows = Windows::of(model, &model[id])?;
    replace(model, id, |cx, node| emit(cx, node, &windows)).ok()
}

/// The windows of a node over the spatial dimensions of its input; one number for each dimension.
struct Windows {
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    /// Zeros before and behind the input; negative ones cut elements off.
    begins: Vec<i64>,
    ends: Vec<Expr>,
    /// How many windows there are.
    counts: Vec<Expr>,
    /// The sizes of the result.
    result: Shape,
}

impl Windows {
    /// `None` if they are not known.
    fn of(model: &Model, node: &Node) -> Option<Self> {
        let result = shape(model, *node.outputs().first()?)?.clone();
        let from = shape(model, node.input(0)?)?.get(2..)?.to_vec();
        let n = from.len();
        let counts = result.get(2..).filter(|counts| counts.len() == n)?.to_vec();
        let whole = Self {
            kernel: vec![1; n],
            strides: vec![1; n],
            dilations: vec![1; n],
            begins: vec![0; n],
            ends: vec![Expr::int(0); n],
            counts,
            result,
        };
        let kernel = || {
            let weight = shape(model, node.input(1)?)?.get(2..)?;
            weight.iter().map(Expr::as_int).collect::<Option<Vec<i64>>>()
        };
        match node.op() {
            "Conv" => {
                let a = attrs::Conv::read(node).ok().filter(|a| a.auto_pad == "NOTSET")?;
                whole.with(kernel()?, [a.strides, a.dilations, a.pads])
            }
            "ConvTranspose" => {
                let a = attrs::ConvTranspose::read(node).ok();
                let a = a.filter(|a| a.auto_pad == "NOTSET" && a.output_shape.is_none())?;
                let windows = whole.with(kernel()?, [a.strides, a.dilations, a.pads])?;
                windows.transposed(&a.output_padding.unwrap_or_else(|| vec![0; n]))
            }
            "AveragePool" => {
                let a = attrs::AveragePool::read(node).ok().filter(|a| a.auto_pad == "NOTSET")?;
                let kernel = attrs::AveragePool::kernel_shape(node).ok()?;
                whole.with(kernel.to_vec(), [a.strides, a.dilations, a.pads])
            }
            _ => Some(whole),
        }
    }

    /// With the kernel, the strides, the dilations and the pads of a node.
    fn with(self, kernel: Vec<i64>, given: [Option<Vec<i64>>; 3]) -> Option<Self> {
        let n = self.kernel.len();
        let [strides, dilations, pads] = given;
        let pads = pads.unwrap_or_else(|| vec![0; 2 * n]);
        let strides = strides.unwrap_or(self.strides);
        let dilations = dilations.unwrap_or(self.dilations);
        let fits = [&kernel, &strides, &dilations].iter().all(|v| v.len() == n);
        if !fits || pads.len() != 2 * n {
            return None;
        }
        let (begins, ends) = pads.split_at(n);
        let ends = ends.iter().map(|&end| Expr::int(end)).collect();
        Some(Self { kernel, strides, dilations, begins: begins.to_vec(), ends, ..self })
    }

    /// The windows of a transposed convolution over its input with `stride - 1` zeros behind each element.
    fn transposed(mut self, output_padding: &[i64]) -> Option<Self> {
        for (i, &longer) in output_padding.iter().enumerate() {
            let reach = self.dilations.get(i)? * (self.kernel.get(i)? - 1);
            self.begins[i] = reach - self.begins[i];
            self.ends[i] = &(-&self.ends[i]) + (reach + longer - (self.strides[i] - 1));
        }
        Some(self)
    }

    /// How far the windows reach along dimension `i`.
    fn reach(&self, i: usize) -> Expr {
        (&self.counts[i] - 1) * self.strides[i] + (self.dilations[i] * (self.kernel[i] - 1) + 1)
    }

    /// The elements of `x` `(batch, channels, ..)` in each window: `(batch, channels, windows, elements, windows, elements, ..)`.
    fn gather(&self, cx: &Builder, x: Value, strides: &[i64]) -> Value {
        let pads = || self.begins.iter().map(|&b| Expr::int(b)).chain(self.ends.iter().cloned());
        let x = match pads().all(|p| p.as_int() == Some(0)) {
            true => x,
            false => {
                let axes: Vec<i64> = (2..).take(self.begins.len()).collect();
                let mode = attrs::Pad { mode: "constant" };
                cx.pad(x, cx.sizes(&pads().collect::<Vec<_>>()), None, cx.ints(&axes), mode)
            }
        };
        strides.iter().enumerate().fold(x, |x, (i, &stride)| {
            let axis = 2 + 2 * i;
            if self.kernel[i] == 1 && stride == 1 {
                return cx.unsqueeze(x, &[axis + 1]);
            }
            cx.gather(x, self.places(cx, i, stride), axis)
        })
    }

    /// The `(windows, elements)` places of the elements of each window along dimension `i`.
    fn places(&self, cx: &Builder, i: usize, stride: i64) -> Value {
        let (kernel, dilation) = (self.kernel[i], self.dilations[i]);
        let elements: Vec<i64> = (0..kernel).map(|k| k * dilation).collect();
        let known = self.counts[i].as_int().filter(|&n| (0..=1 << 16).contains(&n));
        let table = known.and_then(|n| {
            let all = (0..n).flat_map(|j| elements.iter().map(move |k| j * stride + k));
            let all: Vec<i64> = all.collect();
            Tensor::from_slice(vec![n as usize, elements.len()], &all).ok()
        });
        match table {
            Some(table) => cx.constant(table),
            None => {
                let starts = cx.mul(cx.iota(&self.counts[i]), stride);
                cx.add(cx.unsqueeze(starts, &[1]), cx.ints(&elements))
            }
        }
    }

    /// The products of windows and rows of a weight `(groups, out / groups, elements)`; [`Windows::result`].
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
fn conv(cx: &Builder, node: &Node, windows: &Windows) -> Result<Vec<Value>, Reason> {
    let (x, weight) = (input(node, 0)?, input(node, 1)?);
    let group = Expr::int(attrs::Conv::read(node)?.group);
    let depth = Expr::product(cx.shape(weight)[1..].to_vec());
    let rows = [group.clone(), cx.dim(weight, 0).floor_div(&group), depth];
    let gathered = windows.gather(cx, x, &windows.strides);
    let result = windows.products(cx, gathered, cx.reshape(weight, &rows));
    Ok(vec![biased(cx, node, result)])
}

/// The convolution of the input, zeros between its elements, with the weight read backwards.
fn conv_transpose(cx: &Builder, node: &Node, windows: &Windows) -> Result<Vec<Value>, Reason> {
    let (mut x, weight) = (input(node, 0)?, input(node, 1)?);
    let n = windows.kernel.len();
    for (i, &stride) in windows.strides.iter().enumerate().filter(|(_, s)| **s > 1) {
        let (axis, mut sizes) = (2 + i, cx.shape(x));
        let mut pads = vec![0; 2 * (sizes.len() + 1)];
        pads[sizes.len() + 1 + axis + 1] = stride - 1;
        let apart = cx.unsqueeze(x, &[axis + 1]);
        let pads = cx.ints(&pads);
        let apart = cx.pad(apart, pads, None, None, attrs::Pad { mode: "constant" });
        sizes[axis] = &sizes[axis] * stride;
        x = cx.reshape(apart, &sizes);
    }
    let group = Expr::int(attrs::ConvTranspose::read(node)?.group);
    let spatial: Vec<i64> = (2..).take(n).collect();
    let all = |v: i64| cx.ints(&vec![v; n]);
    let reversed = cx.slice_op(weight, all(-1), all(i64::MIN), cx.ints(&spatial), all(-1));
    let kernel = cx.shape(weight)[2..].to_vec();
    let (channels, each) = (cx.dim(weight, 0).floor_div(&group), cx.dim(weight, 1));
    let sizes = [&[group.clone(), channels.clone(), each.clone()], &kernel[..]].concat();
    let order: Vec<usize> = [0, 2, 1].into_iter().chain(3..3 + n).collect();
    let reversed = cx.transpose(cx.reshape(reversed, &sizes), &order);
    let rows = [group, each, channels * Expr::product(kernel)];
    let gathered = windows.gather(cx, x, &vec![1; n]);
    let result = windows.products(cx, gathered, cx.reshape(reversed, &rows));
    Ok(vec![biased(cx, node, result)])
}

/// The sums of the windows, divided by how many of their elements count.
fn average_pool(cx: &Builder, node: &Node, windows: &Windows) -> Result<Vec<Value>, Reason> {
    let x = input(node, 0)?;
    let options = attrs::AveragePool::read(node)?;
    let n = windows.kernel.len();
    let (begins, dims) = (&windows.begins, cx.shape(x)[2..].to_vec());
    // A last window may reach past the padding.
    let missing = |i: usize| {
        let padded = &dims[i] + &windows.ends[i] + begins[i];
        Expr::max(&(windows.reach(i) - padded), &Expr::int(0))
    };
    let missing: Vec<Expr> = match options.ceil_mode {
        true => (0..n).map(missing).collect(),
        false => vec![Expr::int(0); n],
    };
    let ends = windows.ends.iter().zip(&missing).map(|(end, more)| end + more).collect();
    let all = Windows {
        kernel: windows.kernel.clone(),
        strides: windows.strides.clone(),
        dilations: windows.dilations.clone(),
        begins: begins.clone(),
        ends,
        counts: windows.counts.clone(),
        result: windows.result.clone(),
    };
    let elements: Vec<usize> = (0..n).map(|i| 3 + 2 * i).collect();
    let sums = cx.reduce(Reduction::Sum, all.gather(cx, x, &all.strides), &elements, false);
    let padded = begins.iter().any(|&b| b != 0) || windows.ends.iter().any(|e| *e != Expr::int(0));
    let partial =
        padded && !options.count_include_pad || missing.iter().any(|m| *m != Expr::int(0));
    if !partial {
        return Ok(vec![cx.div(sums, windows.kernel.iter().product::<i64>() as f64)]);
    }
    let mut counts = sums;
    for i in 0..n {
        // Along this dimension, the elements that count are those from `first` up to `end`.
        let (first, end) = match options.count_include_pad {
            true => (0, &dims[i] + &windows.ends[i] + begins[i]),
            false => (begins[i], &dims[i] + begins[i]),
        };
        let places = all.places(cx, i, all.strides[i]);
        let inside = cx.and(cx.greater_or_equal(places, first), cx.less(places, cx.size(&end)));
        let count = cx.reduce(Reduction::Sum, cx.cast(inside, DType::F64), &[1], false);
        let behind: Vec<usize> = (1..n - i).collect();
        counts = cx.div(counts, cx.unsqueeze(count, &behind));
    }
    Ok(vec![counts])
}

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias` for each channel of each element of the batch.
fn instance_normalization(cx: &Builder, node: &Node, _: &Windows) -> Result<Vec<Value>, Reason> {
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
