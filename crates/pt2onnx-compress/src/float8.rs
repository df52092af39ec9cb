//! Numbers of float8: E4M3FN, with 4 bits of exponent, 3 of mantissa, and no infinities.

/// The largest number.
pub(crate) const LARGEST: f32 = 448.0;

/// The code of the nearest number, ties to even. Larger numbers become the largest.
pub(crate) fn encode(x: f32) -> u8 {
    let sign = ((x.to_bits() >> 24) & 0x80) as u8;
    let magnitude = x.abs().min(LARGEST);
    // Numbers below 2^-6 are multiples of 2^-9: added to 2^14, whose last bit is 2^-9, they are
    // rounded to one.
    if magnitude < 0.015_625 {
        let rounded = magnitude + 16_384.0;
        return sign | (rounded.to_bits() & 0xf) as u8;
    }
    let bits = magnitude.to_bits();
    let rounded = bits + 0x7_ffff + ((bits >> 20) & 1);
    sign | ((rounded >> 20) - (120 << 3)) as u8
}

/// The number of a code that is not NaN.
pub(crate) fn decode(code: u8) -> f32 {
    let (exponent, mantissa) = (u32::from(code >> 3) & 0xf, f32::from(code & 7));
    let magnitude = match exponent {
        0 => mantissa / 512.0,
        _ => (1.0 + mantissa / 8.0) * f32::from_bits((exponent + 120) << 23),
    };
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pt2onnx_tensor::{DType, Narrow};

    #[test]
    fn codes_are_those_of_the_type() {
        let narrow = Narrow::of(DType::F8E4M3FN).unwrap();
        for code in (0..=0x7e).chain(0x80..=0xfe) {
            assert_eq!(decode(code), narrow.number(code), "{code:#x}");
        }
        for high in 0..=u16::MAX {
            for low in [0, 1, 0x7fff, 0x8000, 0xffff] {
                let x = f32::from_bits(u32::from(high) << 16 | low);
                if !x.is_nan() {
                    assert_eq!(Some(encode(x)), narrow.nearest(x.into(), true), "{x}");
                }
            }
        }
    }
}
