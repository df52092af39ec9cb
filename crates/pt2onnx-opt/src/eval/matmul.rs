//! `MatMul` of small matrices.

use super::{
    array::array,
    call::{Call, Eval, Row, broadcast, dim},
};
use ndarray::{Array3, ArrayD, ArrayViewD, Axis};
use num_traits::AsPrimitive;
use pt2onnx_tensor::{DType, Element, Tensor};

pub(super) static OPS: &[Row] = &[("MatMul", Eval::One(matmul))];

/// Larger products are left to the runtime.
const MAX_WORK: usize = 1 << 22;

fn matmul(call: &Call) -> Option<Tensor> {
    match call.input(0)?.dtype() {
        DType::F32 => product::<f32>(call),
        DType::F64 => product::<f64>(call),
        DType::I64 => product::<i64>(call),
        DType::I32 => product::<i32>(call),
        _ => None,
    }
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
dot!(f32: f64, |s, a, b| s + a * b;
     f64: f64, |s, a, b| s + a * b;
     i64: i64, |s, a, b| s.wrapping_add(a.wrapping_mul(b));
     i32: i64, |s, a, b| s.wrapping_add(a.wrapping_mul(b)));

fn product<T: Dot>(call: &Call) -> Option<Tensor> {
    let (mut a, mut b) = (array::<T>(call.input(0)?)?, array::<T>(call.input(1)?)?);
    let (vector_a, vector_b) = (a.ndim() == 1, b.ndim() == 1);
    if vector_a {
        a = a.insert_axis(Axis(0));
    }
    if vector_b {
        b = b.insert_axis(Axis(1));
    }
    let ([lead_a @ .., m, k], [lead_b @ .., k2, n]) = (a.shape(), b.shape()) else {
        return None;
    };
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
    super::array::tensor(T::DTYPE, &ArrayD::from_shape_vec(dim(&result), elements).ok()?)
}
