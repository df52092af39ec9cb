//! Shape rules, and the table that gives each operator its rule.

use super::{
    facts::InferError,
    images,
    moves::*,
    node::{Node, axes},
    shape::{product, without},
};
use crate::{traits::Traits, types::Shape};
use pt2onnx_symbolic::Expr;

/// Shapes of a node's outputs. The list may be shorter than the outputs: nothing is known of the
/// others.
pub(super) fn shapes(n: &Node) -> Vec<Option<Shape>> {
    let traits = n.node.traits();
    match n.node.op() {
        _ if traits.contains(Traits::SAME_SHAPE) => vec![n.shape(0)],
        _ if traits.contains(Traits::BROADCASTING) => vec![broadcast_inputs(n)],
        _ if traits.contains(Traits::REDUCTION) => vec![reduce(n)],
        _ if traits.contains(Traits::POOL) => vec![pool(n); 2],
        "MatMul" | "MatMulInteger" => vec![matmul(n, 1)],
        "QLinearMatMul" => vec![matmul(n, 3)],
        "Gemm" => vec![gemm(n)],
        "Conv" | "ConvInteger" | "DeformConv" => vec![conv(n, 1)],
        "QLinearConv" => vec![conv(n, 3)],
        "ConvTranspose" => vec![images::conv_transpose(n)],
        "GridSample" => vec![images::grid_sample(n)],
        "RoiAlign" => vec![images::roi_align(n)],
        "MaxRoiPool" => vec![images::max_roi_pool(n)],
        "Col2Im" => vec![images::col2im(n)],
        "AffineGrid" => vec![images::affine_grid(n)],
        "NonMaxSuppression" => vec![Some(vec![n.unknown_dim(), Expr::int(3)])],
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => vec![global_pool(n)],
        "ArgMax" | "ArgMin" => vec![arg_reduce(n)],
        "Concat" => vec![concat(n)],
        "Gather" => vec![gather(n)],
        "GatherElements" => vec![gather_elements(n)],
        "GatherND" => vec![gather_nd(n)],
        "Reshape" => vec![reshape(n)],
        "Flatten" => vec![flatten(n)],
        "Expand" => vec![expand(n)],
        "Transpose" => vec![transpose(n)],
        "Squeeze" => vec![squeeze(n)],
        "Unsqueeze" => vec![unsqueeze(n)],
        "Tile" => vec![tile(n)],
        "Pad" => vec![pad(n)],
        "Slice" => vec![slice(n)],
        "Split" => split(n),
        "Shape" => vec![shape(n)],
        "Size" | "SequenceLength" | "OptionalHasElement" => vec![Some(vec![])],
        "ConstantOfShape" => vec![n.contents(0).or_else(|| n.dims_of(0))],
        "Range" => vec![Some(vec![range_length(n)])],
        "OneHot" => vec![one_hot(n)],
        "TopK" => vec![top_k(n); 2],
        "NonZero" => vec![n.shape(0).map(|s| vec![Expr::int(s.len() as i64), n.unknown_dim()])],
        "Compress" => vec![compress(n)],
        "Unique" => unique(n),
        "Resize" => vec![resize(n)],
        "DepthToSpace" | "SpaceToDepth" => vec![depth_space(n)],
        "Einsum" => vec![einsum(n)],
        "Dropout" => vec![n.shape(0); 2],
        "BatchNormalization" => {
            let channels = n.shape(1);
            n.equal_channels();
            vec![n.shape(0), channels.clone(), channels]
        }
        "InstanceNormalization" => {
            n.equal_channels();
            vec![n.shape(0)]
        }
        "PRelu" => {
            vec![n.shape(0).map(|x| n.shape(1).map_or(x.clone(), |slope| n.broadcast(&x, &slope)))]
        }
        "Det" => vec![det(n)],
        "LayerNormalization" => {
            if let (Some(x), Some(scale)) = (n.shape(0), n.shape(1)) {
                n.broadcast(&x, &scale);
            }
            vec![n.shape(0), layer_norm_statistics(n), layer_norm_statistics(n)]
        }
        "LSTM" | "GRU" | "RNN" => recurrent(n),
        "Attention" => vec![attention(n)],
        "DFT" => vec![transformed(n)],
        "RandomNormal" | "RandomUniform" => {
            vec![n.ints("shape").map(|sizes| sizes.iter().map(|&d| Expr::int(d)).collect())]
        }
        "Multinomial" => {
            let count = n.int("sample_size").unwrap_or(1);
            vec![n.shape(0).and_then(|x| Some(vec![x.first()?.clone(), Expr::int(count)]))]
        }
        "BlackmanWindow" | "HammingWindow" | "HannWindow" => {
            vec![Some(vec![n.first(0).unwrap_or_else(|| n.unknown_dim())])]
        }
        "NegativeLogLikelihoodLoss" | "SoftmaxCrossEntropyLoss" => {
            let each = n.string("reduction") == Some("none");
            vec![if each { n.shape(1) } else { Some(vec![]) }, n.shape(0)]
        }
        "DynamicQuantizeLinear" => vec![n.shape(0), Some(vec![]), Some(vec![])],
        _ => Vec::new(),
    }
}

/// `DFT`: complex numbers as the last dimension, and as many along the transformed one as there
/// are, are asked for, or half of them.
fn transformed(n: &Node) -> Option<Shape> {
    let mut x = n.shape(0)?;
    let parts = x.len().checked_sub(1)?;
    let flag = |name| n.int(name) == Some(1);
    if flag("onesided") && flag("inverse") {
        // The result depends on the opset.
        return Some(x.iter().map(|_| n.unknown_dim()).collect());
    }
    let axis = match n.input(2) {
        None => pt2onnx_symbolic::axis(-2, x.len()),
        Some(_) => n.numbers(2).and_then(|axis| pt2onnx_symbolic::axis(*axis.first()?, x.len())),
    };
    x[parts] = Expr::int(2);
    let Some(axis) = axis.filter(|&a| a != parts) else {
        x[..parts].iter_mut().for_each(|d| *d = n.unknown_dim());
        return Some(x);
    };
    let length = match n.input(1) {
        None => Some(x[axis].clone()),
        Some(_) => n.first(1),
    };
    let half = |length: Expr| length.floor_div(&Expr::int(2)) + Expr::int(1);
    let length = length.map(|length| if flag("onesided") { half(length) } else { length });
    x[axis] = length.unwrap_or_else(|| n.unknown_dim());
    Some(x)
}

fn broadcast_inputs(n: &Node) -> Option<Shape> {
    let mut result = Shape::new();
    for i in 0..n.node.inputs().len() {
        result = n.broadcast(&result, &n.shape(i)?);
    }
    Some(result)
}

/// A product of the first input and the input `right`.
fn matmul(n: &Node, right: usize) -> Option<Shape> {
    let (a, b) = (n.shape(0)?, n.shape(right)?);
    let rows = b.len().saturating_sub(2);
    n.equal(a.last()?, b.get(rows)?);
    product(&a, &b, |a, b| n.broadcast(a, b))
}

/// The result of `Attention`, which is like the queries with as many features as the values have.
fn attention(n: &Node) -> Option<Shape> {
    let (mut result, values) = (n.shape(0)?, n.shape(2)?);
    let wide = values.last()?.clone();
    *result.last_mut()? = match values.len() {
        4 => wide,
        // All heads side by side.
        _ => {
            Expr::int(wide.as_int()?.checked_div(n.int("kv_num_heads")?)?) * n.int("q_num_heads")?
        }
    };
    Some(result)
}

fn gemm(n: &Node) -> Option<Shape> {
    let (a, b) = (n.shape(0)?, n.shape(1)?);
    let pick =
        |s: &[Expr], transposed: bool, i: usize| s.get(if transposed { 1 - i } else { i }).cloned();
    let (turn_a, turn_b) = (n.flag("transA", false), n.flag("transB", false));
    n.equal(&pick(&a, turn_a, 1)?, &pick(&b, turn_b, 0)?);
    Some(vec![pick(&a, turn_a, 0)?, pick(&b, turn_b, 1)?])
}

/// Output length of a sliding window along one dimension.
fn window(
    n: &Node,
    size: &Expr,
    kernel: &Expr,
    (stride, dilation, pads): (i64, i64, i64),
    ceil: bool,
) -> Expr {
    let (padded, wide) = (size + pads, (kernel - 1) * dilation + 1);
    // The last window may run over the end.
    let over = if ceil { stride - 1 } else { 0 };
    let span = &padded - &wide + over;
    if span.as_int().is_some_and(|s| s < 0) {
        n.fail(InferError::Window(wide, padded));
    }
    span.floor_div(&Expr::int(stride)) + 1
}

fn windows(n: &Node, spatial: &[Expr], kernel: &[Expr]) -> Option<Shape> {
    let k = spatial.len();
    if kernel.len() != k {
        return None;
    }
    if n.string("auto_pad").is_some_and(|p| p != "NOTSET") {
        return Some((0..k).map(|_| n.unknown_dim()).collect());
    }
    let per_dim = |name: &str, i: usize| n.ints(name).and_then(|v| v.get(i).copied()).unwrap_or(1);
    let pads = |i: usize| {
        n.ints("pads").map_or(0, |p| p.get(i).unwrap_or(&0) + p.get(i + k).unwrap_or(&0))
    };
    let ceil = n.flag("ceil_mode", false);
    let one = |i: usize| {
        let (stride, dilation) = (per_dim("strides", i), per_dim("dilations", i));
        let moves = (stride, dilation, pads(i));
        if !ceil || stride <= 1 {
            return window(n, &spatial[i], &kernel[i], moves, false);
        }
        // A last window that starts in the padding is dropped, if there is one.
        if !spatial[i].is_static() {
            return n.unknown_dim();
        }
        let start = n.ints("pads").and_then(|p| p.get(i).copied()).unwrap_or(0);
        let full = window(n, &spatial[i], &kernel[i], moves, true);
        let last = &full - 1;
        let outside = &last * stride - &spatial[i] - start;
        if outside.as_int().is_some_and(|outside| outside >= 0) { last } else { full }
    };
    Some((0..k).map(one).collect())
}

/// A convolution of the first input with the input `weight`.
fn conv(n: &Node, weight: usize) -> Option<Shape> {
    let (x, w) = (n.shape(0)?, n.shape(weight)?);
    n.equal(x.get(1)?, &(w.get(1)? * n.int("group").unwrap_or(1)));
    let mut result = vec![x.first()?.clone(), w.first()?.clone()];
    result.extend(windows(n, x.get(2..)?, w.get(2..)?)?);
    Some(result)
}

fn pool(n: &Node) -> Option<Shape> {
    let x = n.shape(0)?;
    let kernel: Vec<Expr> = n.ints("kernel_shape")?.iter().map(|&k| Expr::int(k)).collect();
    let mut result = x.get(..2)?.to_vec();
    result.extend(windows(n, &x[2..], &kernel)?);
    Some(result)
}

fn global_pool(n: &Node) -> Option<Shape> {
    let x = n.shape(0)?;
    Some(x.into_iter().enumerate().map(|(i, d)| if i < 2 { d } else { Expr::int(1) }).collect())
}

fn reduce(n: &Node) -> Option<Shape> {
    let x = n.shape(0)?;
    let given = n.input(1).map_or(Some(Vec::new()), |_| n.numbers(1))?;
    let axes: Vec<usize> = if given.is_empty() && !n.flag("noop_with_empty_axes", false) {
        (0..x.len()).collect()
    } else {
        axes(&given, x.len())?
    };
    Some(without(x, &axes, n.flag("keepdims", true)))
}

fn arg_reduce(n: &Node) -> Option<Shape> {
    let x = n.shape(0)?;
    let axis = n.axis(0, x.len())?;
    Some(without(x, &[axis], n.flag("keepdims", true)))
}

/// `Shape`: a vector with one element for each dimension from `start` to `end`, both clamped to the
/// rank. It is one even if the rank is not known.
fn shape(n: &Node) -> Option<Shape> {
    let Some(rank) = n.shape(0).map(|shape| shape.len() as i64) else {
        return Some(vec![n.unknown_dim()]);
    };
    let held = |i: i64| (if i < 0 { i.saturating_add(rank) } else { i }).clamp(0, rank);
    let (start, end) = (n.int("start").unwrap_or(0), n.int("end").unwrap_or(rank));
    Some(vec![Expr::int((held(end) - held(start)).max(0))])
}

fn range_length(n: &Node) -> Expr {
    let known = (|| {
        let (start, end, step) = (n.contents(0)?, n.contents(1)?, n.numbers(2)?);
        let step = step.first().copied().filter(|&s| s > 0)?;
        let span = end.first()? - start.first()?;
        let zero = Expr::int(0);
        let positive = n.facts.constraints.prove_ge(&span, &zero);
        let span = if positive { span } else { Expr::max(&span, &zero) };
        Some((span + (step - 1)).floor_div(&Expr::int(step)))
    })();
    known.unwrap_or_else(|| n.unknown_dim())
}

fn one_hot(n: &Node) -> Option<Shape> {
    let mut x = n.shape(0)?;
    let depth = n.first(1).unwrap_or_else(|| n.unknown_dim());
    x.insert(n.axis(-1, x.len() + 1)?, depth);
    Some(x)
}

fn top_k(n: &Node) -> Option<Shape> {
    let mut x = n.shape(0)?;
    let axis = n.axis(-1, x.len())?;
    let count = n.first(1);
    count.iter().for_each(|k| n.at_most(k, &x[axis]));
    x[axis] = count.unwrap_or_else(|| n.unknown_dim());
    Some(x)
}

fn det(n: &Node) -> Option<Shape> {
    let mut x = n.shape(0)?;
    let (columns, rows) = (x.pop()?, x.pop()?);
    n.equal(&rows, &columns);
    Some(x)
}

fn compress(n: &Node) -> Option<Shape> {
    let mut x = n.shape(0)?;
    match n.int("axis") {
        None => x = vec![n.unknown_dim()],
        Some(axis) => {
            let axis = pt2onnx_symbolic::axis(axis, x.len())?;
            x[axis] = n.unknown_dim();
        }
    }
    Some(x)
}

/// `Unique`: the number of distinct elements is not known, but it is the same dimension in all
/// outputs.
fn unique(n: &Node) -> Vec<Option<Shape>> {
    let outputs = || {
        let mut x = n.shape(0)?;
        let found = n.unknown_dim();
        let all = match n.int("axis") {
            None => {
                let all = Expr::product(x);
                x = vec![found.clone()];
                all
            }
            Some(axis) => {
                let axis = pt2onnx_symbolic::axis(axis, x.len())?;
                std::mem::replace(&mut x[axis], found.clone())
            }
        };
        Some([x, vec![found.clone()], vec![all], vec![found]])
    };
    outputs().into_iter().flatten().map(Some).collect()
}

fn resize(n: &Node) -> Option<Shape> {
    let mut x = n.shape(0)?;
    let axes = n.ints("axes").map_or(Some((0..x.len()).collect()), |a| axes(a, x.len()))?;
    let stretched = n.string("keep_aspect_ratio_policy").is_none_or(|p| p == "stretch");
    let sizes = n.contents(3).filter(|_| stretched);
    // A region of interest changes what a scale is of.
    let cropped = n.string("coordinate_transformation_mode") == Some("tf_crop_and_resize");
    let scales = n.input(2).filter(|_| n.input(3).is_none() && !cropped);
    let scales = scales.and_then(|v| n.model[v].constant()?.to_vec::<f32>()).unwrap_or_default();
    for (i, axis) in axes.into_iter().enumerate() {
        let given = sizes.as_ref().and_then(|s| s.get(i).cloned());
        let size = given.or_else(|| scaled(&x[axis], f64::from(*scales.get(i)?)));
        x[axis] = size.unwrap_or_else(|| n.unknown_dim());
    }
    Some(x)
}

/// The product of a size and a scale, rounded down, if runtimes agree about it: they multiply
/// float32 numbers. `None` for a size that is not known and a scale that is neither a whole number
/// nor `1 / 2**k`.
fn scaled(size: &Expr, scale: f64) -> Option<Expr> {
    let whole = |v: f64| (v >= 1.0 && v.fract() == 0.0 && v < 1e6).then(|| Expr::int(v as i64));
    if let Some(size) = size.as_int() {
        let exact = size as f64 * scale;
        let agreed = exact.floor() == f64::from(exact as f32).floor();
        return (agreed && (0.0..1e9).contains(&exact)).then(|| Expr::int(exact.floor() as i64));
    }
    if let Some(factor) = whole(scale) {
        return Some(size * &factor);
    }
    // The reciprocal of a power of two is exact.
    let divisor = whole(1.0 / scale).filter(|d| d.as_int().is_some_and(|d| d & (d - 1) == 0))?;
    Some(size.floor_div(&divisor))
}

fn depth_space(n: &Node) -> Option<Shape> {
    let x = n.shape(0)?;
    let [batch, channels, height, width] = x.as_slice() else {
        return None;
    };
    let block = Expr::int(n.int("blocksize")?);
    let area = &block * &block;
    let [channels, height, width] = match n.node.op() {
        "DepthToSpace" => [channels.floor_div(&area), height * &block, width * &block],
        _ => [channels * &area, height.floor_div(&block), width.floor_div(&block)],
    };
    Some(vec![batch.clone(), channels, height, width])
}

/// `Einsum`, if the equation has no ellipsis.
fn einsum(n: &Node) -> Option<Shape> {
    let (left, right) = einsum_terms(n.string("equation")?);
    if left.contains('.') {
        return None;
    }
    let mut sizes = std::collections::HashMap::new();
    for (i, term) in left.split(',').enumerate() {
        for (label, dim) in term.chars().zip(n.shape(i)?) {
            let one = Expr::int(1);
            if let Some(known) = sizes.get(&label).filter(|&known| *known != one && dim != one) {
                n.equal(known, &dim);
            }
            if dim != one || !sizes.contains_key(&label) {
                sizes.insert(label, dim);
            }
        }
    }
    right.chars().map(|c| sizes.get(&c).cloned()).collect()
}

/// The operands of an equation of `Einsum`, separated by commas, and the result. Without an arrow,
/// the result has the letters that occur once, sorted, and the ellipsis in front.
pub fn einsum_terms(equation: &str) -> (String, String) {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    if let Some((left, right)) = equation.split_once("->") {
        return (left.to_owned(), right.to_owned());
    }
    let once = |c: &char| c.is_alphabetic() && equation.matches(*c).count() == 1;
    let mut letters: Vec<char> = equation.chars().filter(once).collect();
    letters.sort_unstable();
    let all = if equation.contains('.') { "..." } else { "" };
    let right = all.chars().chain(letters).collect();
    (equation, right)
}

fn layer_norm_statistics(n: &Node) -> Option<Shape> {
    let x = n.shape(0)?;
    let axis = n.axis(-1, x.len())?;
    let axes: Vec<usize> = (axis..x.len()).collect();
    Some(without(x, &axes, true))
}

fn recurrent(n: &Node) -> Vec<Option<Shape>> {
    let parts = || {
        let (x, w, r) = (n.shape(0)?, n.shape(1)?, n.shape(2)?);
        let time_last = n.int("layout").unwrap_or(0) == 0;
        let (first, second) = (x.first()?.clone(), x.get(1)?.clone());
        let (seq, batch) = if time_last { (first, second) } else { (second, first) };
        let (dirs, hidden) = (w.first()?.clone(), r.last()?.clone());
        Some(if time_last {
            (vec![seq, dirs.clone(), batch.clone(), hidden.clone()], vec![dirs, batch, hidden])
        } else {
            (vec![batch.clone(), seq, dirs.clone(), hidden.clone()], vec![batch, dirs, hidden])
        })
    };
    match parts() {
        Some((all, last)) => vec![Some(all), Some(last.clone()), Some(last)],
        None => Vec::new(),
    }
}
