//! Writes and reductions at indices along one dimension.

use crate::math::division::floored_by_positive;
use crate::math::reduce::{extremes_in_place_of, extremes_with_nan, highest, is_finite, lowest};
use crate::math::shape::{
    as_index, broadcast_along, crop, flat, has_no_elements, set_recorded, vector,
};
use crate::meta;
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, Number, TensorOrScalar, checks, op};
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::index_add, index_add, parts),
    op!(aten::index_copy, index_reduce, parts, reduce = "none", include_self = true),
    op!(aten::index_fill_int_Scalar, index_fill, parts),
    op!(aten::index_fill_int_Tensor, index_fill, parts),
    op!(aten::index_reduce, index_reduce),
    op!(aten::put, put, parts, meta = meta::same),
    op!(aten::scatter_reduce, scatter_with),
    op!(aten::scatter_src, scatter_reduce, parts, reduce = "none", include_self = true),
    op!(aten::scatter_value, scatter_value, parts, reduce = "none"),
    op!(aten::scatter_value_reduce, scatter_value, complex = scatter_value_complex),
    op!(aten::scatter_add, scatter_reduce, parts, reduce = "add", include_self = true),
    op!(aten::scatter_reduce_two, scatter_reduce),
];

/// How several updates of one place become one element.
#[derive(Clone, Copy, PartialEq)]
enum Reduction {
    None,
    Add,
    Mul,
    Max,
    Min,
    /// A sum divided by the count. ONNX does not have it.
    Mean,
}

impl Reduction {
    /// The reduction that PyTorch calls so.
    fn parse(name: &str) -> Lowered<Self> {
        Ok(match name {
            "none" => Reduction::None,
            "add" | "sum" => Reduction::Add,
            "multiply" | "prod" => Reduction::Mul,
            "amax" => Reduction::Max,
            "amin" => Reduction::Min,
            "mean" => Reduction::Mean,
            other => return Err(LowerError::unknown("reduction", other)),
        })
    }

    /// ONNX's name of the reduction.
    fn onnx(self) -> &'static str {
        match self {
            Reduction::None => "none",
            Reduction::Add | Reduction::Mean => "add",
            Reduction::Mul => "mul",
            Reduction::Max => "max",
            Reduction::Min => "min",
        }
    }

    /// The neutral element: reduced with it, a number does not change.
    fn neutral(self, dtype: DType) -> Scalar {
        match self {
            Reduction::Mul => Scalar::Int(1),
            Reduction::Max => lowest(dtype),
            Reduction::Min => highest(dtype),
            Reduction::None | Reduction::Add | Reduction::Mean => Scalar::Int(0),
        }
    }
}

/// How updates become elements.
#[derive(Clone, Copy)]
struct How {
    reduction: Reduction,
    /// Whether what was there before takes part in the reduction.
    include_self: bool,
}

impl How {
    /// Updates are added to what was there.
    const ADD: How = How { reduction: Reduction::Add, include_self: true };

    fn new(reduction: &str, include_self: bool) -> Lowered<Self> {
        Ok(How { reduction: Reduction::parse(reduction)?, include_self })
    }
}

/// Where updates go.
enum Places {
    /// Each to its own index along the axis.
    Elements(Value),
    /// Slices, by a vector of indices along the axis.
    Slices(Value),
}

/// `ScatterElements` or `ScatterND` into `x` along `axis`.
fn write(cx: &Cx, x: Value, axis: usize, places: &Places, updates: Value, how: Reduction) -> Value {
    let reduction = how.onnx();
    let elements = |indices| {
        let axis = axis as i64;
        cx.scatter_elements(x, indices, updates, attrs::ScatterElements { axis, reduction })
    };
    match *places {
        Places::Elements(indices) => elements(indices),
        Places::Slices(index) if axis == 0 => {
            let index = cx.unsqueeze(cx.cast(index, DType::I64), &[1]);
            cx.scatter_nd(x, index, updates, attrs::ScatterND { reduction })
        }
        Places::Slices(index) => {
            let index = broadcast_along(cx, index, axis, cx.rank(x));
            elements(cx.expand(index, &cx.shape(updates)))
        }
    }
}

/// `x` with `updates` reduced into it. Without `include_self`, the elements in those places are
/// first replaced by the number that does not change the result.
fn reduce(cx: &Cx, x: Value, axis: usize, places: &Places, updates: Value, how: How) -> Value {
    let How { reduction, include_self } = how;
    let dtype = cx.dtype(x);
    let computed = match dtype {
        // ONNX cannot reduce bools. As integers, a sum is not 0 if any is true, a product if all
        // are.
        DType::Bool => DType::I32,
        DType::F16 | DType::BF16 if reduction != Reduction::None => DType::F32,
        _ => dtype,
    };
    let (x, updates) = (cx.cast(x, computed), cx.cast(updates, computed));
    let shape = cx.shape(updates);
    let spreads =
        matches!(reduction, Reduction::Max | Reduction::Min) && cx.propagates_nan(updates);
    let by = |how| move |x, updates| write(cx, x, axis, places, updates, how);
    let neutral = reduction.neutral(computed);
    let from = || {
        if include_self {
            return x;
        }
        by(Reduction::None)(x, cx.full(&shape, neutral, computed))
    };
    let mut result = if !spreads {
        by(reduction)(from(), updates)
    } else if !include_self && is_finite(cx, x) {
        extremes_in_place_of(cx, [x, updates], neutral.to_f64(), by(Reduction::Add), by(reduction))
    } else {
        extremes_with_nan(cx, [from(), updates], by(reduction), by(Reduction::Max))
    };
    if reduction == Reduction::Mean {
        // One count for each element of `x`, or for each slice.
        let (counts, updates, at) = match places {
            Places::Elements(_) => (cx.shape(x), shape, axis),
            Places::Slices(index) => (vec![cx.dim(x, axis as i64)], cx.shape(*index), 0),
        };
        let before = cx.full(&counts, i64::from(include_self), computed);
        let ones = cx.full(&updates, 1, computed);
        let counted = write(cx, before, at, places, ones, Reduction::Add);
        let counted = if include_self { counted } else { cx.maximum(counted, 1) };
        let count = match places {
            Places::Elements(_) => counted,
            Places::Slices(_) => broadcast_along(cx, counted, axis, cx.rank(x)),
        };
        result = divided(cx, result, count);
    }
    cx.cast(result, dtype)
}

/// `a / b`, rounded down for integers. `b` is positive.
fn divided(cx: &Cx, a: Value, b: Value) -> Value {
    match cx.dtype(a) {
        dtype if dtype.is_float() || dtype.is_unsigned() => cx.div(a, b),
        _ => floored_by_positive(cx, a, b),
    }
}

/// `index`, and `source` cropped to its sizes, 0-d tensors as vectors; none if `index` is empty.
fn elements(cx: &Cx, index: Value, source: Value) -> Option<(Places, Value)> {
    let index = vector(cx, as_index(cx, index));
    let shape = cx.shape(index);
    let empty = has_no_elements(&shape);
    let source = if empty { source } else { crop(cx, vector(cx, source), &shape) };
    (!empty).then_some((Places::Elements(index), source))
}

/// `f` of `x`, which if 0-d is a vector meanwhile.
fn as_vector(cx: &Cx, x: Value, f: impl FnOnce(Value) -> Value) -> Lowered {
    let result = f(vector(cx, x));
    Ok(cx.reshape(result, &cx.shape(x)))
}

/// `x[index[i]] += source[i]`, or `*=`, along `dim`. Complex numbers can be added.
fn scatter_with(
    cx: &Cx,
    x: Complex,
    dim: i64,
    index: Value,
    source: Complex,
    reduce: String,
) -> Lowered {
    let how = How::new(&reduce, true)?;
    let part = |x, source| scatter_onto(cx, x, dim, index, source, how);
    if x.im.or(source.im).is_none() {
        return part(x.re, source.re);
    }
    if how.reduction != Reduction::Add {
        return Err(LowerError::unsupported(
            "the only reduction of complex numbers that scatter supports is `add`",
        ));
    }
    let (x, source) = (x.complex(cx), source.complex(cx));
    let [re, im] = [part(x.re, source.re)?, part(x.imag(cx), source.imag(cx))?];
    Ok(cx.pairs(Complex::new(re, im)))
}

/// `x[index[i]] = value` along `dim`, or `+=` or `*=`.
fn scatter_value(
    cx: &Cx,
    x: Value,
    dim: i64,
    index: Value,
    value: TensorOrScalar,
    reduce: String,
) -> Lowered {
    let value = cx.as_tensor(&value, cx.dtype(x));
    let updates = cx.expand(value, &cx.shape(index));
    scatter_onto(cx, x, dim, index, updates, How::new(&reduce, true)?)
}

/// [`scatter_value`] of complex numbers, which can be added.
fn scatter_value_complex(
    cx: &Cx,
    x: Complex,
    dim: i64,
    index: Value,
    value: Complex,
    reduce: String,
) -> Lowered {
    let updates = value.cast(cx, cx.dtype(x.re)).expand(cx, &cx.shape(index));
    scatter_with(cx, x, dim, index, updates, reduce)
}

/// `x[index[i]] = source[i]` along `dim`, or the reduction of that name.
fn scatter_reduce(
    cx: &Cx,
    x: Value,
    dim: i64,
    index: Value,
    source: Value,
    reduce: String,
    include_self: bool,
) -> Lowered {
    scatter_onto(cx, x, dim, index, source, How::new(&reduce, include_self)?)
}

/// Elements of `source` written, or reduced, to where `index` says along `dim`.
fn scatter_onto(cx: &Cx, x: Value, dim: i64, index: Value, source: Value, how: How) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let Some((places, source)) = elements(cx, index, source) else {
        return Ok(x);
    };
    if how.reduction == Reduction::None && cx.rank(x) == 0 && cx.shape(source) == [Expr::int(1)] {
        return Ok(cx.reshape(cx.cast(source, cx.dtype(x)), &[]));
    }
    as_vector(cx, x, |x| match how.reduction {
        Reduction::None => {
            write(cx, x, axis, &places, cx.cast(source, cx.dtype(x)), Reduction::None)
        }
        _ => reduce(cx, x, axis, &places, source, how),
    })
}

/// Slices of `source` written, or reduced, to the slices of `x` that `index` names.
fn slices_onto(cx: &Cx, x: Value, dim: i64, index: Value, source: Value, how: How) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let places = Places::Slices(vector(cx, as_index(cx, index)));
    as_vector(cx, x, |x| {
        let mut shape = cx.shape(x);
        if let Places::Slices(index) = &places {
            shape[axis] = cx.dim(*index, 0);
        }
        let source = cx.reshape(cx.cast(source, cx.dtype(x)), &shape);
        match how.reduction {
            Reduction::None => write(cx, x, axis, &places, source, Reduction::None),
            _ => reduce(cx, x, axis, &places, source, how),
        }
    })
}

/// `x[index[i]] += alpha * source[i]`, for slices along `dim`.
fn index_add(cx: &Cx, x: Value, dim: i64, index: Value, source: Value, alpha: Number) -> Lowered {
    if alpha.is_complex() {
        return Err(LowerError::unsupported("a complex `alpha` is not supported"));
    }
    let scaled = match cx.dtype(source) {
        DType::Bool if alpha.known().is_some_and(Scalar::to_bool) => source,
        DType::Bool => cx.and(source, alpha.tensor(cx, DType::Bool)),
        _ => cx.mul(source, alpha),
    };
    slices_onto(cx, x, dim, index, scaled, How::ADD)
}

/// `x[index[i]] = source[i]`, for slices along `dim`, or the reduction of that name.
fn index_reduce(
    cx: &Cx,
    x: Value,
    dim: i64,
    index: Value,
    source: Value,
    reduce: String,
    include_self: bool,
) -> Lowered {
    slices_onto(cx, x, dim, index, source, How::new(&reduce, include_self)?)
}

/// `x[index[i]] = value`, for slices along `dim`: a `Where` over a mask of the slices.
fn index_fill(cx: &Cx, x: Value, dim: i64, index: Value, value: TensorOrScalar) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let value = cx.as_tensor(&value, cx.dtype(x));
    as_vector(cx, x, |x| {
        let rows = rows_mask(cx, &cx.dim(x, axis as i64), vector(cx, index));
        let result = cx.select(broadcast_along(cx, rows, axis, cx.rank(x)), value, x);
        cx.set_type(result, Type::tensor(cx.dtype(x), cx.shape(x)));
        result
    })
}

/// `size` bools, true at the indices.
fn rows_mask(cx: &Cx, size: &Expr, index: Value) -> Value {
    let yes = cx.full(&cx.shape(index), true, DType::Bool);
    let no = cx.full(std::slice::from_ref(size), false, DType::Bool);
    cx.scatter_elements(no, as_index(cx, index), yes, Default::default())
}

/// `x[index[i]] = source[i]` in the flattened tensor; with `accumulate`, `+=`.
fn put(cx: &Cx, x: Value, index: Value, source: Value, accumulate: bool) -> Lowered {
    let shape = cx.shape(x);
    if has_no_elements(&cx.shape(index)) {
        return Ok(x);
    }
    let places = Places::Elements(flat(cx, as_index(cx, index)));
    let source = flat(cx, cx.cast(source, cx.dtype(x)));
    let result = if accumulate {
        reduce(cx, flat(cx, x), 0, &places, source, How::ADD)
    } else {
        write(cx, flat(cx, x), 0, &places, source, Reduction::None)
    };
    set_recorded(cx, cx.reshape(result, &shape))
}

checks! {
    // A cache along its axis.
    "aten.index_copy(x: f32[1, 8, s0, 64], 2, i: i64[s1], v: f32[1, 8, s1, 64]) -> f32[1, 8, s0, 64]" => "
    val_0 = Unsqueeze (i, [1])
    val_1 = Expand (val_0, [1, 8, 1, 64])
    index_copy = ScatterElements <axis: int = 2> (x, val_1, v)
    ";

    // A mean without what was there.
    "aten.index_reduce(x: f32[4], 0, i: i64[3], v: f32[3], 'mean', include_self = False) -> f32[4]" => r#"
    val_0 = Expand (0.0, [3])
    val_1 = Unsqueeze (i, [1])
    val_2 = ScatterND (x, val_1, val_0)
    val_3 = Unsqueeze (i, [1])
    val_4 = ScatterND <reduction: string = "add"> (val_2, val_3, v)
    val_5 = Expand (0.0, [4])
    val_6 = Expand (1.0, [3])
    val_7 = Unsqueeze (i, [1])
    val_8 = ScatterND <reduction: string = "add"> (val_5, val_7, val_6)
    val_9 = Max (val_8, 1.0)
    index_reduce = Div (val_4, val_9)
    "#;

    // The source is cropped.
    "aten.scatter_add(x: f32[4, 3], 0, i: i64[2, 3], v: f32[5, 3]) -> f32[4, 3]" => r#"
    val_0 = Slice (v, [0], [2], [0])
    scatter_add = ScatterElements <reduction: string = "add"> (x, i, val_0)
    "#;

    // NaN is an extreme.
    "aten.scatter_reduce.two(x: f32[4], 0, i: i64[4], y: f32[4], 'amax') -> f32[4]" => r#"
    val_0 = IsNaN (x)
    val_1 = Cast <to: int = 6> (val_0)
    val_2 = IsNaN (y)
    val_3 = Cast <to: int = 6> (val_2)
    val_4 = ScatterElements <reduction: string = "max"> (val_1, i, val_3)
    val_5 = ScatterElements <reduction: string = "max"> (x, i, y)
    val_6 = Cast <to: int = 9> (val_4)
    scatter_reduce = Where (val_6, NaN, val_5)
    "#;

    // Complex numbers are added part by part.
    "aten.scatter.reduce(x: c64[4], 0, i: i64[4], y: c64[4], reduce = 'add') -> c64[4]" => r#"
    val_0 = Gather <axis: int = 1> (x, 0)
    val_1 = Gather <axis: int = 1> (x, 1)
    val_2 = Gather <axis: int = 1> (y, 0)
    val_3 = Gather <axis: int = 1> (y, 1)
    val_4 = ScatterElements <reduction: string = "add"> (val_0, i, val_2)
    val_5 = ScatterElements <reduction: string = "add"> (val_1, i, val_3)
    val_6 = Unsqueeze (val_4, [1])
    val_7 = Unsqueeze (val_5, [1])
    scatter = Concat <axis: int = 1> (val_6, val_7)
    "#;
    "aten.scatter.value_reduce(x: c64[4], 0, i: i64[3], 2.5, reduce = 'add') -> c64[4]" => r#"
    val_0 = Gather <axis: int = 1> (x, 0)
    val_1 = Gather <axis: int = 1> (x, 1)
    val_2 = Cast <to: int = 1> (double {2.5})
    val_3 = Expand (val_2, [3])
    val_4 = Expand (0.0, [3])
    val_5 = ScatterElements <reduction: string = "add"> (val_0, i, val_3)
    val_6 = ScatterElements <reduction: string = "add"> (val_1, i, val_4)
    val_7 = Unsqueeze (val_5, [1])
    val_8 = Unsqueeze (val_6, [1])
    scatter = Concat <axis: int = 1> (val_7, val_8)
    "#;
}
