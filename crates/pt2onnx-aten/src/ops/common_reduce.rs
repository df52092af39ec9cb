//! What reductions, losses and sorting share: axes of PyTorch's arguments, NaN, running loops, ranges of indices.

use crate::{Complex, Cx, LowerError, Lowered};
use pt2onnx_ir::{Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

/// `op` over `axes` of `x`; over none, `x` itself.
pub(super) fn reduce(cx: &Cx, op: Reduction, x: Value, axes: &[usize], keepdim: bool) -> Value {
    match axes {
        [] => x,
        _ if axes.len() == cx.rank(x) => cx.reduce(op, x, &[], keepdim),
        _ => cx.reduce(op, x, axes, keepdim),
    }
}

/// The sum over all elements.
pub(super) fn total(cx: &Cx, x: Value) -> Value {
    reduce(cx, Reduction::Sum, x, &all_axes(cx, x), false)
}

/// All dimensions of `x`.
pub(super) fn all_axes(cx: &Cx, x: Value) -> Vec<usize> {
    (0..cx.rank(x)).collect()
}

/// `x` as a vector.
pub(super) fn flat(cx: &Cx, x: Value) -> Value {
    cx.reshape(x, &[cx.numel(x)])
}

/// How many elements `axes` of `x` hold.
pub(super) fn size_of(cx: &Cx, x: Value, axes: &[usize]) -> Expr {
    Expr::product(axes.iter().map(|&a| cx.dim(x, a as i64)))
}

/// Whether any of `axes` is known to be empty.
pub(super) fn is_empty(cx: &Cx, x: Value, axes: &[usize]) -> bool {
    axes.iter().any(|&a| cx.dim(x, a as i64).as_int() == Some(0))
}

/// Largest or smallest elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extreme {
    Max,
    Min,
}

impl Extreme {
    pub(super) fn reduction(self) -> Reduction {
        match self {
            Extreme::Max => Reduction::Max,
            Extreme::Min => Reduction::Min,
        }
    }
}

/// `ReduceMax` or `ReduceMin`; NaN where there is any, which ONNX does not promise.
pub(super) fn extreme(cx: &Cx, of: Extreme, x: Value, axes: &[usize], keepdim: bool) -> Value {
    let found = reduce(cx, of.reduction(), x, axes, keepdim);
    if axes.is_empty() || !cx.dtype(x).is_float() {
        return found;
    }
    cx.select(any_nan(cx, x, axes, keepdim), f64::NAN, found)
}

/// Whether there is a NaN along `axes`.
pub(super) fn any_nan(cx: &Cx, x: Value, axes: &[usize], keepdim: bool) -> Value {
    reduce(cx, Reduction::Max, cx.is_nan(x), axes, keepdim)
}

/// `vector` with the rank of `x`, its elements along `axis`.
pub(super) fn along(cx: &Cx, vector: Value, rank: usize, axis: usize) -> Value {
    let axes: Vec<usize> = (0..rank).filter(|&a| a != axis).collect();
    cx.unsqueeze(vector, &axes)
}

/// The pieces `x[.., :-n]` and `x[.., n:]` along `axis`. Sizes need not be known for that.
pub(super) fn neighbours(cx: &Cx, x: Value, axis: usize, n: i64) -> [Value; 2] {
    let mut dims = cx.shape(x);
    if let Some(dim) = dims.get_mut(axis) {
        *dim = match dim.as_int() {
            Some(size) => Expr::int((size - n).max(0)),
            None => &*dim - n,
        };
    }
    [(0, -n), (n, i64::MAX)].map(|(start, end)| {
        let at = |i: i64| cx.ints(&[i]);
        let piece = cx.slice_op(x, at(start), at(end), at(axis as i64), None);
        cx.set_type(piece, Type::tensor(cx.dtype(x), dims.clone()));
        piece
    })
}

/// `ArgMax` or `ArgMin` along `axis`: the first of equals.
pub(super) fn arg_extreme(cx: &Cx, of: Extreme, x: Value, axis: usize, keepdims: bool) -> Value {
    let axis = axis as i64;
    // ONNX orders no bools.
    let x = if cx.dtype(x) == DType::Bool { cx.cast(x, DType::U8) } else { x };
    match of {
        Extreme::Max => {
            let options = attrs::ArgMax { axis, keepdims, ..Default::default() };
            cx.arg_max(x, options)
        }
        Extreme::Min => {
            let options = attrs::ArgMin { axis, keepdims, ..Default::default() };
            cx.arg_min(x, options)
        }
    }
}

/// `TopK`: the first `k` along `axis` in order, with their indices; equals in the order they come. Where NaN go is up to
/// the runtime.
pub(super) fn top_k(
    cx: &Cx,
    x: Value,
    k: &Expr,
    axis: usize,
    largest: bool,
    sorted: bool,
) -> [Value; 2] {
    let options = attrs::TopK { axis: axis as i64, largest, sorted };
    let bools = cx.dtype(x) == DType::Bool;
    let numbers = if bools { cx.cast(x, DType::U8) } else { x };
    let [values, indices] = cx.top_k(numbers, cx.sizes(std::slice::from_ref(k)), options);
    let values = if bools { cx.cast(values, DType::Bool) } else { values };
    [values, indices]
}

/// `x` in ascending or descending order along `axis`, with the indices of its elements. NaN counts as infinite: runtimes
/// put no order into numbers that NaN are among.
pub(super) fn sort(cx: &Cx, x: Value, axis: usize, descending: bool) -> [Value; 2] {
    let ordered = |x| top_k(cx, x, &cx.dim(x, axis as i64), axis, descending, true);
    match cx.rank(x) {
        0 => [x, cx.scalar(0, DType::I64)],
        _ if !cx.dtype(x).is_float() => ordered(x),
        _ => {
            let [_, indices] = ordered(cx.select(cx.is_nan(x), f64::INFINITY, x));
            [gather_elements(cx, x, indices, axis), indices]
        }
    }
}

/// The elements of `x` alone in ascending order along `axis`, infinity for NaN.
pub(super) fn sorted_values(cx: &Cx, x: Value, axis: usize) -> Value {
    let numbers =
        if cx.dtype(x).is_float() { cx.select(cx.is_nan(x), f64::INFINITY, x) } else { x };
    top_k(cx, numbers, &cx.dim(x, axis as i64), axis, false, true)[0]
}

/// The elements of `x` at `indices`, which differ along `axis` only.
pub(super) fn gather_elements(cx: &Cx, x: Value, indices: Value, axis: usize) -> Value {
    let options = attrs::GatherElements { axis: axis as i64 };
    cx.gather_elements(x, indices, options)
}

/// `initial`, then what `step` makes of the state and of each slice of `inputs` along `axis`: all states but the first.
/// States have the shape of the first input's slices; vectors among the inputs give one number per slice.
pub(super) fn running(
    cx: &Cx,
    axis: usize,
    inputs: &[Value],
    initial: &[Scalar],
    step: impl FnOnce(&[Value], &[Value]) -> Vec<Value>,
) -> Vec<Value> {
    let dims = cx.shape(inputs[0]);
    let slice: Vec<Expr> =
        dims.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, d)| d.clone()).collect();
    let state = |v: &Value| Type::tensor(cx.dtype(*v), slice.clone());
    let (mut given, mut types): (Vec<Value>, Vec<Type>) = inputs
        .iter()
        .zip(initial)
        .map(|(v, s)| (cx.full(&slice, *s, cx.dtype(*v)), state(v)))
        .unzip();
    let n = given.len();
    let mut axes = Vec::with_capacity(n);
    for v in inputs {
        let vector = cx.rank(*v) < dims.len();
        given.push(*v);
        types.push(if vector { Type::tensor(cx.dtype(*v), []) } else { state(v) });
        axes.push(if vector { 0 } else { axis as i64 });
    }
    let body = cx.region(&types, |values| {
        let (states, slices) = values.split_at(n);
        let next = step(states, slices);
        // A region's outputs are values of their own.
        let copies: Vec<Value> = next.iter().map(|&v| cx.identity(v)).collect();
        next.into_iter().chain(copies).collect()
    });
    let options = attrs::Scan {
        scan_input_axes: Some(axes),
        scan_output_axes: Some(vec![axis as i64; n]),
        ..Default::default()
    };
    let found = cx.scan_op(2 * n, &given, body, n as i64, options);
    for (i, &value) in found.iter().enumerate() {
        let ty = match i.checked_sub(n) {
            Some(j) => Type::tensor(cx.dtype(inputs[j]), dims.clone()),
            None => types[i].clone(),
        };
        cx.set_type(value, ty);
    }
    found.into_iter().skip(n).collect()
}

/// All slices of `x` along its first dimension combined one after the other.
pub(super) fn folded(
    cx: &Cx,
    x: Value,
    initial: Scalar,
    step: impl FnOnce(Value, Value) -> Value,
) -> Value {
    let slice = cx.shape(x).split_first().map(|(_, rest)| rest.to_vec()).unwrap_or_default();
    let ty = Type::tensor(cx.dtype(x), slice.clone());
    let body = cx.region(&[ty.clone(), ty.clone()], |values| vec![step(values[0], values[1])]);
    let start = cx.full(&slice, initial, cx.dtype(x));
    let found = cx.scan_op(1, &[start, x], body, 1, attrs::Scan::default());
    cx.set_type(found[0], ty);
    found[0]
}

/// The smallest number of a type; of floats, minus infinity.
pub(super) fn lowest(dtype: DType) -> Scalar {
    match dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Scalar::Int(0),
        DType::Bool => Scalar::Bool(false),
        DType::I8 => Scalar::Int(i8::MIN.into()),
        DType::I16 => Scalar::Int(i16::MIN.into()),
        DType::I32 => Scalar::Int(i32::MIN.into()),
        DType::I64 => Scalar::Int(i64::MIN),
        _ => Scalar::Float(f64::NEG_INFINITY),
    }
}

/// The largest number of a type; of floats, infinity.
pub(super) fn highest(dtype: DType) -> Scalar {
    match dtype {
        DType::U8 => Scalar::Int(u8::MAX.into()),
        DType::U16 => Scalar::Int(u16::MAX.into()),
        DType::U32 => Scalar::Int(u32::MAX.into()),
        DType::U64 => Scalar::Int(-1),
        DType::Bool => Scalar::Bool(true),
        DType::I8 => Scalar::Int(i8::MAX.into()),
        DType::I16 => Scalar::Int(i16::MAX.into()),
        DType::I32 => Scalar::Int(i32::MAX.into()),
        DType::I64 => Scalar::Int(i64::MAX),
        _ => Scalar::Float(f64::INFINITY),
    }
}

/// PyTorch's `reduction` argument of losses: 0 none, 1 mean, 2 sum.
pub(super) fn reduced(cx: &Cx, loss: Value, reduction: i64) -> Lowered {
    let op = match reduction {
        0 => return Ok(loss),
        1 => Reduction::Mean,
        2 => Reduction::Sum,
        _ => {
            return Err(LowerError::unsupported("a reduction that is none of none, mean and sum"));
        }
    };
    let axes = all_axes(cx, loss);
    if reduction == 1 && is_empty(cx, loss, &axes) {
        return Ok(cx.scalar(f64::NAN, cx.dtype(loss)));
    }
    Ok(reduce(cx, op, loss, &axes, false))
}

/// `a * b`.
pub(super) fn product(cx: &Cx, a: Complex, b: Complex) -> Complex {
    Complex {
        re: cx.sub(cx.mul(a.re, b.re), cx.mul(a.im, b.im)),
        im: cx.add(cx.mul(a.re, b.im), cx.mul(a.im, b.re)),
    }
}

/// `a - b`.
pub(super) fn difference(cx: &Cx, a: Complex, b: Complex) -> Complex {
    Complex { re: cx.sub(a.re, b.re), im: cx.sub(a.im, b.im) }
}

/// `|z|`.
pub(super) fn magnitude(cx: &Cx, x: Complex) -> Value {
    cx.sqrt(cx.add(cx.mul(x.re, x.re), cx.mul(x.im, x.im)))
}

/// The angle of `z`, from `-pi` to `pi`: twice that of `|z| + z`, but on the negative real axis.
pub(super) fn angle(cx: &Cx, x: Complex) -> Value {
    let half = cx.atan(cx.div(x.im, cx.add(magnitude(cx, x), x.re)));
    let negative = cx.and(cx.less(x.re, 0.0), cx.equal(x.im, 0.0));
    let half = cx.select(cx.equal(x.im, 0.0), 0.0, half);
    cx.select(negative, std::f64::consts::PI, cx.mul(half, 2.0))
}
