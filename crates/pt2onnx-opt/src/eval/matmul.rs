//! Evaluates `MatMul`, `MatMulInteger`, `Gemm` and `Einsum` of small operands.

use super::{
    Call, Eval, Number, Row, array, broadcast, dim, doubles, floats, of_elements, shaped, tensor,
};
use half::{bf16, f16};
use ndarray::{Array3, ArrayD, ArrayViewD, Axis, IxDyn};
use num_traits::AsPrimitive;
use pt2onnx_ir::attrs;
use pt2onnx_tensor::{DType, Element, Tensor};

pub(super) static OPS: &[Row] = &[
    ("MatMul", Eval::One(matmul)),
    ("MatMulInteger", Eval::One(matmul_integer)),
    ("Gemm", Eval::One(gemm)),
    ("Einsum", Eval::One(einsum)),
];

/// Larger products are left to the runtime.
pub(super) const MAX_WORK: usize = 1 << 22;

fn matmul(call: &Call) -> Option<Tensor> {
    fn of<T: Dot>(call: &Call) -> Option<Tensor> {
        let (a, b) = (array::<T>(call.input(0)?)?, array::<T>(call.input(1)?)?);
        tensor(T::DTYPE, &product(call, a, b)?)
    }
    match call.input(0)?.dtype() {
        DType::F32 => of::<f32>(call),
        DType::F64 => of::<f64>(call),
        DType::F16 => of::<f16>(call),
        DType::BF16 => of::<bf16>(call),
        DType::I64 => of::<i64>(call),
        DType::I32 => of::<i32>(call),
        _ => None,
    }
}

/// Products of int8 or uint8 less their zero points: one for all, or one for each column of the
/// second operand.
fn matmul_integer(call: &Call) -> Option<Tensor> {
    let numbers = |i: usize| {
        let t = call.input(i)?;
        match t.dtype() {
            DType::U8 => Some(array::<u8>(t)?.mapv(i64::from)),
            DType::I8 => Some(array::<i8>(t)?.mapv(i64::from)),
            _ => None,
        }
    };
    let less_zero = |i: usize, columns: bool| {
        let x = numbers(i)?;
        if call.input(i + 2).is_none() {
            return Some(x);
        }
        let zero = numbers(i + 2).filter(|z| z.len() == 1 || columns && z.ndim() == 1)?;
        let zero = if zero.len() == 1 { zero.into_shape_with_order(dim(&[])).ok()? } else { zero };
        Some(&x - &zero.broadcast(x.raw_dim())?)
    };
    let result = product(call, less_zero(0, false)?, less_zero(1, true)?)?;
    tensor(DType::I32, &result.mapv(|v| v as i32))
}

/// `alpha * A B + beta * C`, for floats only.
fn gemm(call: &Call) -> Option<Tensor> {
    fn of<T: Dot + Number>(call: &Call) -> Option<Tensor> {
        let options = attrs::Gemm::read(call.node).ok()?;
        let matrix = |i: usize, turned: bool| {
            let x = array::<T>(call.input(i)?)?;
            Some(if turned { x.reversed_axes() } else { x })
        };
        let (a, b) = (matrix(0, options.trans_a)?, matrix(1, options.trans_b)?);
        let ab = product(call, a, b)?;
        let scaled = |v: T, by: f32| v.double() * f64::from(by);
        let elements: Option<Vec<T>> = match call.input(2) {
            None => ab.iter().map(|&v| T::rounded(scaled(v, options.alpha))).collect(),
            Some(c) => {
                let c = array::<T>(c)?;
                let sum = |(&v, &c): (&T, &T)| {
                    T::rounded(scaled(v, options.alpha) + scaled(c, options.beta))
                };
                ab.iter().zip(c.broadcast(ab.raw_dim())?).map(sum).collect()
            }
        };
        of_elements(T::DTYPE, ab.shape(), elements?)
    }
    match call.input(0)?.dtype() {
        DType::F32 => of::<f32>(call),
        DType::F64 => of::<f64>(call),
        _ => None,
    }
}

/// `Einsum` of floats, without an ellipsis. Sums are computed in float64.
fn einsum(call: &Call) -> Option<Tensor> {
    let equation: String = attrs::Einsum::equation(call.node).ok()?.split(' ').collect();
    let (terms, result) = equation.split_once("->")?;
    let terms: Vec<Vec<char>> = terms.split(',').map(|t| t.chars().collect()).collect();
    let operands = call.all()?;
    if terms.len() != operands.len() || equation.contains('.') {
        return None;
    }
    // Letters of the result come first, then those that are summed over.
    let (mut letters, kept) = (Vec::new(), result.chars().count());
    for letter in result.chars().chain(terms.iter().flatten().copied()) {
        if !letters.contains(&letter) {
            letters.push(letter);
        }
    }
    let places = |term: &Vec<char>| -> Option<Vec<usize>> {
        term.iter().map(|letter| letters.iter().position(|c| c == letter)).collect()
    };
    let places = terms.iter().map(places).collect::<Option<Vec<_>>>()?;
    let mut sizes = vec![None; letters.len()];
    for (places, t) in places.iter().zip(&operands) {
        if places.len() != t.rank() {
            return None;
        }
        for (&at, &size) in places.iter().zip(t.shape()) {
            if *sizes[at].get_or_insert(size) != size {
                return None;
            }
        }
    }
    let sizes = sizes.into_iter().collect::<Option<Vec<usize>>>()?;
    let dtype = operands.first()?.dtype();
    let shape = sizes.get(..kept)?;
    call.room(dtype, shape)?;
    let work = sizes.iter().try_fold(operands.len(), |n, &s| n.checked_mul(s))?;
    if work > MAX_WORK || operands.iter().any(|t| t.dtype() != dtype) {
        return None;
    }
    let factors = operands.iter().map(|t| doubles(t)).collect::<Option<Vec<_>>>()?;
    let mut sums = ArrayD::<f64>::zeros(dim(shape));
    for at in ndarray::indices(dim(&sizes)) {
        let element = |(places, factor): (&Vec<usize>, &ArrayD<f64>)| {
            let index: Vec<usize> = places.iter().map(|&p| at[p]).collect();
            factor.get(IxDyn(&index)).copied()
        };
        let product = places.iter().zip(&factors).map(element).product::<Option<f64>>()?;
        let result: Vec<usize> = (0..kept).map(|i| at[i]).collect();
        *sums.get_mut(IxDyn(&result))? += product;
    }
    floats(dtype, &sums)
}

/// Floats are summed in float64 and rounded once; integers wrap.
trait Dot: Element {
    fn dot(pairs: impl Iterator<Item = (Self, Self)>) -> Self;
}

macro_rules! dot {
    ($($t:ty: $sum:ty, $add:expr);*) => {$(
        impl Dot for $t {
            fn dot(pairs: impl Iterator<Item = (Self, Self)>) -> Self {
                let add: fn($sum, $sum, $sum) -> $sum = $add;
                let total = pairs.fold(<$sum>::default(), |s, (a, b)| add(s, a.into(), b.into()));
                AsPrimitive::<$t>::as_(total)
            }
        }
    )*};
}
macro_rules! half_dot {
    ($($t:ty),*) => {$(
        impl Dot for $t {
            fn dot(pairs: impl Iterator<Item = (Self, Self)>) -> Self {
                <$t>::from_f64(pairs.map(|(a, b)| f64::from(a) * f64::from(b)).sum())
            }
        }
    )*};
}
half_dot!(f16, bf16);
dot!(f32: f64, |s, a, b| s + a * b;
     f64: f64, |s, a, b| s + a * b;
     i64: i64, |s, a, b| s.wrapping_add(a.wrapping_mul(b));
     i32: i64, |s, a, b| s.wrapping_add(a.wrapping_mul(b)));

fn product<T: Dot>(call: &Call, mut a: ArrayD<T>, mut b: ArrayD<T>) -> Option<ArrayD<T>> {
    let (vector_a, vector_b) = (a.ndim() == 1, b.ndim() == 1);
    if vector_a {
        a = a.insert_axis(Axis(0));
    }
    if vector_b {
        b = b.insert_axis(Axis(1));
    }
    let ([lead_a @ .., m, k], [lead_b @ .., k2, n]) = (a.shape(), b.shape()) else { return None };
    let (m, k, n, k2) = (*m, *k, *n, *k2);
    let lead = broadcast(&[lead_a, lead_b])?;
    let shape = |last: [usize; 2]| [&lead[..], &last].concat();
    call.room(T::DTYPE, &shape([m, n]))?;
    let work = shape([m, n]).iter().try_fold(k.max(1), |w, &s| w.checked_mul(s))?;
    if k != k2 || work > MAX_WORK {
        return None;
    }
    let (a, b) = (a.broadcast(dim(&shape([m, k])))?, b.broadcast(dim(&shape([k, n])))?);
    let mut elements = Vec::with_capacity(shape([m, n]).iter().product());
    let matrices = |x: ArrayViewD<'_, T>, [rows, columns]: [usize; 2]| -> Option<Array3<T>> {
        Some(x.to_shape((lead.iter().product(), rows, columns)).ok()?.to_owned())
    };
    for (a, b) in matrices(a, [m, k])?.outer_iter().zip(matrices(b, [k, n])?.outer_iter()) {
        for row in a.axis_iter(Axis(0)) {
            for column in b.axis_iter(Axis(1)) {
                elements.push(T::dot(row.iter().copied().zip(column.iter().copied())));
            }
        }
    }
    let mut result = shape([m, n]);
    if vector_b {
        result.pop();
    }
    if vector_a {
        result.remove(lead.len());
    }
    shaped(&result, elements)
}
