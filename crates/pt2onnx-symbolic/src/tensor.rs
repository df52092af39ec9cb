//! The abstract value of a tensor of integers: its sizes, and its elements where they are known.
//!
//! Elements are expressions over sizes; truth values are 0 and 1. The transfer functions are those
//! of operators on shapes. They assume that no size is negative.

use crate::expr::{Expr, View};
use crate::func::Func;
use crate::sizes::axis;

/// An element of the lattice of tensors, from no knowledge to all elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SymTensor {
    /// Nothing is known.
    #[default]
    Unknown,
    /// The sizes are known.
    Shaped(Vec<Expr>),
    /// A 0-d tensor with this element.
    Scalar(Expr),
    /// A vector of these elements.
    Vector(Vec<Expr>),
}

impl SymTensor {
    /// The most elements of a result that should be followed; vectors of sizes are short.
    pub const MAX_ELEMENTS: usize = 64;

    /// A tensor of these sizes. Its elements are kept if it is a vector or scalar.
    pub fn new(shape: Vec<Expr>, elements: Option<Vec<Expr>>) -> Self {
        match (shape.as_slice(), elements) {
            ([], Some(elements)) => match <[Expr; 1]>::try_from(elements) {
                Ok([element]) => Self::Scalar(element),
                Err(_) => Self::Shaped(shape),
            },
            ([_], Some(elements)) => Self::Vector(elements),
            _ => Self::Shaped(shape),
        }
    }

    /// The sizes.
    pub fn shape(&self) -> Option<Vec<Expr>> {
        match self {
            Self::Unknown => None,
            Self::Shaped(shape) => Some(shape.clone()),
            Self::Scalar(_) => Some(Vec::new()),
            Self::Vector(elements) => Some(vec![Expr::int(elements.len() as i64)]),
        }
    }

    /// The elements, in order.
    pub fn elements(&self) -> Option<&[Expr]> {
        match self {
            Self::Scalar(element) => Some(std::slice::from_ref(element)),
            Self::Vector(elements) => Some(elements),
            Self::Unknown | Self::Shaped(_) => None,
        }
    }

    /// The elements, if all are numbers.
    pub fn ints(&self) -> Option<Vec<i64>> {
        self.elements()?.iter().map(Expr::as_int).collect()
    }

    /// The only element, if it is a number.
    pub fn int(&self) -> Option<i64> {
        match self.elements()? {
            [one] => one.as_int(),
            _ => None,
        }
    }

    /// The elements as a vector, or as a scalar if `rank` is 0.
    #[must_use]
    pub fn reshape(&self, rank: usize) -> Self {
        match (self.elements(), rank) {
            (Some([one]), 0) => Self::Scalar(one.clone()),
            (Some(elements), 1) => Self::Vector(elements.to_vec()),
            _ => Self::Unknown,
        }
    }

    /// The sizes as a vector.
    #[must_use]
    pub fn sizes(&self) -> Self {
        self.shape().map_or(Self::Unknown, Self::Vector)
    }

    /// The number of elements.
    #[must_use]
    pub fn numel(&self) -> Self {
        self.shape().map_or(Self::Unknown, |shape| Self::Scalar(Expr::product(shape)))
    }

    /// `f` of each element.
    #[must_use]
    pub fn map(&self, f: impl Fn(&Expr) -> Option<Expr>) -> Self {
        let Some(elements) = self.elements() else { return self.clone() };
        let mapped = elements.iter().map(f).collect::<Option<Vec<_>>>();
        Self::new(self.shape().unwrap_or_default(), mapped)
    }

    /// `f` of each tuple of elements of `tensors`; those of one element are broadcast.
    pub fn zip<const N: usize>(
        tensors: [&Self; N],
        f: impl Fn([&Expr; N]) -> Option<Expr>,
    ) -> Self {
        let all: Option<Vec<&[Expr]>> = tensors.iter().map(|t| t.elements()).collect();
        let Some(all) = all else { return Self::Unknown };
        let longest = all.iter().map(|e| e.len()).find(|&n| n != 1).unwrap_or(1);
        if all.iter().any(|e| e.len() != 1 && e.len() != longest) {
            return Self::Unknown;
        }
        let scalar = tensors.iter().all(|t| matches!(t, Self::Scalar(_)));
        let at = |i: usize| {
            let row: Option<Vec<&Expr>> =
                all.iter().map(|e| e.get(if e.len() == 1 { 0 } else { i })).collect();
            f(<[&Expr; N]>::try_from(row?).ok()?)
        };
        match (0..longest).map(at).collect::<Option<Vec<_>>>() {
            Some(elements) if scalar => Self::new(Vec::new(), Some(elements)),
            Some(elements) => Self::Vector(elements),
            None => Self::Unknown,
        }
    }

    /// Vectors one after the other.
    pub fn concat(parts: &[Self]) -> Self {
        let parts: Option<Vec<&[Expr]>> = parts.iter().map(Self::elements).collect();
        parts.map_or(Self::Unknown, |parts| Self::Vector(parts.concat()))
    }

    /// The elements of a vector at these places, which may count from the end.
    #[must_use]
    pub fn gather(&self, places: &Self) -> Self {
        let Self::Vector(data) = self else { return Self::Unknown };
        places.map(|place| data.get(axis(place.as_int()?, data.len())?).cloned())
    }

    /// The elements of a vector at these positions.
    #[must_use]
    pub fn pick(&self, positions: &[usize]) -> Self {
        let picked = positions.iter().map(|&i| self.elements()?.get(i).cloned());
        picked.collect::<Option<_>>().map_or(Self::Unknown, Self::Vector)
    }

    /// The vector that these elements, or one for all, broadcast to.
    #[must_use]
    pub fn expand(&self, length: usize) -> Self {
        match self.elements() {
            Some([one]) if length <= Self::MAX_ELEMENTS => Self::Vector(vec![one.clone(); length]),
            Some(all) if length == 1 || all.len() == length => Self::Vector(all.to_vec()),
            _ => Self::Unknown,
        }
    }

    /// The sum of all elements.
    pub fn sum(&self) -> Option<Expr> {
        self.elements().map(|elements| Expr::sum(elements.iter().cloned()))
    }

    /// The product of all elements.
    pub fn product(&self) -> Option<Expr> {
        self.elements().map(|elements| Expr::product(elements.iter().cloned()))
    }
}

/// A number that the expression is never below.
pub fn lowest(e: &Expr) -> Option<i64> {
    let all = |args: &[Expr]| args.iter().map(lowest).collect::<Option<Vec<i64>>>();
    let not_negative = |args: &[Expr]| all(args).filter(|v| v.iter().all(|&b| b >= 0));
    match e.view() {
        View::Int(i) => Some(i),
        // Expressions of too many parts may be negative.
        View::Symbol(name) => (!Expr::is_opaque(name)).then_some(0),
        View::Add(args) => all(args)?.into_iter().try_fold(0i64, i64::checked_add),
        View::Mul(args) => not_negative(args)?.into_iter().try_fold(1i64, i64::checked_mul),
        View::Pow(base, exponent) => {
            let (base, exponent) = (lowest(base)?, lowest(exponent)?);
            (base >= 0 && exponent > 0).then_some(0)
        }
        View::Call(Func::Max, args) => args.iter().filter_map(lowest).max(),
        View::Call(Func::Min, args) => all(args)?.into_iter().min(),
        View::Call(Func::FloorDiv, [a, b]) => match b.as_int() {
            Some(b) if b > 0 => lowest(a).map(|a| a.div_euclid(b)),
            _ => (lowest(a)? >= 0 && lowest(b)? > 0).then_some(0),
        },
        _ => None,
    }
}

/// Whether two numbers are equal, if that is the same for all sizes.
pub fn equal(a: &Expr, b: &Expr) -> Option<bool> {
    let apart =
        || lowest(&(a - b)).is_some_and(|d| d > 0) || lowest(&(b - a)).is_some_and(|d| d > 0);
    if a == b { Some(true) } else { apart().then_some(false) }
}

/// Whether the first number is less than the second, if that is the same for all sizes.
pub fn less(a: &Expr, b: &Expr) -> Option<bool> {
    if lowest(&(b - a)).is_some_and(|d| d > 0) {
        return Some(true);
    }
    lowest(&(a - b)).is_some_and(|d| d >= 0).then_some(false)
}

/// `a / b`, rounded towards zero, unless a number may be negative or `b` is 0.
pub fn quotient(a: &Expr, b: &Expr) -> Option<Expr> {
    if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
        return a.checked_div(b).map(Expr::int);
    }
    (lowest(a)? >= 0 && lowest(b)? >= 0).then(|| a.floor_div(b))
}

/// `a % b` of numbers that are not negative.
pub fn remainder(a: &Expr, b: &Expr) -> Option<Expr> {
    if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
        return (a >= 0 && b > 0).then(|| Expr::int(a % b));
    }
    (lowest(a)? >= 0 && lowest(b)? > 0).then(|| a.modulo(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(elements: &[&str]) -> SymTensor {
        let parse = |e: &&str| Expr::parse(e).unwrap_or(Expr::ZERO);
        SymTensor::Vector(elements.iter().map(parse).collect())
    }

    #[test]
    fn elements_of_one_are_broadcast() {
        let two = SymTensor::Scalar(Expr::int(2));
        let product = |[a, b]: [&Expr; 2]| Some(a * b);
        assert_eq!(SymTensor::zip([&vector(&["s0", "3"]), &two], product), vector(&["2*s0", "6"]));
        assert_eq!(SymTensor::zip([&two, &two], product), SymTensor::Scalar(Expr::int(4)));
        let (a, b) = (vector(&["1", "2"]), vector(&["1", "2", "3"]));
        assert_eq!(SymTensor::zip([&a, &b], product), SymTensor::Unknown);
    }

    #[test]
    fn shapes_are_tensors() {
        let x = SymTensor::new(vec![Expr::symbol("s0"), Expr::int(4)], None);
        assert_eq!(x.sizes(), vector(&["s0", "4"]));
        assert_eq!(x.numel(), SymTensor::Scalar(Expr::symbol("s0") * 4));
        let last = x.sizes().gather(&SymTensor::Scalar(Expr::int(-1)));
        assert_eq!(last.int(), Some(4));
        assert_eq!(last.expand(3).ints(), Some(vec![4; 3]));
        assert_eq!(SymTensor::concat(&[x.sizes(), vector(&["1"])]), vector(&["s0", "4", "1"]));
        assert_eq!(x.sizes().gather(&SymTensor::Scalar(Expr::int(2))).elements(), None);
    }

    #[test]
    fn sizes_are_not_negative() {
        let s = Expr::symbol("s0");
        assert_eq!((lowest(&(&s + 2)), lowest(&(Expr::ZERO - &s))), (Some(2), None));
        assert_eq!((equal(&s, &(&s + 1)), less(&s, &(&s + 1))), (Some(false), Some(true)));
        assert_eq!(quotient(&(&s * 4), &Expr::int(2)), Some(&s * 2));
        assert_eq!(remainder(&(&s - 1), &Expr::int(2)), None);
    }
}
