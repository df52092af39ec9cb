//! `Cast`, `CastLike` and `Identity`.

use super::call::{Call, Eval, Row};
use half::{bf16, f16};
use pt2onnx_ir::{attrs, schema};
use pt2onnx_tensor::{DType, Element, Tensor};

pub(super) static OPS: &[Row] = &[
    ("Cast", Eval::One(|c| cast(c, schema::dtype(attrs::Cast::to(c.node).ok()?)?))),
    ("CastLike", Eval::One(|c| cast(c, c.input(1)?.dtype()))),
    ("Identity", Eval::One(|c| c.input(0).cloned())),
];

/// An element between two types; every type fits into one of these.
enum Number {
    Int(i128),
    Float(f64),
}

/// Integers wrap. Half precision is rounded twice, through float32, as in ONNX Runtime. Floats out of range
/// become the least int32 or int64; there is no such rule for other integers.
fn cast(call: &Call, to: DType) -> Option<Tensor> {
    let x = call.input(0)?;
    if x.dtype() == to {
        return Some(x.clone());
    }
    call.room(to, x.shape())?;
    let (read, write) = (reader(x.dtype())?, writer(to)?);
    let mut bytes = Vec::with_capacity(x.numel() * to.bits() / 8);
    for element in x.to_bytes().chunks_exact(x.dtype().bits() / 8) {
        write(read(element), &mut bytes)?;
    }
    Tensor::new(to, x.shape(), bytes).ok()
}

fn le<T: Element>(bytes: &[u8]) -> T {
    T::from_le(bytes)
}

fn reader(from: DType) -> Option<fn(&[u8]) -> Number> {
    use Number::*;
    Some(match from {
        DType::F64 => |b| Float(le::<f64>(b)),
        DType::F32 => |b| Float(le::<f32>(b).into()),
        DType::F16 => |b| Float(le::<f16>(b).into()),
        DType::BF16 => |b| Float(le::<bf16>(b).into()),
        DType::I64 => |b| Int(le::<i64>(b).into()),
        DType::I32 => |b| Int(le::<i32>(b).into()),
        DType::I16 => |b| Int(le::<i16>(b).into()),
        DType::I8 => |b| Int(le::<i8>(b).into()),
        DType::U64 => |b| Int(le::<u64>(b).into()),
        DType::U32 => |b| Int(le::<u32>(b).into()),
        DType::U16 => |b| Int(le::<u16>(b).into()),
        DType::U8 => |b| Int(le::<u8>(b).into()),
        DType::Bool => |b| Int(le::<bool>(b).into()),
        _ => return None,
    })
}

type Write = fn(Number, &mut Vec<u8>) -> Option<()>;

fn writer(to: DType) -> Option<Write> {
    macro_rules! int {
        ($t:ty) => {
            int!($t, None)
        };
        ($t:ty, $outside:expr) => {
            |n, to| {
                let wrapped = match n {
                    Number::Int(i) => i as $t,
                    Number::Float(f) => {
                        whole(f).and_then(|i| <$t>::try_from(i).ok()).or($outside)?
                    }
                };
                wrapped.push_le(to);
                Some(())
            }
        };
    }
    Some(match to {
        DType::F64 => |n, to| {
            match n {
                Number::Int(i) => (i as f64).push_le(to),
                Number::Float(f) => f.push_le(to),
            }
            Some(())
        },
        DType::F32 => |n, to| {
            single(n).push_le(to);
            Some(())
        },
        DType::F16 => |n, to| {
            f16::from_f32(single(n)).push_le(to);
            Some(())
        },
        DType::BF16 => |n, to| {
            bf16::from_f32(single(n)).push_le(to);
            Some(())
        },
        DType::I64 => int!(i64, Some(i64::MIN)),
        DType::I32 => int!(i32, Some(i32::MIN)),
        DType::I16 => int!(i16),
        DType::I8 => int!(i8),
        DType::U64 => int!(u64),
        DType::U32 => int!(u32),
        DType::U16 => int!(u16),
        DType::U8 => int!(u8),
        DType::Bool => |n, to| {
            let set = match n {
                Number::Int(i) => i != 0,
                Number::Float(f) => f != 0.0,
            };
            set.push_le(to);
            Some(())
        },
        _ => return None,
    })
}

fn single(n: Number) -> f32 {
    match n {
        Number::Int(i) => i as f32,
        Number::Float(f) => f as f32,
    }
}

/// Truncated towards zero; `None` for NaN and for numbers beyond the range of all integer types.
fn whole(f: f64) -> Option<i128> {
    (f.abs() < 2f64.powi(100)).then_some(f as i128)
}
