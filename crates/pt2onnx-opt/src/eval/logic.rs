//! Evaluates comparisons, logic, operators on bits, and `Where`.

use super::{
    Call, Eval, Number, Row, arithmetic::zip, array, broadcast, by_number, by_width, dim,
    of_elements, tensor,
};
use ndarray::ArrayD;
use pt2onnx_ir::attrs;
use pt2onnx_tensor::{DType, Tensor};
use std::cmp::Ordering;

pub(super) static OPS: &[Row] = &[
    ("Equal", Eval::One(equal)),
    ("Less", Eval::One(|c| compare(c, Ordering::is_lt))),
    ("LessOrEqual", Eval::One(|c| compare(c, Ordering::is_le))),
    ("Greater", Eval::One(|c| compare(c, Ordering::is_gt))),
    ("GreaterOrEqual", Eval::One(|c| compare(c, Ordering::is_ge))),
    ("And", Eval::One(|c| truth(c, |a, b| a & b))),
    ("Or", Eval::One(|c| truth(c, |a, b| a | b))),
    ("Xor", Eval::One(|c| truth(c, |a, b| a ^ b))),
    ("Not", Eval::One(not)),
    ("BitwiseAnd", Eval::One(|c| bits(c, Bits::And))),
    ("BitwiseOr", Eval::One(|c| bits(c, Bits::Or))),
    ("BitwiseXor", Eval::One(|c| bits(c, Bits::Xor))),
    ("BitwiseNot", Eval::One(bitwise_not)),
    ("IsNaN", Eval::One(|c| test(c, |v| v.is_nan()))),
    ("IsInf", Eval::One(is_inf)),
    ("Where", Eval::One(select)),
];

/// NaN is not less than, equal to or greater than anything.
fn compare(call: &Call, holds: fn(Ordering) -> bool) -> Option<Tensor> {
    let (a, b) = (call.input(0)?, call.input(1)?);
    by_number!(a.dtype(), T => {
        let (a, b) = (array::<T>(a)?, array::<T>(b)?);
        tensor(DType::Bool, &zip(call, &a, &b, DType::Bool, |a, b| Some(a.partial_cmp(&b).is_some_and(holds)))?)
    })
}

fn equal(call: &Call) -> Option<Tensor> {
    match call.input(0)?.dtype() {
        DType::Bool => truth(call, |a, b| a == b),
        _ => compare(call, Ordering::is_eq),
    }
}

fn bools(t: &Tensor) -> Option<ArrayD<u8>> {
    (t.dtype() == DType::Bool).then(|| Some(array::<bool>(t)?.mapv(u8::from)))?
}

fn truth(call: &Call, f: fn(bool, bool) -> bool) -> Option<Tensor> {
    let (a, b) = (bools(call.input(0)?)?, bools(call.input(1)?)?);
    tensor(DType::Bool, &zip(call, &a, &b, DType::Bool, |a, b| Some(f(a != 0, b != 0)))?)
}

fn not(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    call.room(DType::Bool, x.shape())?;
    tensor(DType::Bool, &bools(x)?.mapv(|v| v == 0))
}

#[derive(Clone, Copy)]
enum Bits {
    And,
    Or,
    Xor,
}

fn bits(call: &Call, op: Bits) -> Option<Tensor> {
    let (a, b) = (call.input(0)?, call.input(1)?);
    let dtype = a.dtype();
    by_width!(dtype, T => {
        let joined = zip(call, &array::<T>(a)?, &array::<T>(b)?, dtype, |a, b| Some(match op {
            Bits::And => a & b,
            Bits::Or => a | b,
            Bits::Xor => a ^ b,
        }));
        tensor(dtype, &joined?)
    })
}

fn bitwise_not(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    call.room(x.dtype(), x.shape())?;
    by_width!(x.dtype(), T => tensor(x.dtype(), &array::<T>(x)?.mapv(|v| !v)))
}

fn test(call: &Call, holds: impl Fn(f64) -> bool) -> Option<Tensor> {
    let x = call.input(0)?;
    call.room(DType::Bool, x.shape())?;
    by_number!(x.dtype(), T => tensor(DType::Bool, &array::<T>(x)?.mapv(|v| holds(v.double()))))
}

fn is_inf(call: &Call) -> Option<Tensor> {
    let wanted = attrs::IsInf::read(call.node).ok()?;
    test(call, |v| {
        (v == f64::INFINITY && wanted.detect_positive)
            || (v == f64::NEG_INFINITY && wanted.detect_negative)
    })
}

fn select(call: &Call) -> Option<Tensor> {
    let (condition, a, b) = (bools(call.input(0)?)?, call.input(1)?, call.input(2)?);
    let shape = broadcast(&[condition.shape(), a.shape(), b.shape()])?;
    call.room(a.dtype(), &shape)?;
    by_width!(a.dtype(), T => {
        let (x, y) = (array::<T>(a)?, array::<T>(b)?);
        let (x, y) = (x.broadcast(dim(&shape))?, y.broadcast(dim(&shape))?);
        let condition = condition.broadcast(dim(&shape))?;
        let elements = condition.iter().zip(x.iter().zip(y.iter())).map(|(&c, (&x, &y))| if c != 0 { x } else { y });
        of_elements(a.dtype(), &shape, elements)
    })
}
