//! Python's numbers: integers and fractions are exact, floats are doubles.

use std::cmp::Ordering;

/// A Python number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// Numerator and a positive denominator, in lowest terms.
    Exact(i128, i128),
    Float(f64),
}

use Number::{Exact, Float};

impl Number {
    pub fn ratio(num: i128, den: i128) -> Option<Number> {
        if den == 0 {
            return None;
        }
        let divisor = i128::try_from(gcd(num.unsigned_abs(), den.unsigned_abs())).ok()?;
        let sign = den.signum();
        Some(Exact((num / divisor).checked_mul(sign)?, (den / divisor).checked_mul(sign)?))
    }

    pub fn int(value: i128) -> Number {
        Exact(value, 1)
    }

    pub fn bool(value: bool) -> Number {
        Number::int(value.into())
    }

    pub fn as_f64(self) -> f64 {
        match self {
            Exact(num, den) => num as f64 / den as f64,
            Float(value) => value,
        }
    }

    pub fn as_int(self) -> Option<i128> {
        match self {
            Exact(value, 1) => Some(value),
            _ => None,
        }
    }

    pub fn is_true(self) -> bool {
        self != Number::int(0) && self != Float(0.0)
    }

    pub fn add(self, other: Number) -> Option<Number> {
        match (self, other) {
            (Exact(a, b), Exact(c, d)) => {
                Number::ratio(a.checked_mul(d)?.checked_add(c.checked_mul(b)?)?, b.checked_mul(d)?)
            }
            _ => Some(Float(self.as_f64() + other.as_f64())),
        }
    }

    pub fn mul(self, other: Number) -> Option<Number> {
        match (self, other) {
            (Exact(a, b), Exact(c, d)) => Number::ratio(a.checked_mul(c)?, b.checked_mul(d)?),
            _ => Some(Float(self.as_f64() * other.as_f64())),
        }
    }

    pub fn pow(self, exponent: Number) -> Option<Number> {
        let (Exact(num, den), Exact(n, 1)) = (self, exponent) else {
            return Some(Float(self.as_f64().powf(exponent.as_f64())));
        };
        let power = |base: i128| match base {
            0 | 1 => Some(base),
            -1 => Some(if n % 2 == 0 { 1 } else { -1 }),
            _ => base.checked_pow(u32::try_from(n.unsigned_abs()).ok()?),
        };
        let (num, den) = (power(num)?, power(den)?);
        match n {
            0 => Some(Number::int(1)),
            1.. => Number::ratio(num, den),
            _ => Number::ratio(den, num),
        }
    }

    /// 2 to the power of a natural number.
    pub fn power_of_two(self) -> Option<Number> {
        Number::int(2).pow(self.natural()?)
    }

    pub fn natural(self) -> Option<Number> {
        self.as_int().filter(|n| *n >= 0).map(Number::int)
    }

    pub fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Exact(a, b), Exact(c, d)) => Some(a.checked_mul(d)?.cmp(&c.checked_mul(b)?)),
            _ => self.as_f64().partial_cmp(&other.as_f64()),
        }
    }
}

pub(crate) fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
