//! How numbers become codes: the formats, and the scale and zero point of numbers that share them.

use crate::{float8, ranges::Range};
use half::{bf16, f16};
use pt2onnx_tensor::{DType, pack_halves};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Int8,
    Int4,
    Float8,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheme {
    pub format: Format,
    pub symmetric: bool,
    /// Whether codes have no sign. The middle code, 8 or 128, then stands for 0 if the scheme is
    /// symmetric.
    pub unsigned: bool,
    /// The element type of scales.
    pub scale: DType,
    /// The element type that codes are restored to.
    pub restored: DType,
}

/// The meaning of a code: `scale * (code - zero)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Param {
    pub scale: f32,
    pub zero: f32,
}

/// The code without a sign that stands for 0, of eight bits.
pub(crate) const MIDDLE: u8 = 128;

/// Sizes of blocks: powers of two that ONNX Runtime has kernels for.
pub(crate) const BLOCKS: std::ops::RangeInclusive<usize> = 16..=256;

/// So much finer are the steps of a channel of zeros.
const FINER: f32 = 4096.0;

/// Added to a small number, it leaves the nearest integer in the low bits; ties go to even.
pub(crate) const MAGIC: f32 = 12_582_912.0;

fn finite(dtype: DType) -> f32 {
    match dtype {
        DType::F16 => f16::MAX.to_f32(),
        DType::BF16 => bf16::MAX.to_f32(),
        _ => f32::MAX,
    }
}

/// The nearest number in the type of scales that is not below `x` (`up`), or not above it.
fn near(dtype: DType, x: f32, up: bool) -> f32 {
    let steps = |y: f32| if up { u16::from(y < x) } else { u16::from(y > x).wrapping_neg() };
    match dtype {
        DType::F16 => {
            let y = f16::from_f32(x);
            f16::from_bits(y.to_bits().wrapping_add(steps(y.to_f32()))).to_f32()
        }
        DType::BF16 => {
            let y = bf16::from_f32(x);
            bf16::from_bits(y.to_bits().wrapping_add(steps(y.to_f32()))).to_f32()
        }
        _ => x,
    }
}

/// The nearest integer; ties go to even.
fn rounded(x: f32) -> f32 {
    x.round_ties_even()
}

/// A part of the distance between two numbers, which may be more than float32 has.
fn part(low: f32, high: f32, parts: f32) -> f32 {
    match high - low {
        span if span.is_finite() => span / parts,
        _ => high / parts - low / parts,
    }
}

impl Scheme {
    /// The bits of a code.
    pub fn bits(&self) -> usize {
        if self.format == Format::Int4 { 4 } else { 8 }
    }

    /// Packs codes of one byte each: those of four bits two in a byte, low bits first.
    pub fn pack(&self, codes: &[u8], bytes: &mut [u8]) {
        match self.bits() {
            4 => pack_halves(codes, bytes),
            _ => bytes.copy_from_slice(codes),
        }
    }

    /// The element type of the codes.
    pub fn dtype(&self) -> DType {
        match self.format {
            Format::Int8 if self.unsigned => DType::U8,
            Format::Int8 => DType::I8,
            Format::Float8 => DType::F8E4M3FN,
            Format::Int4 if self.unsigned => DType::U8,
            Format::Int4 if self.symmetric => DType::I4,
            Format::Int4 => DType::U4,
        }
    }

    /// The largest number that codes may be restored to.
    pub fn largest(&self) -> f32 {
        finite(self.restored)
    }

    /// The first and the last code.
    pub fn limits(&self) -> (f32, f32) {
        match (self.format, self.symmetric) {
            (Format::Int8, true) if self.unsigned => (1.0, 255.0),
            (Format::Int8, true) => (-127.0, 127.0),
            (Format::Int8, false) if self.unsigned => (0.0, 255.0),
            (Format::Int8, false) => (-128.0, 127.0),
            (Format::Int4, true) if !self.unsigned => (-8.0, 7.0),
            (Format::Int4, _) => (0.0, 15.0),
            (Format::Float8, _) => (-float8::LARGEST, float8::LARGEST),
        }
    }

    /// The scale and zero point of numbers in a range.
    pub fn param(&self, range: Range) -> Param {
        let (low, high) = (range.min.min(0.0), range.max.max(0.0));
        let scale = match (self.format, self.symmetric) {
            (Format::Int8, true) => high.max(-low) / 127.0,
            (Format::Float8, _) => high.max(-low) / float8::LARGEST,
            // The number of the largest magnitude becomes code 0, which stands for -8 scales.
            (Format::Int4, true) if self.unsigned => (if high > -low { high } else { low }) / -8.0,
            (Format::Int4, true) => (high / 7.0).max(low / -8.0),
            (Format::Int8, false) => part(low, high, 255.0),
            (Format::Int4, false) => part(low, high, 15.0),
        };
        let scale = self.stored(scale, high.max(-low));
        let (first, last) = self.limits();
        let zero = match (self.format, self.symmetric) {
            (Format::Int8, true) if self.unsigned => MIDDLE.into(),
            (_, true) if self.unsigned => 8.0,
            (_, true) => 0.0,
            (_, false) => rounded(first - low / scale).clamp(first, last),
        };
        Param { scale, zero }
    }

    /// The scale and zero point of a channel of zeros, beside others in a range. Any scale does for
    /// the zeros, but a bias that is stored with it needs steps that are finer than those of other
    /// channels, as nothing else adds to its sums.
    pub fn zeros(&self, others: Range) -> Param {
        let scale = self.stored(self.param(others).scale / FINER, 0.0);
        Param { scale, ..self.param(Range { min: 0.0, max: 0.0, check: 0.0 }) }
    }

    /// A scale as it is stored; 1 where all numbers are 0. It is rounded up, so that no number is
    /// above the last code, and large enough for its inverse to be finite; but down where the code
    /// of the largest number would stand for infinity.
    fn stored(&self, scale: f32, largest: f32) -> f32 {
        if scale == 0.0 {
            return 1.0;
        }
        let least = if self.scale == DType::F16 { 0.0 } else { f32::MIN_POSITIVE };
        let above = near(self.scale, scale.abs(), true).max(least);
        let (code, limit) = (rounded(largest / scale.abs()), self.largest());
        let size = if above * code > limit {
            near(self.scale, (limit / code).next_down(), false)
        } else {
            above
        };
        size.copysign(scale)
    }

    /// Makes codes of numbers that share a scale, and numbers of the codes.
    pub fn encode(&self, numbers: &[f32], param: Param, codes: &mut [u8], back: &mut [f32]) {
        let all = numbers.iter().zip(codes).zip(back);
        if self.format == Format::Float8 {
            return all.for_each(|((x, code), back)| {
                *code = float8::encode(x / param.scale);
                *back = float8::decode(*code) * param.scale;
            });
        }
        let (first, last) = self.limits();
        let (first, last) = (first - param.zero, last - param.zero);
        let shift = param.zero as i32 as u8;
        // The reciprocal, as ONNX Runtime's own quantiser of blocks takes it.
        let inverse = (self.unsigned && self.format == Format::Int4).then_some(1.0 / param.scale);
        for ((x, code), back) in all {
            let scaled = inverse.map_or(x / param.scale, |inverse| x * inverse);
            let integer = scaled.max(first).min(last) + MAGIC;
            *code = (integer.to_bits() as u8).wrapping_add(shift);
            *back = (integer - MAGIC) * param.scale;
        }
    }

    /// Does the same as [`Scheme::encode`] with a scale and zero point for each number.
    pub fn encode_each(
        &self,
        numbers: &[f32],
        params: &[Param],
        codes: &mut [u8],
        back: &mut [f32],
    ) {
        if self.format == Format::Float8 {
            let all = numbers.iter().zip(params).zip(codes).zip(back);
            return all.for_each(|(((x, param), code), back)| {
                *code = float8::encode(x / param.scale);
                *back = float8::decode(*code) * param.scale;
            });
        }
        let (first, last) = self.limits();
        for (((x, param), code), back) in numbers.iter().zip(params).zip(codes).zip(back) {
            let scaled = x / param.scale;
            let integer = scaled.max(first - param.zero).min(last - param.zero) + MAGIC;
            *code = (integer.to_bits() as u8).wrapping_add(param.zero as i32 as u8);
            *back = (integer - MAGIC) * param.scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers, and the scale, zero point and codes that they get.
    type Case = (Scheme, &'static [f32], f32, f32, &'static [u8]);

    #[test]
    fn codes() {
        let of = |format, scale| {
            move |symmetric, unsigned| Scheme {
                format,
                symmetric,
                unsigned,
                scale,
                restored: scale,
            }
        };
        let [i8s, i4s, f8s] =
            [Format::Int8, Format::Int4, Format::Float8].map(|format| of(format, DType::F32));
        let halves = of(Format::Int8, DType::F16)(true, false);
        let step = f16::MIN_POSITIVE_SUBNORMAL.to_f32();
        let cases: &[Case] = &[
            (i8s(true, false), &[-127.0, 0.5, 1.5, 2.5], 1.0, 0.0, &[129, 0, 2, 2]),
            (i8s(true, false), &[0.0, -0.0], 1.0, 0.0, &[0, 0]),
            (i8s(false, false), &[0.0, 255.0, 3.0], 1.0, -128.0, &[128, 127, 131]),
            (i8s(false, false), &[-255.0, -1.0], 1.0, 127.0, &[128, 126]),
            (i8s(true, true), &[-127.0, 0.5, 1.5, 127.0], 1.0, 128.0, &[1, 128, 130, 255]),
            (i8s(true, true), &[0.0], 1.0, 128.0, &[128]),
            (i8s(false, true), &[-1.0, 254.0], 1.0, 1.0, &[0, 255]),
            (i4s(true, false), &[-8.0, 7.0, 0.4], 1.0, 0.0, &[248, 7, 0]),
            (i4s(true, false), &[-4.0, 7.0], 1.0, 0.0, &[252, 7]),
            (i4s(true, true), &[8.0, -7.0, 1.0], -1.0, 8.0, &[0, 15, 7]),
            (i4s(true, true), &[0.0], 1.0, 8.0, &[8]),
            (i4s(false, true), &[-5.0, 10.0], 1.0, 5.0, &[0, 15]),
            (f8s(true, false), &[-448.0, 1.0], 1.0, 0.0, &[0xfe, 0x38]),
            (halves, &[1e-7], step, 0.0, &[2]),
            (halves, &[1.9e-5], 3.0 * step, 0.0, &[106]),
            (halves, &[65504.0, -65504.0], 515.5, 0.0, &[127, 129]),
            (i8s(true, false), &[1e-40], f32::MIN_POSITIVE, 0.0, &[0]),
        ];
        for (scheme, numbers, scale, zero, expected) in cases {
            let param = scheme.param(Range::of(numbers));
            assert_eq!(param, Param { scale: *scale, zero: *zero }, "{numbers:?} {scheme:?}");
            let (mut codes, mut back) = (vec![0; numbers.len()], vec![0.0; numbers.len()]);
            scheme.encode(numbers, param, &mut codes, &mut back);
            assert_eq!(codes, *expected, "{numbers:?} {scheme:?}");
            if !(scheme.unsigned && scheme.format == Format::Int4) {
                let (mut each, params) = (vec![0; numbers.len()], vec![param; numbers.len()]);
                scheme.encode_each(numbers, &params, &mut each, &mut back);
                assert_eq!(each, codes);
            }
        }
    }
}
