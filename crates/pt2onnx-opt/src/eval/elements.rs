//! Elements of any type as numbers, and numbers as elements.

use half::{bf16, f16};
use pt2onnx_tensor::{DType, Element, Narrow, Tensor};
use std::{borrow::Cow, cmp::Ordering};

/// An element between two types; every type fits into one of these.
#[derive(Clone, Copy)]
pub(super) enum Numeric {
    Int(i128),
    Float(f64),
}

impl Numeric {
    /// Integers beyond 2^53 are rounded.
    pub fn double(self) -> f64 {
        match self {
            Self::Int(i) => i as f64,
            Self::Float(f) => f,
        }
    }

    /// The order of two elements of one type that are not NaN.
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(&b),
            (a, b) => a.double().partial_cmp(&b.double()).unwrap_or(Ordering::Equal),
        }
    }

    /// Rounded once.
    pub fn single(self) -> f32 {
        match self {
            Self::Int(i) => i as f32,
            Self::Float(f) => f as f32,
        }
    }
}

/// The elements of a tensor, read one at a time.
pub(super) struct Elements<'a> {
    bytes: Cow<'a, [u8]>,
    width: usize,
    read: Read,
}

type Read = Box<dyn Fn(&[u8]) -> Numeric>;

impl<'a> Elements<'a> {
    /// `None` for complex numbers, strings, and elements that are not there.
    pub fn of(t: &'a Tensor) -> Option<Self> {
        let read = reader(t.dtype())?;
        let (bytes, width) = match t.dtype().bits() {
            0..8 => (Cow::Owned(t.codes()?), 1),
            bits => (t.to_bytes(), bits / 8),
        };
        Some(Self { bytes, width, read })
    }

    /// In row-major order.
    pub fn iter(&self) -> impl Iterator<Item = Numeric> {
        self.bytes.chunks_exact(self.width).map(|e| (self.read)(e))
    }

    /// The element at a position in row-major order.
    pub fn get(&self, at: usize) -> Option<Numeric> {
        let start = at.checked_mul(self.width)?;
        Some((self.read)(self.bytes.get(start..start.checked_add(self.width)?)?))
    }
}

fn le<T: Element>(bytes: &[u8]) -> T {
    T::from_le(bytes)
}

fn reader(from: DType) -> Option<Read> {
    use Numeric::*;
    if let Some(narrow) = Narrow::of(from) {
        let integer = from.is_int();
        let number = move |code: u8| match (f64::from(narrow.number(code)), integer) {
            (number, true) => Int(number as i128),
            (number, false) => Float(number),
        };
        let numbers: Vec<Numeric> = (0..=u8::MAX).map(number).collect();
        let nothing = Float(f64::NAN);
        let of = move |code: u8| numbers.get(usize::from(code)).copied().unwrap_or(nothing);
        return Some(Box::new(move |b| b.first().map_or(nothing, |&code| of(code))));
    }
    Some(match from {
        DType::F64 => Box::new(|b| Float(le::<f64>(b))),
        DType::F32 => Box::new(|b| Float(le::<f32>(b).into())),
        DType::F16 => Box::new(|b| Float(le::<f16>(b).into())),
        DType::BF16 => Box::new(|b| Float(le::<bf16>(b).into())),
        DType::I64 => Box::new(|b| Int(le::<i64>(b).into())),
        DType::I32 => Box::new(|b| Int(le::<i32>(b).into())),
        DType::I16 => Box::new(|b| Int(le::<i16>(b).into())),
        DType::I8 => Box::new(|b| Int(le::<i8>(b).into())),
        DType::U64 => Box::new(|b| Int(le::<u64>(b).into())),
        DType::U32 => Box::new(|b| Int(le::<u32>(b).into())),
        DType::U16 => Box::new(|b| Int(le::<u16>(b).into())),
        DType::U8 => Box::new(|b| Int(le::<u8>(b).into())),
        DType::Bool => Box::new(|b| Int(le::<bool>(b).into())),
        _ => return None,
    })
}

/// How numbers become elements of types that cannot hold them.
#[derive(Clone, Copy)]
pub(super) struct Rounding {
    /// Floats of 8 bits: whether numbers beyond the largest become the largest.
    pub saturate: bool,
    /// For E8M0.
    pub power: Power,
}

/// Which power of two a number between two of them becomes.
#[derive(Clone, Copy)]
pub(super) enum Power {
    Up,
    Down,
    Nearest,
}

/// The tensor of these numbers. Integers wrap. Half precision is rounded twice, through float32, as
/// in ONNX Runtime. Floats out of range become the least int32 or int64; there is no such rule for
/// other integers.
pub(super) fn tensor_of(
    dtype: DType,
    shape: &[usize],
    numbers: impl Iterator<Item = Option<Numeric>>,
    rounding: Rounding,
) -> Option<Tensor> {
    let write = writer(dtype, rounding)?;
    let count = shape.iter().product::<usize>();
    let mut bytes = Vec::with_capacity(count * dtype.bits().div_ceil(8));
    for number in numbers {
        write(number?, &mut bytes)?;
    }
    match dtype.bits() {
        0..8 => Tensor::from_codes(dtype, shape, &bytes).ok(),
        _ => Tensor::new(dtype, shape, bytes).ok(),
    }
}

type Write = Box<dyn Fn(Numeric, &mut Vec<u8>) -> Option<()>>;

fn writer(to: DType, rounding: Rounding) -> Option<Write> {
    if let Some(narrow) = Narrow::of(to) {
        return Some(Box::new(move |n, bytes| {
            bytes.push(match to {
                DType::F8E8M0 => power(n, rounding)?,
                _ if to.is_int() => small(narrow, n)?,
                _ => nearest(narrow, n, rounding.saturate)?,
            });
            Some(())
        }));
    }
    macro_rules! int {
        ($t:ty) => {
            int!($t, None)
        };
        ($t:ty, $outside:expr) => {
            |n| match n {
                Numeric::Int(i) => Some(i as $t),
                Numeric::Float(f) => whole(f).and_then(|i| <$t>::try_from(i).ok()).or($outside),
            }
        };
    }
    Some(match to {
        DType::F64 => pushing(|n| Some(n.double())),
        DType::F32 => pushing(|n| Some(n.single())),
        DType::F16 => pushing(|n| Some(f16::from_f32(n.single()))),
        DType::BF16 => pushing(|n| Some(bf16::from_f32(n.single()))),
        DType::I64 => pushing(int!(i64, Some(i64::MIN))),
        DType::I32 => pushing(int!(i32, Some(i32::MIN))),
        DType::I16 => pushing(int!(i16)),
        DType::I8 => pushing(int!(i8)),
        DType::U64 => pushing(int!(u64)),
        DType::U32 => pushing(int!(u32)),
        DType::U16 => pushing(int!(u16)),
        DType::U8 => pushing(int!(u8)),
        DType::Bool => pushing(|n| {
            Some(match n {
                Numeric::Int(i) => i != 0,
                Numeric::Float(f) => f != 0.0,
            })
        }),
        _ => return None,
    })
}

fn pushing<T: Element>(f: impl Fn(Numeric) -> Option<T> + 'static) -> Write {
    Box::new(move |n, bytes| {
        f(n)?.push_le(bytes);
        Some(())
    })
}

/// Truncated towards zero; `None` for NaN and for numbers beyond the range of all integer types.
fn whole(f: f64) -> Option<i128> {
    (f.abs() < 2f64.powi(100)).then_some(f as i128)
}

/// An integer of 4 or 2 bits without its higher bits. Runtimes round floats in different ways.
fn small(narrow: Narrow, n: Numeric) -> Option<u8> {
    match n {
        Numeric::Int(i) => narrow.wrapped(i),
        Numeric::Float(f) => narrow.exact(f),
    }
}

/// A float of 8 or 4 bits. Runtimes round float64 once, or before to float32.
fn nearest(narrow: Narrow, n: Numeric, saturate: bool) -> Option<u8> {
    let once = narrow.nearest(n.double(), saturate)?;
    let twice = narrow.nearest(n.single().into(), saturate)?;
    (once == twice).then_some(once)
}

/// A power of two. There is no rule for zero, negative and infinite numbers, those that float32
/// does not have exactly, and numbers below 2^-126.
fn power(n: Numeric, rounding: Rounding) -> Option<u8> {
    const NAN: u8 = u8::MAX;
    let x = n.double();
    if x.is_nan() {
        return Some(NAN);
    }
    if !(x.is_finite() && x >= f64::from(f32::MIN_POSITIVE) && f64::from(x as f32) == x) {
        return None;
    }
    let bits = (x as f32).to_bits();
    let (exponent, fraction) = ((bits >> 23) as u8, bits & 0x7f_ffff);
    let up = match rounding.power {
        Power::Up => fraction > 0,
        Power::Down => false,
        Power::Nearest => fraction >= 0x40_0000,
    };
    match (up, exponent) {
        (true, 0xfe) if rounding.saturate => Some(exponent),
        (true, _) => exponent.checked_add(1),
        (false, _) => Some(exponent),
    }
}
