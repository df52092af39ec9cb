//! How the bits of a float type spell numbers.

use crate::DType;

/// The bits of a float type, from the highest: a sign, an exponent, and a fraction (IEEE 754:
/// *trailing significand*).
///
/// ```
/// use pt2onnx_tensor::{DType, FloatFormat};
///
/// let half = FloatFormat::of(DType::F16).unwrap();
/// assert_eq!((half.fraction, half.bias, half.infinity()), (10, 15, Some(0x7c00)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FloatFormat {
    /// Bits of an element.
    pub bits: u32,
    /// Bits of the fraction.
    pub fraction: u32,
    /// How the exponent of 1 is spelled.
    pub bias: i32,
    /// Values besides finite numbers.
    pub non_finite: NonFinite,
}

/// The bits of a float type that are no finite numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NonFinite {
    /// None.
    Nothing,
    /// All ones is NaN, with either sign.
    Nan,
    /// Negative zero is NaN.
    NegativeZero,
    /// As in IEEE 754: the highest exponent spells infinity and NaN.
    InfinityAndNan,
}

impl FloatFormat {
    /// The format of a type; `None` for types that have no sign, exponent and fraction, such as
    /// `float8e8m0`.
    pub fn of(dtype: DType) -> Option<Self> {
        let (fraction, bias, non_finite) = match dtype {
            DType::F64 => (52, 1023, NonFinite::InfinityAndNan),
            DType::F32 => (23, 127, NonFinite::InfinityAndNan),
            DType::F16 => (10, 15, NonFinite::InfinityAndNan),
            DType::BF16 => (7, 127, NonFinite::InfinityAndNan),
            DType::F8E5M2 => (2, 15, NonFinite::InfinityAndNan),
            DType::F8E4M3FN => (3, 7, NonFinite::Nan),
            DType::F8E4M3FNUZ => (3, 8, NonFinite::NegativeZero),
            DType::F8E5M2FNUZ => (2, 16, NonFinite::NegativeZero),
            DType::F4E2M1 => (1, 1, NonFinite::Nothing),
            _ => return None,
        };
        Some(Self { bits: dtype.bits() as u32, fraction, bias, non_finite })
    }

    /// The bit of the sign.
    pub fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    /// The bits of the largest finite number.
    pub fn largest(self) -> u64 {
        match self.non_finite {
            NonFinite::Nothing | NonFinite::NegativeZero => self.sign() - 1,
            NonFinite::Nan => self.sign() - 2,
            NonFinite::InfinityAndNan => ((self.sign() - 1) >> self.fraction << self.fraction) - 1,
        }
    }

    /// The bits of positive infinity.
    pub fn infinity(self) -> Option<u64> {
        (self.non_finite == NonFinite::InfinityAndNan).then(|| self.largest() + 1)
    }

    /// The bits of the NaN that conversions give: positive, if NaN has a sign, and quiet. In 8
    /// bits, all others are ones.
    pub fn nan(self) -> Option<u64> {
        match self.non_finite {
            NonFinite::Nothing => None,
            NonFinite::NegativeZero => Some(self.sign()),
            NonFinite::InfinityAndNan if self.bits > 8 => {
                Some((self.largest() + 1) | 1 << (self.fraction - 1))
            }
            NonFinite::Nan | NonFinite::InfinityAndNan => Some(self.sign() - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_rust_s_floats() {
        let bits = |dtype| {
            let format = FloatFormat::of(dtype).unwrap();
            (Some(format.largest()), format.infinity(), format.nan())
        };
        let double = [f64::MAX, f64::INFINITY, f64::NAN].map(|x| Some(x.to_bits()));
        assert_eq!(bits(DType::F64), double.into());
        let single = [f32::MAX, f32::INFINITY, f32::NAN].map(|x| Some(x.to_bits().into()));
        assert_eq!(bits(DType::F32), single.into());
        use half::{bf16, f16};
        let half = [f16::MAX, f16::INFINITY, f16::NAN].map(|x| Some(x.to_bits().into()));
        assert_eq!(bits(DType::F16), half.into());
        let brain = [bf16::MAX, bf16::INFINITY, bf16::NAN].map(|x| Some(x.to_bits().into()));
        assert_eq!(bits(DType::BF16), brain.into());
        assert_eq!(bits(DType::F8E5M2), (Some(0x7b), Some(0x7c), Some(0x7f)));
        assert_eq!(bits(DType::F8E4M3FN), (Some(0x7e), None, Some(0x7f)));
        assert_eq!(bits(DType::F8E4M3FNUZ), (Some(0x7f), None, Some(0x80)));
        assert_eq!(bits(DType::F4E2M1), (Some(7), None, None));
    }
}
