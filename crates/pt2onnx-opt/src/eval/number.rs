//! Arithmetic on single elements, with each element type's own semantics.

use half::{bf16, f16};
use pt2onnx_tensor::Element;

#[derive(Clone, Copy)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    /// The remainder with the divisor's sign, integers only.
    Mod,
    /// The remainder with the dividend's sign.
    Fmod,
    Min,
    Max,
}

#[derive(Clone, Copy)]
pub(super) enum Unary {
    Neg,
    Abs,
    Sign,
    Relu,
}

/// A function of floats, for both precisions.
pub(super) type Real = (fn(f32) -> f32, fn(f64) -> f64);

/// An element type with arithmetic. `None` means that the standard does not define the result.
pub(super) trait Number: Element + PartialOrd {
    const ZERO: Self;
    const ONE: Self;

    fn binary(op: Binary, a: Self, b: Self) -> Option<Self>;
    fn unary(op: Unary, a: Self) -> Option<Self>;
    fn double(self) -> f64;
    /// Rounded; `None` if the type is an integer type that does not have exactly this number.
    fn rounded(v: f64) -> Option<Self>;

    /// A function that only floats have.
    fn real(_: Real, _: Self) -> Option<Self> {
        None
    }

    /// `None` for floats.
    fn whole(self) -> Option<i128> {
        None
    }

    /// Wraps; `None` for floats.
    fn wrapped(_: i128) -> Option<Self> {
        None
    }

    fn is_nan(self) -> bool {
        self.partial_cmp(&self).is_none()
    }
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;

            fn binary(op: Binary, a: Self, b: Self) -> Option<Self> {
                Some(match op {
                    Binary::Add => a.wrapping_add(b),
                    Binary::Sub => a.wrapping_sub(b),
                    Binary::Mul => a.wrapping_mul(b),
                    Binary::Div => a.checked_div(b)?,
                    Binary::Mod => {
                        let (a, b) = (i128::from(a), i128::from(b));
                        let r = a.checked_rem(b)?;
                        (if r != 0 && (r < 0) != (b < 0) { r + b } else { r }) as Self
                    }
                    Binary::Fmod => i128::from(a).checked_rem(i128::from(b))? as Self,
                    Binary::Min => a.min(b),
                    Binary::Max => a.max(b),
                })
            }

            fn unary(op: Unary, a: Self) -> Option<Self> {
                Some(match op {
                    Unary::Neg => Self::ZERO.wrapping_sub(a),
                    Unary::Abs => i128::from(a).unsigned_abs() as Self,
                    Unary::Sign => i128::from(a).signum() as Self,
                    Unary::Relu => a.max(0),
                })
            }

            fn double(self) -> f64 {
                self as f64
            }

            fn rounded(v: f64) -> Option<Self> {
                let exact = v.fract() == 0.0 && v.abs() <= (1u64 << 53) as f64;
                exact.then(|| Self::try_from(v as i128).ok()).flatten()
            }

            fn whole(self) -> Option<i128> {
                Some(self.into())
            }

            fn wrapped(v: i128) -> Option<Self> {
                Some(v as Self)
            }
        }
    )*};
}
integer!(i64, i32, i16, i8, u64, u32, u16, u8);

macro_rules! float {
    ($t:ty, $real:tt) => {
        impl Number for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            fn binary(op: Binary, a: Self, b: Self) -> Option<Self> {
                Some(match op {
                    Binary::Add => a + b,
                    Binary::Sub => a - b,
                    Binary::Mul => a * b,
                    Binary::Div => a / b,
                    Binary::Mod => return None,
                    Binary::Fmod => a % b,
                    Binary::Min | Binary::Max if a.is_nan() || b.is_nan() => Self::NAN,
                    Binary::Min => a.min(b),
                    Binary::Max => a.max(b),
                })
            }

            fn unary(op: Unary, a: Self) -> Option<Self> {
                Some(match op {
                    Unary::Neg => -a,
                    Unary::Abs => a.abs(),
                    Unary::Sign | Unary::Relu if a.is_nan() => return None,
                    Unary::Sign if a == 0.0 => 0.0,
                    Unary::Sign => a.signum(),
                    Unary::Relu => a.max(0.0),
                })
            }

            fn real(f: Real, a: Self) -> Option<Self> {
                Some(f.$real(a))
            }

            fn double(self) -> f64 {
                self.into()
            }

            fn rounded(v: f64) -> Option<Self> {
                Some(v as Self)
            }
        }
    };
}
float!(f32, 0);
float!(f64, 1);

/// Half precision: computed in float32 and rounded at the end.
macro_rules! half {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const ZERO: Self = <$t>::ZERO;
            const ONE: Self = <$t>::ONE;

            fn binary(op: Binary, a: Self, b: Self) -> Option<Self> {
                f32::binary(op, a.to_f32(), b.to_f32()).map(Self::from_f32)
            }

            fn unary(op: Unary, a: Self) -> Option<Self> {
                f32::unary(op, a.to_f32()).map(Self::from_f32)
            }

            fn real(f: Real, a: Self) -> Option<Self> {
                Some(Self::from_f32(f.0(a.to_f32())))
            }

            fn double(self) -> f64 {
                self.to_f64()
            }

            fn rounded(v: f64) -> Option<Self> {
                Some(Self::from_f32(v as f32))
            }
        }
    )*};
}
half!(f16, bf16);
