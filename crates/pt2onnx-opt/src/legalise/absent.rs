//! Operators that all opsets have and some runtimes lack, by others.

use super::{Emitted, Reason, attributes, front, input, nn::resample::cubic};
use pt2onnx_ir::{Builder, Node, Value, attrs, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

type Emit = fn(&Builder, &Node) -> Emitted;

/// The nodes that take the place of an operator, in the canonical form.
pub(super) fn replacement(op: &str) -> Option<Emit> {
    match op {
        "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool" => Some(of_one_volume),
        "Gather" => Some(of_four_dimensions),
        "MatMul" => Some(product),
        "MaxPool" => Some(max_pool),
        "Mean" => Some(mean),
        "Neg" => Some(negative),
        "Pad" => Some(padded),
        "Pow" => Some(of_row),
        "Reciprocal" => Some(reciprocal),
        "ReduceL1" | "ReduceL2" | "ReduceLogSum" | "ReduceSumSquare" => Some(by_sum),
        "ReduceLogSumExp" => Some(log_sum_exp),
        "ReduceMax" | "ReduceMean" | "ReduceMin" | "ReduceProd" | "ReduceSum" => Some(of_two_axes),
        "Resize" => Some(cubic),
        "Transpose" => Some(summed),
        _ => None,
    }
}

/// The name of a node's operator.
fn name(node: &Node) -> Result<&'static str, Reason> {
    let form = schema::lookup(node.op(), schema::CANONICAL_OPSET);
    Ok(form.ok_or("it is unknown")?.name)
}

/// Pools of several volumes: of one that has the channels of all.
fn of_one_volume(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    let [output] = node.outputs() else { return Err("it has indices".into()) };
    let shape = |value| cx.known_shape(value).ok_or("its rank is unknown");
    let (given, made) = (shape(x)?, shape(*output)?);
    let [all, channels, sizes @ ..] = &given[..] else { return Err("it has no channels".into()) };
    if sizes.len() != 3 || all.as_int() == Some(1) {
        return Err("it is not of several volumes".into());
    }
    let joined =
        [&[Expr::int(1), Expr::product(vec![all.clone(), channels.clone()])], sizes].concat();
    let joined = cx.reshape(x, &joined);
    let pooled = cx.emit1(name(node)?, &[Some(joined)], node.attributes.clone());
    Ok(vec![cx.reshape(pooled, &made)])
}

/// `MaxPool` of one volume, or of elements that `Pad` surrounds.
fn max_pool(cx: &Builder, node: &Node) -> Emitted {
    of_one_volume(cx, node).or_else(|_| of_padded(cx, node))
}

fn of_padded(cx: &Builder, node: &Node) -> Emitted {
    let (x, given) = (input(node, 0)?, attrs::MaxPool::read(node)?);
    let pads = given.pads.filter(|_| given.auto_pad == "NOTSET").ok_or("it has no pads")?;
    if node.outputs().len() != 1 || !cx.dtype(x).is_float() {
        return Err("it has indices, or is of integers".into());
    }
    let (begins, ends) = pads.split_at(pads.len() / 2);
    let pads = cx.ints(&[&[0, 0], begins, &[0, 0], ends].concat());
    let least = cx.scalar(f64::NEG_INFINITY, cx.dtype(x));
    let padded = cx.pad(x, pads, Some(least), None, attrs::Pad { mode: "constant" });
    let mut attributes = node.attributes.clone();
    attributes.retain(|(name, _)| name != "pads");
    Ok(vec![cx.emit1("MaxPool", &[Some(padded)], attributes)])
}

/// `Gather` from three dimensions: from four, the first of one element.
fn of_four_dimensions(cx: &Builder, node: &Node) -> Emitted {
    let (x, indices) = (input(node, 0)?, input(node, 1)?);
    if cx.known_shape(x).map(|sizes| sizes.len()) != Some(3) {
        return Err("it is not from three dimensions".into());
    }
    let axis = front(attrs::Gather::read(node)?.axis, 3)?;
    Ok(vec![cx.squeeze(cx.gather(cx.unsqueeze(x, &[0]), indices, axis + 1), &[0])])
}

/// `MatMul` of matrices for vectors, or of float32.
fn product(cx: &Builder, node: &Node) -> Emitted {
    of_matrices(cx, node).or_else(|_| of_singles(cx, node))
}

fn of_singles(cx: &Builder, node: &Node) -> Emitted {
    let (a, b) = (input(node, 0)?, input(node, 1)?);
    if cx.dtype(a) != DType::F64 {
        return Err("it is not of float64".into());
    }
    let single = |v: Value| cx.cast(v, DType::F32);
    Ok(vec![cx.cast(cx.matmul(single(a), single(b)), DType::F64)])
}

/// `MatMul` with a vector: of a matrix that is a row or a column.
fn of_matrices(cx: &Builder, node: &Node) -> Emitted {
    let (a, b) = (input(node, 0)?, input(node, 1)?);
    let rank = |v: Value| cx.known_shape(v).map(|sizes| sizes.len()).ok_or("its rank is unknown");
    let (rows, columns) = (rank(a)?, rank(b)?);
    if rows != 1 && columns != 1 {
        return Err("it has no vector".into());
    }
    let left = if rows == 1 { cx.unsqueeze(a, &[0]) } else { a };
    let right = if columns == 1 { cx.unsqueeze(b, &[1]) } else { b };
    let product = cx.matmul(left, right);
    let last = rows.max(columns).max(2) - 1;
    let made: Vec<usize> = [(rows == 1).then_some(last - 1), (columns == 1).then_some(last)]
        .into_iter()
        .flatten()
        .collect();
    Ok(vec![cx.squeeze(product, &made)])
}

/// `Mean`: a quotient of sums.
fn mean(cx: &Builder, node: &Node) -> Emitted {
    let mut given = node.inputs().iter().flatten().copied();
    let first = given.next().ok_or("it has no operands")?;
    let sum = given.fold(first, |sum, operand| cx.add(sum, operand));
    Ok(vec![cx.div(sum, node.inputs().len() as f64)])
}

/// `Neg`: a product, whose zeros have the same signs.
fn negative(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    Ok(vec![cx.mul(x, cx.scalar(-1.0, cx.dtype(x)))])
}

/// `Pow` by a vector of exponents: by a matrix of one row.
fn of_row(cx: &Builder, node: &Node) -> Emitted {
    let (base, exponents) = (input(node, 0)?, input(node, 1)?);
    let ranks = [base, exponents].map(|v| cx.known_shape(v).map(|sizes| sizes.len()));
    let [Some(2..), Some(1)] = ranks else { return Err("it has no vector of exponents".into()) };
    let vector = cx.constant_of(exponents).ok_or("its exponents are computed")?;
    let row = vector.reshaped(vec![1, vector.numel()]).ok_or("its exponents are no vector")?;
    Ok(vec![cx.pow(base, cx.constant(row))])
}

fn reciprocal(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    Ok(vec![cx.div(cx.scalar(1.0, cx.dtype(x)), x)])
}

/// `Pad` by others: slices for pads below 0, or elements that are gathered.
fn padded(cx: &Builder, node: &Node) -> Emitted {
    if attrs::Pad::read(node)?.mode == "constant" { cropped(cx, node) } else { gathered(cx, node) }
}

/// The most places of a side that are listed.
const MAX_PLACES: u64 = 1 << 24;

/// `Pad` of known sizes in another mode than `constant`: a `Gather` along each dimension.
fn gathered(cx: &Builder, node: &Node) -> Emitted {
    let mut x = input(node, 0)?;
    let ints = |i: usize| cx.constant_of(node.input(i)?)?.to_vec::<i64>();
    let pads = ints(1).ok_or("its pads are computed")?;
    let shape = cx.known_shape(x).ok_or("its rank is unknown")?;
    let axes = match node.input(3) {
        Some(_) => ints(3).ok_or("its axes are computed")?,
        None => (0..shape.len() as i64).collect(),
    };
    let mode = attrs::Pad::read(node)?.mode;
    for (i, &axis) in axes.iter().enumerate() {
        let axis = front(axis, shape.len())?;
        let (before, after) = pads.get(i).zip(pads.get(i + axes.len())).ok_or("too few pads")?;
        if (*before, *after) == (0, 0) {
            continue;
        }
        let size = shape[axis].as_int().filter(|size| *size > 0).ok_or("a size is unknown")?;
        if [*before, *after, size].iter().any(|n| n.unsigned_abs() > MAX_PLACES) {
            return Err("it is too large".into());
        }
        let around = (2 * (size - 1)).max(1);
        let place = |at: i64| match mode {
            "edge" => at.clamp(0, size - 1),
            "wrap" => at.rem_euclid(size),
            _ => at.rem_euclid(around).min(around - at.rem_euclid(around)).min(size - 1),
        };
        let places: Vec<i64> = (-before..size + after).map(place).collect();
        x = cx.gather(x, cx.ints(&places), axis);
    }
    Ok(vec![x])
}

/// `Pad` with pads below 0: a slice, and a `Pad` with the others.
fn cropped(cx: &Builder, node: &Node) -> Emitted {
    let (x, pads) = (input(node, 0)?, input(node, 1)?);
    let pads = cx.model().const_ints(pads).ok_or("its pads are computed")?;
    let given = attrs::Pad::read(node)?;
    if given.mode != "constant" || node.input(3).is_some() || pads.iter().all(|&pad| pad >= 0) {
        return Err("it has another mode, or axes".into());
    }
    let (begins, ends) = pads.split_at(pads.len() / 2);
    let cut: Vec<usize> = (0..begins.len()).filter(|&i| begins[i] < 0 || ends[i] < 0).collect();
    let start = |&i: &usize| (-begins[i]).max(0);
    let end = |&i: &usize| if ends[i] < 0 { ends[i] } else { i64::MAX };
    let list = |of: &dyn Fn(&usize) -> i64| cx.ints(&cut.iter().map(of).collect::<Vec<_>>());
    let (starts, ends, axes) = (list(&start), list(&end), list(&|&i| i as i64));
    let inside =
        cx.emit1("Slice", &[Some(x), Some(starts), Some(ends), Some(axes)], attributes([]));
    let rest: Vec<i64> = pads.iter().map(|&pad| pad.max(0)).collect();
    if rest.iter().all(|&pad| pad == 0) {
        return Ok(vec![inside]);
    }
    let inputs = [Some(inside), Some(cx.ints(&rest)), node.input(2)];
    Ok(vec![cx.emit1("Pad", &inputs, node.attributes.clone())])
}

/// `Transpose` of a matrix: a sum over nothing.
fn summed(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    let perm = attrs::Transpose::read(node)?.perm;
    if perm.is_some_and(|perm| perm != [1, 0]) || cx.known_shape(x).map(|s| s.len()) != Some(2) {
        return Err("it transposes no matrix".into());
    }
    let equation = attributes([("equation", "ij->ji".into())]);
    Ok(vec![cx.emit1("Einsum", &[Some(x)], equation)])
}

/// Norms and logarithms of sums, by `ReduceSum`.
fn by_sum(cx: &Builder, node: &Node) -> Emitted {
    let (x, op) = (input(node, 0)?, node.op());
    if matches!(op, "ReduceL2" | "ReduceLogSum") && !cx.dtype(x).is_float() {
        return Err("it is of integers".into());
    }
    let terms = match op {
        "ReduceL1" => cx.abs(x),
        "ReduceLogSum" => x,
        _ => cx.mul(x, x),
    };
    let sum = cx.emit1("ReduceSum", &[Some(terms), node.input(1)], node.attributes.clone());
    Ok(vec![match op {
        "ReduceL2" => cx.sqrt(sum),
        "ReduceLogSum" => cx.log(sum),
        _ => sum,
    }])
}

/// A reduction of one axis of three dimensions: of a fourth one, of one element, as well.
fn of_two_axes(cx: &Builder, node: &Node) -> Emitted {
    let (x, axes) = (input(node, 0)?, input(node, 1)?);
    let axes = cx.model().const_ints(axes).ok_or("its axes are computed")?;
    if cx.known_shape(x).map(|sizes| sizes.len()) != Some(3) || axes.len() != 1 {
        return Err("it is not of one axis of three dimensions".into());
    }
    let inputs = [cx.unsqueeze(x, &[3]), cx.ints(&[front(axes[0], 3)? as i64, 3])];
    let reduced = cx.emit1(name(node)?, &inputs.map(Some), node.attributes.clone());
    let kept = attrs::ReduceSum::read(node)?.keepdims;
    Ok(vec![if kept { cx.squeeze(reduced, &[3]) } else { reduced }])
}

/// `ReduceLogSumExp`, shifted by the maximum, without which the sum overflows. Infinite maxima
/// shift by the largest number.
fn log_sum_exp(cx: &Builder, node: &Node) -> Emitted {
    let (x, kind) = (input(node, 0)?, cx.dtype(input(node, 0)?));
    let reduced = |op: &'static str, x: Value, keepdims: bool| {
        let keepdims = attributes([("keepdims", i64::from(keepdims).into())]);
        cx.emit1(op, &[Some(x), node.input(1)], keepdims)
    };
    let given = attrs::ReduceLogSumExp::read(node)?;
    if given.noop_with_empty_axes || !matches!(kind, DType::F32 | DType::F64) {
        return Err("it is of other elements than float32 and float64, or of no axes".into());
    }
    let largest = if kind == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
    let bounds = [-largest, largest].map(|bound| Some(cx.scalar(bound, kind)));
    let clipped =
        |most: Value| cx.emit1("Clip", &[Some(most), bounds[0], bounds[1]], attributes([]));
    let most = clipped(reduced("ReduceMax", x, true));
    let sum = reduced("ReduceSum", cx.exp(cx.sub(x, most)), given.keepdims);
    let most = if given.keepdims { most } else { clipped(reduced("ReduceMax", x, false)) };
    Ok(vec![cx.add(cx.log(sum), most)])
}
