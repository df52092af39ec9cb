//! Element types that Rust has no type for: floats of 8 and 4 bits, integers of 4 and 2 bits.

use crate::{DType, FloatFormat, NonFinite, Tensor, TensorError};

/// The meaning of the bits of a narrow element. An element alone in a byte, in the low bits, is its
/// *code*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Narrow {
    bits: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Float(FloatFormat),
    /// E8M0: a power of two, without a sign.
    Power,
    Int {
        signed: bool,
    },
}

/// Packs codes of four bits, two in each byte of `packed`, low bits first. The last byte of an odd
/// number has one.
pub fn pack_halves(codes: &[u8], packed: &mut [u8]) {
    let (pairs, last) = codes.as_chunks();
    for ([low, high], byte) in pairs.iter().zip(packed.iter_mut()) {
        *byte = low & 0xf | high << 4;
    }
    if let ([low], Some(byte)) = (last, packed.get_mut(pairs.len())) {
        *byte = low & 0xf;
    }
}

impl Narrow {
    /// The meaning of a type; `None` if Rust has a type for it.
    pub fn of(dtype: DType) -> Option<Self> {
        let kind = match dtype {
            DType::F8E8M0 => Kind::Power,
            DType::I4 | DType::I2 => Kind::Int { signed: true },
            DType::U4 | DType::U2 => Kind::Int { signed: false },
            _ => Kind::Float(FloatFormat::of(dtype).filter(|format| format.bits <= 8)?),
        };
        Some(Self { bits: dtype.bits() as u32, kind })
    }

    /// The number of a code.
    pub fn number(self, code: u8) -> f32 {
        let sign = 1u8 << (self.bits - 1);
        let code = code & (sign | (sign - 1));
        match self.kind {
            Kind::Int { signed } => {
                let number = i16::from(code);
                let wraps = signed && code & sign != 0;
                f32::from(if wraps { number - (1 << self.bits) } else { number })
            }
            Kind::Power if code == u8::MAX => f32::NAN,
            Kind::Power => (f64::from(code) - 127.0).exp2() as f32,
            Kind::Float(format) => {
                if format.non_finite == NonFinite::NegativeZero && code == sign {
                    return f32::NAN;
                }
                let magnitude = code & (sign - 1);
                let number = match u64::from(magnitude) {
                    bits if bits <= format.largest() => finite(magnitude, format),
                    bits if Some(bits) == format.infinity() => f64::INFINITY,
                    _ => f64::NAN,
                };
                (if code & sign == 0 { number } else { -number }) as f32
            }
        }
    }

    /// The code of the nearest number of a float type, ties to even. Numbers beyond the largest,
    /// infinities among them, become the largest if they are to `saturate`, and otherwise infinite,
    /// or NaN in types without infinities.
    ///
    /// `None` where ONNX does not say, or says different things at different opsets: NaN in
    /// `float4e2m1`, saturated infinities in the types whose names end in `fnuz`. Also `None` for
    /// integers and E8M0.
    pub fn nearest(self, number: f64, saturate: bool) -> Option<u8> {
        let Kind::Float(format) = self.kind else {
            return None;
        };
        let FloatFormat { fraction, bias, non_finite, .. } = format;
        let signed = if number.is_sign_negative() { format.sign() as u8 } else { 0 };
        // NaN has a sign, unless it is the negative zero.
        let nan = format.nan().map(|nan| nan as u8 | signed);
        if number.is_nan() {
            return nan;
        }
        let largest = format.largest() as u8;
        let least = 1 - bias;
        let exponent = exponent(number).max(least);
        // All numbers between two powers of two, and below the least, are multiples of one number.
        let unit = f64::from(exponent - fraction as i32).exp2();
        let rounded = (number.abs() / unit).round_ties_even() * unit;
        if rounded > finite(largest, format) {
            return match non_finite {
                NonFinite::Nothing => Some(signed | largest),
                NonFinite::NegativeZero if saturate && number.is_infinite() => None,
                _ if saturate => Some(signed | largest),
                _ => format.infinity().map_or(nan, |infinity| Some(signed | infinity as u8)),
            };
        }
        // As bits of float64: what rounding carries into the exponent, the code carries, too.
        let code = if rounded < f64::from(least).exp2() {
            rounded / f64::from(least - fraction as i32).exp2()
        } else {
            let steps = (rounded.to_bits() >> (52 - fraction)) as i64;
            (steps - (i64::from(1023 - bias) << fraction)) as f64
        } as u8;
        match non_finite {
            NonFinite::NegativeZero if code == 0 => Some(0),
            _ => Some(signed | code),
        }
    }

    /// The code of an integer: the low bits, for floats and E8M0 `None`.
    pub fn wrapped(self, number: i128) -> Option<u8> {
        let mask = ((1u32 << self.bits) - 1) as u8;
        matches!(self.kind, Kind::Int { .. }).then_some(number as u8 & mask)
    }

    /// The code of exactly this number; `None` if there is none. NaN is NaN.
    pub fn exact(self, number: f64) -> Option<u8> {
        let code = match self.kind {
            Kind::Float(_) => self.nearest(number, false)?,
            Kind::Int { .. } => self.wrapped(number as i128)?,
            Kind::Power if number.is_nan() => u8::MAX,
            Kind::Power => u8::try_from(exponent(number) + 127).ok()?,
        };
        let back = f64::from(self.number(code));
        (back == number || back.is_nan() && number.is_nan()).then_some(code)
    }
}

/// The number of a code without its sign, if it is finite.
fn finite(code: u8, format: FloatFormat) -> f64 {
    let unit = 1u8 << format.fraction;
    let (steps, fraction) = (i32::from(code / unit), f64::from(code % unit) / f64::from(unit));
    match steps {
        0 => fraction * f64::from(1 - format.bias).exp2(),
        _ => (1.0 + fraction) * f64::from(steps - format.bias).exp2(),
    }
}

/// The exponent of the power of two that is not above a number's magnitude; -1023 for smaller
/// numbers than float64's normal ones.
fn exponent(number: f64) -> i32 {
    ((number.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

impl Tensor {
    /// The codes of [narrow](Narrow) elements in row-major order, one in a byte. `None` for other
    /// types and without values.
    pub fn codes(&self) -> Option<Vec<u8>> {
        let bits = Narrow::of(self.dtype()).filter(|_| self.has_data())?.bits;
        let bytes = self.to_bytes();
        let (each, mask) = (8 / bits, u8::MAX >> (8 - bits));
        let codes = bytes.iter().flat_map(|b| (0..each).map(move |i| b >> (i * bits) & mask));
        Some(codes.take(self.numel()).collect())
    }

    /// A contiguous tensor of [narrow](Narrow) elements, given their codes in row-major order.
    ///
    /// # Errors
    /// The type is not narrow, or the sizes need another number of elements than there are, or
    /// overflow.
    pub fn from_codes(
        dtype: DType,
        shape: impl Into<Vec<usize>>,
        codes: &[u8],
    ) -> Result<Self, TensorError> {
        let shape = shape.into();
        let bits = Narrow::of(dtype).ok_or(TensorError::NoLayout(dtype))?.bits;
        let (each, mask) = (8 / bits as usize, u8::MAX >> (8 - bits));
        let pack = |codes: &[u8]| {
            codes.iter().rev().fold(0u8, |byte, code| byte.unbounded_shl(bits) | (code & mask))
        };
        let (needed, available) = (super::tensor::checked_numel(&shape)?, codes.len());
        if needed != available {
            return Err(TensorError::OutOfBounds { needed, available });
        }
        Self::new(dtype, shape, codes.chunks(each).map(pack).collect::<Vec<u8>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOATS: [DType; 5] =
        [DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ, DType::F4E2M1];

    #[test]
    fn numbers_go_round_and_ties_go_to_even() {
        for dtype in FLOATS {
            let narrow = Narrow::of(dtype).unwrap();
            let codes = (1u16 << dtype.bits()) - 1;
            for code in 0..=codes as u8 {
                let number = f64::from(narrow.number(code));
                assert!(number.is_nan() || narrow.exact(number) == Some(code), "{dtype} {code:#x}");
            }
            for code in 0..(1u8 << (dtype.bits() - 1)) - 1 {
                let [low, high] = [code, code + 1].map(|c| f64::from(narrow.number(c)));
                if !high.is_finite() {
                    continue;
                }
                let middle = (low + high) / 2.0;
                let near = |x: f64| narrow.nearest(x, true).unwrap();
                assert_eq!(near(middle), code + (code & 1), "{dtype} between {low} and {high}");
                assert_eq!((near(middle.next_down()), near(middle.next_up())), (code, code + 1));
            }
        }
    }

    #[test]
    fn what_is_out_of_range() {
        let cases: &[(DType, f64, Option<u8>, Option<u8>)] = &[
            (DType::F8E4M3FN, 464.0, Some(0x7e), Some(0x7e)),
            (DType::F8E4M3FN, 465.0, Some(0x7e), Some(0x7f)),
            (DType::F8E4M3FN, f64::NEG_INFINITY, Some(0xfe), Some(0xff)),
            (DType::F8E4M3FNUZ, -1e9, Some(0xff), Some(0x80)),
            (DType::F8E4M3FNUZ, f64::INFINITY, None, Some(0x80)),
            (DType::F8E4M3FNUZ, -1e-9, Some(0), Some(0)),
            (DType::F8E5M2, -1e9, Some(0xfb), Some(0xfc)),
            (DType::F8E5M2, f64::INFINITY, Some(0x7b), Some(0x7c)),
            (DType::F8E5M2, -0.0, Some(0x80), Some(0x80)),
            (DType::F8E5M2FNUZ, 1e9, Some(0x7f), Some(0x80)),
            (DType::F4E2M1, f64::NEG_INFINITY, Some(0xf), Some(0xf)),
            (DType::F4E2M1, f64::NAN, None, None),
            (DType::F8E8M0, 1.0, None, None),
        ];
        for &(dtype, number, saturated, not) in cases {
            let near = |saturate| Narrow::of(dtype).unwrap().nearest(number, saturate);
            assert_eq!((near(true), near(false)), (saturated, not), "{dtype} {number}");
        }
    }

    #[test]
    fn codes_are_packed_from_the_low_bits() {
        let t = Tensor::from_codes(DType::I4, [3], &[0x1, 0xf, 0x7]).unwrap();
        assert_eq!(&*t.to_bytes(), [0xf1, 0x07]);
        let mut packed = [0xff; 3];
        pack_halves(&[0x1, 0xff, 0x17], &mut packed);
        assert_eq!(packed, [0xf1, 0x07, 0xff]);
        assert_eq!(t.codes(), Some(vec![0x1, 0xf, 0x7]));
        let t = Tensor::from_codes(DType::U2, [5], &[3, 0, 1, 2, 1]).unwrap();
        assert_eq!(&*t.to_bytes(), [0b1001_0011, 1]);
        assert_eq!(t.codes(), Some(vec![3, 0, 1, 2, 1]));
        assert_eq!(Narrow::of(DType::I2).unwrap().number(0b10), -2.0);
        assert!(Tensor::from_codes(DType::F8E5M2, [2], &[1]).is_err());
        assert!(Tensor::from_codes(DType::U8, [1], &[1]).is_err());
    }

    #[test]
    fn powers_of_two() {
        let e8m0 = Narrow::of(DType::F8E8M0).unwrap();
        assert_eq!((e8m0.number(127), e8m0.number(254)), (1.0, 2f32.powi(127)));
        assert_eq!(e8m0.number(0).to_bits(), 1 << 22);
        for code in 0..=255 {
            assert_eq!(e8m0.exact(f64::from(e8m0.number(code))), Some(code));
        }
        assert_eq!((e8m0.exact(3.0), e8m0.exact(-1.0), e8m0.exact(0.0)), (None, None, None));
    }
}
