//! Translates ops that make tensors of sizes and numbers.

use crate::math::control::fold;
use crate::math::progression::{known_counted, known_spaced, spaced};
use crate::math::shape::{counted, vector};
use crate::meta::{self, fresh, typed};
use crate::{
    AtenOp, Complex, Cx, LowerError, Lowered, TensorOrScalar, args::Ignored, arguments, checks,
    cx::Mode, op,
};
use pt2onnx_ir::{Type, Value, schema::data_type};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar, Tensor};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_dim_arange, dim_arange),
    op!(aten::_shape_as_tensor, shape_as_tensor),
    op!(aten::arange, arange, parts, meta = meta_arange, start = 0, step = 1),
    op!(aten::arange_start, arange, parts, meta = meta_arange, step = 1),
    op!(aten::arange_start_step, arange, parts, meta = meta_arange),
    op!(aten::empty_memory_format, filled, parts, meta = meta::made, value = 0),
    op!(aten::empty_like, filled, parts, meta = meta::made, value = 0),
    op!(aten::empty_permuted, filled, parts, meta = meta::made, value = 0),
    op!(aten::empty_strided, filled, parts, meta = meta::made, value = 0),
    op!(aten::eye, eye, parts, meta = meta_eye),
    op!(aten::eye_m, eye, parts, meta = meta_eye),
    op!(aten::fill_Scalar, fill, parts, meta = meta::same),
    op!(aten::fill_Tensor, fill, parts, meta = meta::same),
    op!(aten::full, full, parts, meta = meta_full),
    op!(aten::full_like, full, parts, meta = meta::made),
    op!(aten::hash_tensor, hash_tensor),
    op!(aten::linspace, linspace, parts, meta = meta_spaced),
    op!(aten::linspace_Scalar_Tensor, linspace, parts, meta = meta_spaced),
    op!(aten::linspace_Tensor_Scalar, linspace, parts, meta = meta_spaced),
    op!(aten::linspace_Tensor_Tensor, linspace, parts, meta = meta_spaced),
    op!(aten::logspace, logspace, complex = logspace_complex, meta = meta_spaced),
    op!(aten::logspace_Scalar_Tensor, logspace, complex = logspace_complex, meta = meta_spaced),
    op!(aten::logspace_Tensor_Scalar, logspace, complex = logspace_complex, meta = meta_spaced),
    op!(aten::logspace_Tensor_Tensor, logspace, complex = logspace_complex, meta = meta_spaced),
    op!(aten::new_empty, filled, parts, meta = meta::made, value = 0),
    op!(aten::new_empty_strided, filled, parts, meta = meta::made, value = 0),
    op!(aten::new_full, full, parts, meta = meta::made),
    op!(aten::new_ones, filled, parts, meta = meta::made, value = 1),
    op!(aten::new_zeros, filled, parts, meta = meta::made, value = 0),
    op!(aten::ones, filled, parts, meta = meta::made, value = 1),
    op!(aten::ones_like, filled, parts, meta = meta::made, value = 1),
    op!(aten::scalar_tensor, scalar_tensor, parts, meta = meta_scalar_tensor),
    op!(aten::tensor_bool, scalar_tensor, parts, meta = meta_tensor),
    op!(aten::tensor_complex, scalar_tensor, parts, meta = meta_tensor),
    op!(aten::tensor_float, scalar_tensor, parts, meta = meta_tensor),
    op!(aten::tensor_int, scalar_tensor, parts, meta = meta_tensor),
    op!(aten::tril_indices, triangle, meta = meta_triangle, lower = true),
    op!(aten::triu_indices, triangle, meta = meta_triangle, lower = false),
    op!(aten::vander, vander, complex = vander_complex, meta = meta::vander),
    op!(aten::zero, filled, parts, meta = meta::same, value = 0),
    op!(aten::zeros, filled, parts, meta = meta::made, value = 0),
    op!(aten::zeros_like, filled, parts, meta = meta::made, value = 0),
];

/// The sizes of `x` as a vector.
fn shape_as_tensor(cx: &Cx, x: Complex) -> Lowered {
    Ok(cx.sizes(&cx.shape(x.re)))
}

arguments! {
    /// A tensor filled with a number of the row. ONNX has no strides.
    struct FilledArgs {
        input: Ignored,
        size: Ignored,
        stride: Ignored,
        physical_layout: Ignored,
        dtype: Ignored,
        value: i64,
    }

    /// A tensor filled with a number.
    struct FullArgs { input: Ignored, size: Ignored, fill_value: TensorOrScalar, dtype: Ignored }
}

/// A tensor of the recorded type and sizes, filled with `value`; also where PyTorch leaves the
/// elements undefined.
fn filled(cx: &Cx, args: FilledArgs) -> Lowered {
    // Imaginary parts are zeros, whatever the number.
    let value = if cx.mode() == Mode::Part(1) { 0 } else { args.value };
    Ok(cx.full(&cx.out_shape()?, value, cx.out_dtype()?))
}

/// The same with a number that may be a 0-d tensor or symbolic.
fn full(cx: &Cx, args: FullArgs) -> Lowered {
    fill(cx, args.input, args.fill_value)
}

fn fill(cx: &Cx, _: Ignored, value: TensorOrScalar) -> Lowered {
    Ok(cx.expand(cx.as_tensor(&value, cx.out_dtype()?), &cx.out_shape()?))
}

/// A number as a 0-d tensor.
fn scalar_tensor(cx: &Cx, value: TensorOrScalar, dtype: Ignored) -> Lowered {
    fill(cx, dtype, value)
}

arguments! {
    /// Arguments of ranges.
    struct ArangeArgs {
        start: TensorOrScalar,
        end: TensorOrScalar,
        step: TensorOrScalar,
        dtype: Option<DType>,
    }

    /// Arguments of the identity matrix: rows and columns.
    struct EyeArgs { n: Expr, m: Option<Expr>, dtype: Option<DType> }

    /// Arguments of the indices of a triangle, the lower or the upper one.
    struct Triangle { row: i64, col: i64, offset: i64, dtype: Option<DType>, lower: bool }
}

/// `start + step * i` for each `i` below the length. ONNX's `Range` adds floats up, so ranges of
/// floats are computed from one of integers.
fn arange(cx: &Cx, args: ArangeArgs) -> Lowered {
    let ArangeArgs { start, end, step, .. } = args;
    let dtype = cx.out_dtype()?;
    let whole = |t: &TensorOrScalar| {
        matches!(t, TensorOrScalar::Scalar(Scalar::Int(_)) | TensorOrScalar::SymInt(_))
    };
    let int = |t: &TensorOrScalar| cx.as_tensor(t, DType::I64);
    // Into integers, start and step are rounded before, not the sums.
    let truncated = |t: TensorOrScalar| match t {
        TensorOrScalar::Scalar(s) if !dtype.is_float() => Scalar::Int(s.to_i64()).into(),
        TensorOrScalar::Tensor(t) if !dtype.is_float() => cx.cast(t, DType::I64).into(),
        other => other,
    };
    if [&start, &end, &step].into_iter().all(whole) {
        return Ok(cx.cast(cx.range(int(&start), int(&end), int(&step)), dtype));
    }
    let length = cx
        .out_shape()?
        .pop()
        .ok_or_else(|| LowerError::unsupported("the result of a range must be a vector"))?;
    let known = |start, step| known_counted(cx, start, step, &length, dtype);
    if let Some(numbers) = both(cx, &start, &step).and_then(|(start, step)| known(start, step)) {
        return Ok(numbers);
    }
    let unknown = !length.all_symbols(|symbol| cx.is_bound(symbol));
    let zero = cx.scalar(0, DType::I64);
    let count = if unknown {
        // Floats from data.
        let wide = |t: &TensorOrScalar| cx.as_tensor(t, DType::F64);
        let ratio = cx.div(cx.sub(wide(&end), wide(&start)), wide(&step));
        cx.reshape(cx.cast(cx.ceil(ratio), DType::I64), &[])
    } else {
        cx.size(&length)
    };
    let index = cx.range(zero, count, cx.scalar(1, DType::I64));
    cx.set_type(index, Type::tensor(DType::I64, [length]));
    let (start, step) = (truncated(start), truncated(step));
    let (wide, start, step) =
        (DType::F64, cx.as_tensor(&start, DType::F64), cx.as_tensor(&step, DType::F64));
    Ok(cx.cast(cx.add(start, cx.mul(cx.cast(index, wide), step)), dtype))
}

/// The identity matrix: 1 where row and column are equal, otherwise 0.
fn eye(cx: &Cx, args: EyeArgs) -> Lowered {
    let (columns, rows) = (args.m.unwrap_or_else(|| args.n.clone()), args.n);
    let dtype = cx.out_dtype()?;
    if cx.mode() == Mode::Part(1) {
        return Ok(cx.full(&[rows, columns], 0, dtype));
    }
    let index = |n: &Expr| cx.cast(cx.iota(n), DType::I64);
    let same = cx.equal(cx.unsqueeze(index(&rows), &[1]), index(&columns));
    Ok(cx.cast(same, dtype))
}

/// `steps` numbers from `start` to `end` at equal distances.
fn linspace(
    cx: &Cx,
    start: TensorOrScalar,
    end: TensorOrScalar,
    steps: Expr,
    _: Ignored,
) -> Lowered {
    let dtype = cx.out_dtype()?;
    let known = |low, high| known_spaced(cx, low, high, &steps, dtype);
    if let Some(numbers) = both(cx, &start, &end).and_then(|(low, high)| known(low, high)) {
        return Ok(numbers);
    }
    let (low, high) = (ends(cx, &start, dtype), ends(cx, &end, dtype));
    Ok(spaced(cx, low, high, &steps, dtype))
}

/// Two numbers of the program's text; the parts of complex ones are translated separately.
fn both(cx: &Cx, a: &TensorOrScalar, b: &TensorOrScalar) -> Option<(f64, f64)> {
    match (a, b) {
        (TensorOrScalar::Scalar(a), TensorOrScalar::Scalar(b)) if cx.mode() == Mode::Real => {
            Some((a.to_f64(), b.to_f64()))
        }
        _ => None,
    }
}

/// The type in which a range is computed.
fn wide_type(dtype: DType) -> DType {
    if dtype.is_float() && dtype != DType::F64 { DType::F32 } else { DType::F64 }
}

/// An end of a range: rounded to the type of the result, then in the type that is computed in.
fn ends(cx: &Cx, end: &TensorOrScalar, dtype: DType) -> Value {
    cx.cast(cx.as_tensor(end, dtype), wide_type(dtype))
}

/// `base^p` for each `p` of [`linspace`].
fn logspace(
    cx: &Cx,
    start: TensorOrScalar,
    end: TensorOrScalar,
    steps: Expr,
    base: f64,
    _: Ignored,
) -> Lowered {
    let dtype = cx.out_dtype()?;
    let wide = wide_type(dtype);
    let (low, high) = (ends(cx, &start, dtype), ends(cx, &end, dtype));
    let powers = spaced(cx, low, high, &steps, wide);
    Ok(cx.cast(cx.pow(cx.scalar(base, wide), powers), dtype))
}

/// Rows and columns of the elements up to a diagonal, or from it on.
fn triangle(cx: &Cx, args: Triangle) -> Lowered {
    let Triangle { row: rows, col: columns, offset, lower, .. } = args;
    let chosen = |i, j| if lower { j - i <= offset } else { j - i >= offset };
    if rows.checked_mul(columns).is_none_or(|n| n > 1 << 24) {
        return Err(LowerError::unsupported(
            "triangles of more than 16 million elements are not supported",
        ));
    }
    let all =
        || (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).filter(|&(i, j)| chosen(i, j));
    let mut elements: Vec<i64> = all().map(|(i, _)| i).collect();
    let n = elements.len();
    elements.extend(all().map(|(_, j)| j));
    let tensor = Tensor::vector(&elements).reshaped(vec![2, n]);
    let tensor = tensor
        .ok_or_else(|| LowerError::unsupported("triangles of that size are not supported"))?;
    Ok(cx.cast(cx.constant(tensor), cx.out_dtype()?))
}

/// Powers of `x` in a new last dimension: 0, 1, .., or .., 1, 0 unless `increasing`.
fn vander(cx: &Cx, x: Value, n: Option<Expr>, increasing: bool) -> Lowered {
    let dtype = cx.out_dtype()?;
    // A 0-d tensor counts as a vector.
    let x = cx.cast(vector(cx, x), dtype);
    let n = n.unwrap_or_else(|| cx.dim(x, -1));
    let base = cx.unsqueeze(x, &[cx.rank(x)]);
    let of_powers = if dtype.is_float() { dtype } else { DType::I64 };
    let powers = cx.cast(cx.iota(&n), of_powers);
    let reversed = || cx.sub(cx.cast(cx.size(&(&n - 1)), of_powers), powers);
    Ok(cx.pow(base, if increasing { powers } else { reversed() }))
}

/// The exclusive or of the bits of all elements, taken as int64; floats as float64.
fn hash_tensor(cx: &Cx, x: Value, dims: Vec<i64>, keepdim: bool, mode: i64) -> Lowered {
    if mode != 0 {
        return Err(LowerError::unsupported("only the hash `xor` (mode 0) is supported"));
    }
    let axes = cx.axes(x, Some(&dims))?;
    let kept: Vec<usize> = (0..cx.rank(x)).filter(|a| !axes.contains(a)).collect();
    let bits = match cx.dtype(x) {
        dtype if dtype.is_float() => cx.bit_cast(cx.cast(x, DType::F64), data_type(DType::I64)),
        _ => cx.cast(x, DType::I64),
    };
    let order: Vec<usize> = axes.iter().chain(&kept).copied().collect();
    let moved = cx.transpose(cx.cast(bits, DType::U64), &order);
    let mut shape = vec![Expr::product(axes.iter().map(|&a| cx.dim(x, a as i64)))];
    shape.extend(kept.iter().map(|&a| cx.dim(x, a as i64)));
    let rows = cx.reshape(moved, &shape);
    let found = fold(cx, rows, Scalar::Int(0), |a, b| cx.bitwise_xor(a, b));
    Ok(if keepdim { cx.unsqueeze(found, &axes) } else { found })
}

/// `base^z = base^re (cos(im ln base) + i sin(im ln base))`.
fn logspace_complex(
    cx: &Cx,
    start: Complex,
    end: Complex,
    steps: Expr,
    base: f64,
    _: Ignored,
) -> Lowered {
    let dtype = cx.out_dtype()?;
    let re = spaced(cx, start.re, end.re, &steps, dtype);
    let im = spaced(cx, start.imag(cx), end.imag(cx), &steps, dtype);
    let (length, angle) = (cx.pow(cx.scalar(base, dtype), re), cx.mul(im, base.ln()));
    Ok(cx.pairs(Complex::polar(cx, length, angle)))
}

/// [`vander`] of complex numbers; each power is the one before times `x`.
fn vander_complex(cx: &Cx, x: Complex, n: Option<Expr>, increasing: bool) -> Lowered {
    let dims = cx.shape(x.re);
    let last = dims.len().max(1);
    let vector = if dims.is_empty() { vec![Expr::int(1)] } else { dims };
    let Some(n @ 0..=64) = n.unwrap_or_else(|| vector[last - 1].clone()).as_int() else {
        return Err(LowerError::unsupported(
            "complex Vandermonde matrices are supported for up to 64 columns, known at export",
        ));
    };
    let dtype = cx.out_dtype()?;
    let x = x.cast(cx, dtype).complex(cx).expand(cx, &vector);
    let mut power = Complex::new(cx.full(&vector, 1, dtype), cx.full(&vector, 0, dtype));
    let mut columns = Vec::new();
    for _ in 0..n {
        columns.push(power);
        power = power.mul(cx, x);
    }
    if !increasing {
        columns.reverse();
    }
    let stack = |part: &dyn Fn(&Complex) -> Value| {
        let all: Vec<Value> = columns.iter().map(|c| cx.unsqueeze(part(c), &[last])).collect();
        cx.concat(&all, last)
    };
    Ok(cx.pairs(Complex::new(stack(&|c| c.re), stack(&|c| c.imag(cx)))))
}

/// `0, 1, ..` along `dim` of `like`, int64.
fn dim_arange(cx: &Cx, like: Value, dim: i64) -> Lowered {
    let axis = cx.axis(like, dim)?;
    Ok(counted(cx, &Expr::int(0), &cx.dim(like, axis as i64), 1))
}

arguments! {
    struct Spaced { start: TensorOrScalar, end: TensorOrScalar, steps: Expr, dtype: Option<DType> }
}

/// Without a type, that of the number.
fn meta_full(cx: &Cx, size: Vec<Expr>, value: TensorOrScalar, dtype: Option<DType>) -> Lowered {
    Ok(typed(cx, dtype.unwrap_or_else(|| cx.result_type(&[value])), &size))
}

/// `steps` numbers, floats or complex ones.
fn meta_spaced(cx: &Cx, args: Spaced) -> Lowered {
    let complex = |n: &TensorOrScalar| match n {
        TensorOrScalar::Tensor(v) => cx.dtype(*v).is_complex(),
        n => matches!(n, TensorOrScalar::Scalar(Scalar::Complex(..))),
    };
    let natural = if [&args.start, &args.end].into_iter().any(complex) {
        cx.default_complex()
    } else {
        cx.default_float()
    };
    Ok(typed(cx, args.dtype.unwrap_or(natural), &[args.steps]))
}

/// int64 if all numbers are integers. `ceil((end - start) / step)` elements, which depends on data
/// where floats do.
fn meta_arange(cx: &Cx, args: ArangeArgs) -> Lowered {
    let operands = [args.start, args.end, args.step];
    let integer = |n: &TensorOrScalar| match n {
        TensorOrScalar::Scalar(Scalar::Int(i)) => Some(Expr::int(*i)),
        TensorOrScalar::Scalar(Scalar::Bool(b)) => Some(Expr::int((*b).into())),
        TensorOrScalar::SymInt(e) => Some(e.clone()),
        _ => None,
    };
    let float = |n: &TensorOrScalar| match n {
        TensorOrScalar::Scalar(s) => Some(s.to_f64()),
        _ => None,
    };
    let exact = operands.iter().map(integer).collect::<Option<Vec<_>>>();
    let length = match exact.as_deref() {
        Some([start, end, step]) => {
            let length =
                if step.as_int() == Some(1) { end - start } else { (end - start).ceil_div(step) };
            cx.constraints().simplify(&Expr::max(&length, &Expr::ZERO))
        }
        _ => match operands.iter().map(float).collect::<Option<Vec<_>>>().as_deref() {
            Some([start, end, step]) => Expr::int(((end - start) / step).ceil().max(0.0) as i64),
            _ => fresh(cx),
        },
    };
    let natural = if exact.is_some() { DType::I64 } else { cx.default_float() };
    Ok(typed(cx, args.dtype.unwrap_or(natural), &[length]))
}

/// Row and column of each element of the lower or upper triangle.
fn meta_triangle(cx: &Cx, args: Triangle) -> Lowered {
    let below = |row: i64| (row + args.offset + i64::from(args.lower)).clamp(0, args.col);
    let in_row = |row: i64| if args.lower { below(row) } else { args.col - below(row) };
    let count: i64 = (0..args.row).map(in_row).sum();
    Ok(typed(cx, args.dtype.unwrap_or(DType::I64), &[Expr::int(2), Expr::int(count)]))
}

fn meta_eye(cx: &Cx, args: EyeArgs) -> Lowered {
    let m = args.m.unwrap_or_else(|| args.n.clone());
    Ok(typed(cx, args.dtype.unwrap_or_else(|| cx.default_float()), &[args.n, m]))
}

/// A float for any number.
fn meta_scalar_tensor(cx: &Cx, number: TensorOrScalar, dtype: Option<DType>) -> Lowered {
    meta_tensor(cx, number, dtype.or(Some(cx.default_float())))
}

/// A number as a 0-d tensor.
fn meta_tensor(cx: &Cx, number: TensorOrScalar, dtype: Option<DType>) -> Lowered {
    let known = match &number {
        TensorOrScalar::Scalar(Scalar::Int(i)) => Some(Expr::int(*i)),
        TensorOrScalar::SymInt(e) => Some(e.clone()),
        _ => None,
    };
    let dtype = dtype.unwrap_or_else(|| cx.result_type(&[number]));
    let value = typed(cx, dtype, &[]);
    known.filter(|_| dtype.is_int()).into_iter().for_each(|e| cx.set_contents(value, vec![e]));
    Ok(value)
}

checks! {
    // Ranges of floats are computed from integers.
    "aten.arange.start_step(0.5, 2.5, 0.25, dtype = torch.float32) -> f32[8]" => "
    arange = Cast <to: int = 1> (double[8] {0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25})
    ";

    // Sizes of run time.
    "aten.new_ones(x: f32[s0, 2], [n: Sym(s0), 3], dtype = torch.int32) -> i32[s0, 3]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (x)
    val_1 = Concat <axis: int = 0> (val_0, [3])
    new_ones = Expand (int32 {1}, val_1)
    ";
    "aten.eye(n: Sym(s0)) -> f32[s0, s0]" => "
    val_0 = Range (0, n, 1)
    val_1 = Unsqueeze (val_0, [1])
    val_2 = Range (0, n, 1)
    val_3 = Equal (val_1, val_2)
    eye = Cast <to: int = 1> (val_3)
    ";

    // Numbers along a dimension.
    "aten._dim_arange(x: f32[2, 3], -1) -> i64[3]" => "=> [0, 1, 2]";
}
