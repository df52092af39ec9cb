//! Reductions over axes: sums and extremes, including those of empty tensors and of NaN.

use crate::math::shape::pad_to;
use crate::{Cx, LowerError, Lowered};
use pt2onnx_ir::{Model, Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar, Tensor};

/// `op` over `axes` of `x`; if there are none, of each element.
pub fn reduce(cx: &Cx, op: Reduction, x: Value, axes: &[usize], keepdim: bool) -> Value {
    match axes {
        [] if matches!(op, Reduction::L1 | Reduction::L2) => cx.abs(x),
        [] if op == Reduction::SumSquare => cx.mul(x, x),
        [] => x,
        _ if axes.len() == cx.rank(x) => cx.reduce(op, x, &[], keepdim),
        _ => cx.reduce(op, x, axes, keepdim),
    }
}

/// The sum over all elements.
pub fn total(cx: &Cx, x: Value) -> Value {
    reduce(cx, Reduction::Sum, x, &all_axes(cx, x), false)
}

/// All dimensions of `x`.
pub fn all_axes(cx: &Cx, x: Value) -> Vec<usize> {
    (0..cx.rank(x)).collect()
}

/// The product of the sizes of `axes`.
pub fn size_of(cx: &Cx, x: Value, axes: &[usize]) -> Expr {
    Expr::product(axes.iter().map(|&a| cx.dim(x, a as i64)))
}

/// Whether the size of one of `axes` is known to be 0.
pub fn is_empty_along(cx: &Cx, x: Value, axes: &[usize]) -> bool {
    axes.iter().any(|&a| cx.dim(x, a as i64).as_int() == Some(0))
}

/// Whether the size of one of `axes` may be 0 at run time: that of what a mask selects.
pub fn may_be_empty_along(cx: &Cx, x: Value, axes: &[usize]) -> bool {
    let one = Expr::int(1);
    axes.iter().any(|&a| !cx.constraints().prove_ge(&cx.dim(x, a as i64), &one))
}

/// A sum of products of `factors`: `product`, or zeros of `shape` if a factor is known to have no
/// elements. ONNX Runtime's kernels fail then, or leave memory as it was.
pub fn sum_of_products(
    cx: &Cx,
    factors: &[Value],
    shape: impl FnOnce() -> Vec<Expr>,
    product: impl FnOnce() -> Value,
) -> Value {
    match factors.iter().find(|&&x| is_empty_along(cx, x, &Vec::from_iter(0..cx.rank(x)))) {
        Some(&x) => cx.full(&shape(), 0, cx.dtype(x)),
        None => product(),
    }
}

/// The matrix product, also where sums may be empty: ONNX Runtime leaves the memory of those as it
/// was, but for two matrices. There, each has one more product, of zeros.
pub fn matmul_of(cx: &Cx, a: Value, b: Value) -> Value {
    let (rank_a, rank_b) = (cx.rank(a), cx.rank(b));
    let inner = rank_a.saturating_sub(1);
    if (rank_a, rank_b) == (2, 2) || !may_be_empty_along(cx, a, &[inner]) {
        return cx.matmul(a, b);
    }
    let longer = cx.dim(a, -1) + Expr::int(1);
    let [a, b] = [(a, inner), (b, rank_b.saturating_sub(2))]
        .map(|(factor, axis)| pad_to(cx, factor, axis, &longer));
    cx.matmul(a, b)
}

/// The mean over `axes`, NaN of no elements: `ReduceMean`, which runtimes do not define there, if
/// the sizes are known not to be 0.
pub fn mean_of(cx: &Cx, x: Value, axes: &[usize], keepdim: bool) -> Value {
    if !may_be_empty_along(cx, x, axes) {
        return reduce(cx, Reduction::Mean, x, axes, keepdim);
    }
    let sum = reduce(cx, Reduction::Sum, x, axes, keepdim);
    cx.div(sum, cx.cast(cx.size(&size_of(cx, x, axes)), cx.dtype(x)))
}

/// Which extreme: the largest or the smallest element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extreme {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Extreme {
    /// Its reduction in ONNX.
    pub fn reduction(self) -> Reduction {
        match self {
            Extreme::Max => Reduction::Max,
            Extreme::Min => Reduction::Min,
        }
    }
}

/// The largest or smallest element, by `ReduceMax` or `ReduceMin`; NaN if there is one, which ONNX
/// does not promise.
pub fn extreme(cx: &Cx, of: Extreme, x: Value, axes: &[usize], keepdim: bool) -> Value {
    let found = reduce(cx, of.reduction(), x, axes, keepdim);
    if axes.is_empty() || !cx.propagates_nan(x) {
        return found;
    }
    cx.select(any_nan(cx, x, axes, keepdim), f64::NAN, found)
}

/// `LogSoftmax` along `axis`. ONNX Runtime gives numbers in float64 where a NaN or infinity must
/// make all of them NaN: what is added is 0 elsewhere.
pub fn log_softmax_of(cx: &Cx, x: Value, axis: usize) -> Value {
    let axis = axis as i64;
    let logs = cx.log_softmax(x, attrs::LogSoftmax { axis });
    if cx.dtype(x) != DType::F64 || !cx.propagates_nan(x) {
        return logs;
    }
    cx.add(logs, cx.mul(cx.softmax(x, attrs::Softmax { axis }), 0.0))
}

/// Whether an element of bools along `axes` is true, also where there are none.
pub fn any_true(cx: &Cx, x: Value, axes: &[usize], keepdim: bool) -> Value {
    if !may_be_empty_along(cx, x, axes) {
        return reduce(cx, Reduction::Max, x, axes, keepdim);
    }
    let count = reduce(cx, Reduction::Sum, cx.cast(x, DType::I64), axes, keepdim);
    cx.greater(count, 0)
}

/// Whether there is a NaN along `axes`.
pub fn any_nan(cx: &Cx, x: Value, axes: &[usize], keepdim: bool) -> Value {
    reduce(cx, Reduction::Max, cx.is_nan(x), axes, keepdim)
}

/// The sums of the first 1, 2, .. elements along `axis`: `CumSum`.
pub fn running_sums(cx: &Cx, x: Value, axis: usize) -> Value {
    cx.cum_sum(x, cx.scalar(axis as i64, DType::I64), Default::default())
}

/// `vector` with `rank` dimensions: its elements lie along `axis`, the other dimensions are 1.
pub fn as_axis(cx: &Cx, vector: Value, axis: usize, rank: usize) -> Value {
    let axes: Vec<usize> = (0..rank).filter(|&a| a != axis).collect();
    cx.unsqueeze(vector, &axes)
}

/// Whether all elements of `x` along `axis`, which is kept, are `-inf`. The largest one does not
/// decide this: ONNX Runtime's `ReduceMax` may overlook NaN.
pub fn all_hidden(cx: &Cx, x: Value, axis: usize) -> Value {
    cx.reduce(Reduction::Min, cx.equal(x, f64::NEG_INFINITY), &[axis], true)
}

/// `x` with the extremes of `updates` written into it by `write`, whose operator gives any number
/// where there is a NaN: a NaN is the extreme. `write_flags` does the same as `write` with flags of
/// int32, and writes the largest.
pub fn extremes_with_nan(
    cx: &Cx,
    [x, updates]: [Value; 2],
    write: impl Fn(Value, Value) -> Value,
    write_flags: impl Fn(Value, Value) -> Value,
) -> Value {
    let numbers = is_made_of(&cx.model(), x, FAR, |number| !number.is_nan());
    let flags = |v| cx.cast(cx.is_nan(v), DType::I32);
    let before = if numbers { cx.full(&cx.shape(x), 0, DType::I32) } else { flags(x) };
    let flags = write_flags(before, flags(updates));
    let found = write(x, updates);
    cx.select(cx.cast(flags, DType::Bool), f64::NAN, found)
}

/// [`extremes_with_nan`] of the updates only, where `x` is finite ([`is_finite`]). Where there are
/// updates, `add` first makes it `neutral`, an infinity, or NaN.
pub fn extremes_in_place_of(
    cx: &Cx,
    [x, updates]: [Value; 2],
    neutral: f64,
    add: impl Fn(Value, Value) -> Value,
    write: impl Fn(Value, Value) -> Value,
) -> Value {
    // 0 times an infinity is NaN; a third of the time of `Where`.
    let numbers = cx.cast(cx.equal(updates, updates), cx.dtype(updates));
    let start = add(x, cx.mul(numbers, neutral));
    cx.select(cx.is_nan(start), start, write(start, updates))
}

/// Whether all elements of `x` are known to be finite.
pub fn is_finite(cx: &Cx, x: Value) -> bool {
    is_made_of(&cx.model(), x, FAR, f64::is_finite)
}

/// The most nodes through which constants are looked for, and the most elements of one.
const FAR: usize = 4;
const MOST: usize = 1 << 16;

/// Whether a value is made of constants of such numbers.
fn is_made_of(model: &Model, value: Value, far: usize, are: fn(f64) -> bool) -> bool {
    if let Some(tensor) = model[value].constant() {
        let read = Some(tensor).filter(|t| t.numel() <= MOST).and_then(Tensor::to_doubles);
        return read.is_some_and(|all| all.iter().all(|number| are(*number)));
    }
    let Some(node) = model.producer(value).map(|id| &model[id]).filter(|_| far > 0) else {
        return false;
    };
    let of = |at| node.input(at).is_some_and(|input| is_made_of(model, input, far - 1, are));
    match node.op() {
        "Expand" | "Reshape" => of(0),
        "ScatterElements" | "ScatterND" if node.attribute("reduction").is_none() => of(0) && of(2),
        _ => false,
    }
}

/// The slices `x[.., :-n]` and `x[.., n:]` along `axis`, whose size need not be known.
pub fn neighbours(cx: &Cx, x: Value, axis: usize, n: i64) -> [Value; 2] {
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

/// The smallest number of a type, which is minus infinity for floats.
pub fn lowest(dtype: DType) -> Scalar {
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

/// The largest number of a type, which is infinity for floats.
pub fn highest(dtype: DType) -> Scalar {
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
pub fn reduced(cx: &Cx, loss: Value, reduction: i64) -> Lowered {
    let axes = all_axes(cx, loss);
    match reduction {
        0 => Ok(loss),
        1 => Ok(mean_of(cx, loss, &axes, false)),
        2 => Ok(reduce(cx, Reduction::Sum, loss, &axes, false)),
        _ => Err(LowerError::unsupported("the reduction must be 0 (none), 1 (mean) or 2 (sum)")),
    }
}
