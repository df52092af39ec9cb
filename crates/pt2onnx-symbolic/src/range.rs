//! Ranges of integers, and interval arithmetic on them.

use std::fmt;

/// The integers between two bounds, both included. `None` means that there is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Range {
    /// The smallest value.
    pub min: Option<i64>,
    /// The largest value.
    pub max: Option<i64>,
}

impl Range {
    /// All integers.
    pub const ANY: Range = Range { min: None, max: None };

    /// From `min` to `max`, both included.
    pub const fn new(min: Option<i64>, max: Option<i64>) -> Range {
        Range { min, max }
    }

    /// Only this value.
    pub const fn exactly(value: i64) -> Range {
        Range::new(Some(value), Some(value))
    }

    /// This value and all larger ones.
    pub const fn at_least(min: i64) -> Range {
        Range::new(Some(min), None)
    }

    /// This value and all smaller ones.
    pub const fn at_most(max: i64) -> Range {
        Range::new(None, Some(max))
    }

    /// Whether the value is in the range.
    pub fn contains(&self, value: i64) -> bool {
        self.min.is_none_or(|min| min <= value) && self.max.is_none_or(|max| value <= max)
    }

    /// Whether the range has no value.
    pub fn is_empty(&self) -> bool {
        matches!((self.min, self.max), (Some(min), Some(max)) if min > max)
    }

    /// The value, if there is exactly one.
    pub fn as_int(&self) -> Option<i64> {
        self.min.filter(|_| self.min == self.max)
    }

    /// The values in both ranges.
    pub fn intersect(&self, other: &Range) -> Range {
        Interval::from(*self).intersect((*other).into()).into()
    }
}

/// The text that PyTorch prints for a value range: `VR[2, int_oo]`.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VR[")?;
        match self.min {
            Some(min) => write!(f, "{min}, ")?,
            None => f.write_str("-int_oo, ")?,
        }
        match self.max {
            Some(max) => write!(f, "{max}]"),
            None => f.write_str("int_oo]"),
        }
    }
}

/// Integers that enclose the values of an expression; the values may be fractions. Bounds have more
/// bits than `i64`, so that few are lost in a computation. A bound that does not fit becomes
/// `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub lo: Option<i128>,
    pub hi: Option<i128>,
}

pub(crate) fn floor_div(a: i128, b: i128) -> Option<i128> {
    let quotient = a.checked_div(b)?;
    Some(quotient - i128::from(a % b != 0 && (a < 0) != (b < 0)))
}

pub(crate) fn ceil_div(a: i128, b: i128) -> Option<i128> {
    floor_div(a.checked_neg()?, b)?.checked_neg()
}

impl Interval {
    pub const ANY: Interval = Interval { lo: None, hi: None };
    pub const BOOL: Interval = Interval::new(0, 1);

    pub const fn new(lo: i128, hi: i128) -> Interval {
        Interval { lo: Some(lo), hi: Some(hi) }
    }

    pub fn enclosing(value: f64) -> Interval {
        // The cast would still be right above 2^100, but such bounds are not needed.
        if value.is_nan() || value.abs() > 2f64.powi(100) {
            return Interval::ANY;
        }
        Interval::new(value.floor() as i128, value.ceil() as i128)
    }

    pub fn intersect(self, other: Interval) -> Interval {
        Interval {
            lo: self.lo.max(other.lo),
            hi: match (self.hi, other.hi) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }

    /// The larger of the values of both.
    pub fn max(self, other: Interval) -> Interval {
        Interval { lo: self.lo.max(other.lo), hi: self.hi.zip(other.hi).map(|(a, b)| a.max(b)) }
    }

    pub fn union(self, other: Interval) -> Interval {
        Interval {
            lo: self.lo.zip(other.lo).map(|(a, b)| a.min(b)),
            hi: self.hi.zip(other.hi).map(|(a, b)| a.max(b)),
        }
    }

    pub fn add(self, other: Interval) -> Interval {
        let sum = |a: Option<i128>, b: Option<i128>| a?.checked_add(b?);
        Interval { lo: sum(self.lo, other.lo), hi: sum(self.hi, other.hi) }
    }

    pub fn neg(self) -> Interval {
        Interval {
            lo: self.hi.and_then(i128::checked_neg),
            hi: self.lo.and_then(i128::checked_neg),
        }
    }

    /// The product with `num / den`, where `den` is positive.
    pub fn scale(self, num: i64, den: i64) -> Interval {
        if num == 0 {
            return Interval::new(0, 0);
        }
        let times = |bound: Option<i128>| bound?.checked_mul(num.into());
        let (lo, hi) = (times(self.lo), times(self.hi));
        let (lo, hi) = if num < 0 { (hi, lo) } else { (lo, hi) };
        Interval {
            lo: lo.and_then(|lo| floor_div(lo, den.into())),
            hi: hi.and_then(|hi| ceil_div(hi, den.into())),
        }
    }

    pub fn mul(self, other: Interval) -> Interval {
        if let (Some(a), Some(b), Some(c), Some(d)) = (self.lo, self.hi, other.lo, other.hi) {
            let corners = [(a, c), (a, d), (b, c), (b, d)].map(|(x, y)| x.checked_mul(y));
            let [Some(w), Some(x), Some(y), Some(z)] = corners else {
                return Interval::ANY;
            };
            return Interval::new(w.min(x).min(y).min(z), w.max(x).max(y).max(z));
        }
        // A bound is missing. There are bounds only if neither operand changes its sign.
        if self.hi.is_some_and(|hi| hi <= 0) {
            return self.neg().mul_half(other).neg();
        }
        self.mul_half(other)
    }

    /// [`mul`](Self::mul) where this interval is not negative; unbounded otherwise.
    fn mul_half(self, other: Interval) -> Interval {
        let times = |a: Option<i128>, b: Option<i128>| a?.checked_mul(b?);
        match self.lo {
            Some(0..) => {}
            _ => return Interval::ANY,
        }
        if other.lo.is_some_and(|lo| lo >= 0) {
            return Interval { lo: times(self.lo, other.lo), hi: times(self.hi, other.hi) };
        }
        if other.hi.is_some_and(|hi| hi <= 0) {
            return Interval { lo: times(self.hi, other.lo), hi: times(self.lo, other.hi) };
        }
        Interval { lo: times(self.hi, other.lo), hi: times(self.hi, other.hi) }
    }

    pub fn pow(self, exponent: u32) -> Interval {
        let power = |bound: Option<i128>| bound?.checked_pow(exponent);
        if exponent == 0 {
            return Interval::new(1, 1);
        }
        if exponent % 2 == 1 || self.lo.is_some_and(|lo| lo >= 0) {
            return Interval { lo: power(self.lo), hi: power(self.hi) };
        }
        let Interval { lo, hi } = self.abs();
        Interval { lo: power(lo), hi: power(hi) }
    }

    pub fn abs(self) -> Interval {
        if self.lo.is_some_and(|lo| lo >= 0) {
            return self;
        }
        if self.hi.is_some_and(|hi| hi <= 0) {
            return self.neg();
        }
        Interval { lo: Some(0), ..self.max(self.neg()) }
    }

    /// The quotient, optionally rounded down to an integer.
    pub fn div(self, divisor: Interval, round_down: bool) -> Interval {
        if divisor.hi.is_some_and(|hi| hi < 0) {
            return self.neg().div(divisor.neg(), round_down);
        }
        let Some(least @ 1..) = divisor.lo else {
            // Dividing by an integer other than 0 makes no absolute value larger.
            return match (self.abs().hi, round_down) {
                (Some(hi), true) => Interval::new(-hi, hi),
                _ => Interval::ANY,
            };
        };
        let up = if round_down { floor_div } else { ceil_div };
        // The divisor that gives the extreme: the smallest if the quotient is to be far from 0, the
        // largest otherwise.
        let quotient =
            |bound: i128, far: bool, div: fn(i128, i128) -> Option<i128>| match divisor.hi {
                _ if far => div(bound, least),
                Some(most) => div(bound, most),
                None if bound < 0 && round_down => Some(-1),
                None => Some(0),
            };
        Interval {
            lo: self.lo.and_then(|lo| quotient(lo, lo < 0, floor_div)),
            hi: self.hi.and_then(|hi| quotient(hi, hi > 0, up)),
        }
    }

    pub fn modulo(self, divisor: Interval) -> Interval {
        if divisor.hi.is_some_and(|hi| hi < 0) {
            return self.neg().modulo(divisor.neg()).neg();
        }
        let Some(least @ 1..) = divisor.lo else {
            return Interval::ANY;
        };
        let whole = Interval { lo: Some(0), hi: divisor.hi.map(|hi| hi - 1) };
        match (self.lo, self.hi) {
            (Some(0..), Some(hi)) if hi < least => self,
            (Some(0..), _) => whole.intersect(Interval { lo: None, hi: self.hi }),
            _ => whole,
        }
    }

    /// The interval after values are rounded to doubles. Bounds up to 2^53 stay exact; larger ones
    /// are removed.
    pub fn as_double(self) -> Interval {
        let exact = |bound: &i128| bound.unsigned_abs() <= 1 << 53;
        Interval { lo: self.lo.filter(exact), hi: self.hi.filter(exact) }
    }
}

impl From<Range> for Interval {
    fn from(range: Range) -> Interval {
        Interval { lo: range.min.map(i128::from), hi: range.max.map(i128::from) }
    }
}

impl From<Interval> for Range {
    fn from(interval: Interval) -> Range {
        let lo = interval.lo.filter(|lo| *lo >= i64::MIN.into());
        let hi = interval.hi.filter(|hi| *hi <= i64::MAX.into());
        Range {
            min: lo.map(|lo| i64::try_from(lo).unwrap_or(i64::MAX)),
            max: hi.map(|hi| i64::try_from(hi).unwrap_or(i64::MIN)),
        }
    }
}
