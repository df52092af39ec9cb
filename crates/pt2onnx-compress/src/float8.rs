//! Numbers of float8: E4M3FN, with 4 bits of exponent, 3 of mantissa, and no infinities.

/// The largest number.
pub(crate) const LARGEST: f32 = 448.0;

/// The code of the nearest number, ties to even. Larger numbers become the largest.
pub(crate) fn encode(x: f32) -> u8 {
    let sign = ((x.to_bits() >> 24) & 0x80) as u8;
    let magnitude = x.abs().min(LARGEST);
    // Numbers below 2^-6 are multiples of 2^-9: added to 2^14, whose last bit is 2^-9, they are rounded to one.
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

    #[test]
    fn codes_go_round_and_ties_go_to_even() {
        assert_eq!((decode(0x7e), decode(0x01), decode(0x38)), (448.0, 1.0 / 512.0, 1.0));
        for code in (0..=0x7e).chain(0x80..=0xfe) {
            assert_eq!(encode(decode(code)), code, "{code:#x}");
        }
        for code in 0..0x7eu8 {
            let (low, high) = (decode(code), decode(code + 1));
            let middle = (low + high) / 2.0;
            assert_eq!(encode(middle), code + (code & 1), "between {low} and {high}");
            assert_eq!(encode(middle.next_down()), code);
            assert_eq!(encode(middle.next_up()), code + 1);
        }
        assert_eq!((encode(1e30), encode(-1e30), encode(-0.0)), (0x7e, 0xfe, 0x80));
    }
}
