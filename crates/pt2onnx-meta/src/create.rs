//! Infers the types of the tensors that ops make of given sizes.

use crate::stand_ins::{fresh, typed};
use pt2onnx_ir::Value;
use pt2onnx_lowering::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, arguments, op};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static RULES: &[AtenOp] = &[
    op!(aten::_shape_as_tensor, shape_as_tensor),
    op!(aten::arange, arange),
    op!(aten::arange_start, arange),
    op!(aten::arange_start_step, arange),
    op!(aten::bartlett_window, window),
    op!(aten::bartlett_window_periodic, window),
    op!(aten::blackman_window, window),
    op!(aten::blackman_window_periodic, window),
    op!(aten::empty_memory_format, made),
    op!(aten::empty_permuted, made),
    op!(aten::empty_strided, made),
    op!(aten::eye, eye),
    op!(aten::eye_m, eye),
    op!(aten::fft_fftfreq, frequencies),
    op!(aten::fft_rfftfreq, half_frequencies),
    op!(aten::full, full),
    op!(aten::hamming_window, window),
    op!(aten::hamming_window_periodic, window),
    op!(aten::hamming_window_periodic_alpha, window),
    op!(aten::hamming_window_periodic_alpha_beta, window),
    op!(aten::hann_window, window),
    op!(aten::hann_window_periodic, window),
    op!(aten::kaiser_window, window),
    op!(aten::kaiser_window_beta, window),
    op!(aten::kaiser_window_periodic, window),
    op!(aten::linspace, spaced),
    op!(aten::linspace_Scalar_Tensor, spaced),
    op!(aten::linspace_Tensor_Scalar, spaced),
    op!(aten::linspace_Tensor_Tensor, spaced),
    op!(aten::logspace, spaced),
    op!(aten::logspace_Scalar_Tensor, spaced),
    op!(aten::logspace_Tensor_Scalar, spaced),
    op!(aten::logspace_Tensor_Tensor, spaced),
    op!(aten::new_empty, made_like),
    op!(aten::new_empty_strided, made_like),
    op!(aten::new_full, made_like),
    op!(aten::new_ones, made_like),
    op!(aten::new_zeros, made_like),
    op!(aten::normal_Tensor_Tensor, normal),
    op!(aten::normal_Tensor_float, normal),
    op!(aten::normal_float_Tensor, normal),
    op!(aten::normal_float_float, made),
    op!(aten::ones, made),
    op!(aten::rand, made),
    op!(aten::rand_generator, made),
    op!(aten::randint, made_integers),
    op!(aten::randint_generator, made_integers),
    op!(aten::randint_low, made_integers),
    op!(aten::randint_low_generator, made_integers),
    op!(aten::randn, made),
    op!(aten::randn_generator, made),
    op!(aten::randperm, permutation),
    op!(aten::randperm_generator, permutation),
    op!(aten::scalar_tensor, scalar_tensor),
    op!(aten::tensor_bool, tensor),
    op!(aten::tensor_complex, tensor),
    op!(aten::tensor_float, tensor),
    op!(aten::tensor_int, tensor),
    op!(aten::tril_indices, triangle, lower = true),
    op!(aten::triu_indices, triangle, lower = false),
    op!(aten::zeros, made),
];

arguments! {
    struct Made { size: Vec<Expr>, dtype: Option<DType> }
    struct MadeLike { input: Value, size: Vec<Expr>, dtype: Option<DType> }
    struct Full { size: Vec<Expr>, fill_value: TensorOrScalar, dtype: Option<DType> }
    struct Spaced { start: TensorOrScalar, end: TensorOrScalar, steps: Expr, dtype: Option<DType> }
    struct Range { start: Option<TensorOrScalar>, end: TensorOrScalar, step: Option<TensorOrScalar>, dtype: Option<DType> }
    struct Triangle { row: i64, col: i64, offset: i64, dtype: Option<DType>, lower: bool }
    struct Eye { n: Expr, m: Option<Expr>, dtype: Option<DType> }
    struct Normal { mean: TensorOrScalar, std: TensorOrScalar }
    struct One { s: TensorOrScalar, dtype: Option<DType> }
    struct Data { t: TensorOrScalar, dtype: Option<DType> }
    struct Window { window_length: Expr, dtype: Option<DType> }
    struct Frequencies { n: Expr, dtype: Option<DType> }
    struct Permutation { n: Expr, dtype: Option<DType> }
}

fn made(cx: &Cx, args: Made) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or_else(|| cx.default_float()), &args.size))
}

/// int64 if no type is given.
fn made_integers(cx: &Cx, args: Made) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or(DType::I64), &args.size))
}

fn made_like(cx: &Cx, args: MadeLike) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or(cx.dtype(args.input)), &args.size))
}

/// Without a type, that of the number.
fn full(cx: &Cx, args: Full) -> Lowered {
    let dtype = args.dtype.unwrap_or_else(|| cx.result_type(&[args.fill_value]));
    Ok(typed(cx, dtype, &args.size))
}

/// `steps` numbers, floats or complex ones.
fn spaced(cx: &Cx, args: Spaced) -> Lowered {
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
fn arange(cx: &Cx, args: Range) -> Lowered {
    let start = args.start.unwrap_or(Scalar::Int(0).into());
    let step = args.step.unwrap_or(Scalar::Int(1).into());
    let operands = [start, args.end, step];
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

/// Row and column of each element of a triangle.
fn triangle(cx: &Cx, args: Triangle) -> Lowered {
    let below = |row: i64| (row + args.offset + i64::from(args.lower)).clamp(0, args.col);
    let in_row = |row: i64| if args.lower { below(row) } else { args.col - below(row) };
    let count: i64 = (0..args.row).map(in_row).sum();
    Ok(typed(cx, args.dtype.unwrap_or(DType::I64), &[Expr::int(2), Expr::int(count)]))
}

fn eye(cx: &Cx, args: Eye) -> Lowered {
    let m = args.m.unwrap_or_else(|| args.n.clone());
    Ok(typed(cx, args.dtype.unwrap_or_else(|| cx.default_float()), &[args.n, m]))
}

/// The sizes of both operands together, the type of the first tensor.
fn normal(cx: &Cx, args: Normal) -> Lowered {
    let tensors = [args.mean, args.std].into_iter().filter_map(|o| match o {
        TensorOrScalar::Tensor(v) => Some(v),
        _ => None,
    });
    let tensors: Vec<Value> = tensors.collect();
    let first = tensors.first().ok_or_else(|| LowerError::unsupported("it has no tensor"))?;
    let shapes: Vec<_> = tensors.iter().map(|&v| cx.shape(v).into_iter().collect()).collect();
    Ok(typed(cx, cx.dtype(*first), &crate::stand_ins::broadcast(cx, &shapes)))
}

/// A float for any number.
fn scalar_tensor(cx: &Cx, args: One) -> Lowered {
    tensor(cx, Data { t: args.s, dtype: args.dtype.or(Some(cx.default_float())) })
}

fn permutation(cx: &Cx, args: Permutation) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or(DType::I64), &[args.n]))
}

/// A number as a 0-d tensor.
fn tensor(cx: &Cx, args: Data) -> Lowered {
    let known = match &args.t {
        TensorOrScalar::Scalar(Scalar::Int(i)) => Some(Expr::int(*i)),
        TensorOrScalar::SymInt(e) => Some(e.clone()),
        _ => None,
    };
    let dtype = args.dtype.unwrap_or_else(|| cx.result_type(&[args.t]));
    let value = typed(cx, dtype, &[]);
    known.filter(|_| dtype.is_int()).into_iter().for_each(|e| cx.set_contents(value, vec![e]));
    Ok(value)
}

fn shape_as_tensor(cx: &Cx, x: Value) -> Lowered {
    let sizes = cx.shape(x);
    let value = typed(cx, DType::I64, &[Expr::int(sizes.len() as i64)]);
    cx.set_contents(value, sizes.into_iter().collect());
    Ok(value)
}

fn window(cx: &Cx, args: Window) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or_else(|| cx.default_float()), &[args.window_length]))
}

fn frequencies(cx: &Cx, args: Frequencies) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or_else(|| cx.default_float()), &[args.n]))
}

fn half_frequencies(cx: &Cx, args: Frequencies) -> Lowered {
    frequencies(cx, Frequencies { n: args.n.floor_div(&Expr::int(2)) + 1, dtype: args.dtype })
}
