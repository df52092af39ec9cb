//! Arithmetic on expressions: sums, products, powers, and Rust's operators `+`, `-`, `*`.

use std::borrow::Borrow;
use std::ops::{Add, Mul, Neg, Sub};

use crate::expr::Expr;
use crate::poly;

impl Expr {
    /// The fraction `numerator / denominator`. `None` if the denominator is 0 or the fraction in
    /// lowest terms does not fit in `i64`.
    pub fn rational(numerator: i64, denominator: i64) -> Option<Expr> {
        poly::Coef::ratio(i128::from(numerator), i128::from(denominator)).map(poly::Coef::to_expr)
    }

    /// The sum of all terms; 0 if there are none.
    pub fn sum<I>(terms: I) -> Expr
    where
        I: IntoIterator<Item: Borrow<Expr>>,
    {
        let mut all = Vec::new();
        for term in terms {
            all.extend(poly::to_terms(term.borrow()));
        }
        poly::from_terms(poly::collect(all))
    }

    /// The product of all factors; 1 if there are none.
    pub fn product<I>(factors: I) -> Expr
    where
        I: IntoIterator<Item: Borrow<Expr>>,
    {
        factors.into_iter().fold(Expr::ONE, |product, factor| &product * factor.borrow())
    }

    /// `self ** exponent`.
    pub fn pow(&self, exponent: &Expr) -> Expr {
        poly::pow(self, exponent)
    }
}

impl Neg for &Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        poly::mul(&Expr::int(-1), self)
    }
}

impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        -&self
    }
}

fn add(a: &Expr, b: &Expr) -> Expr {
    match (a.as_int(), b.as_int()) {
        (Some(0), _) => b.clone(),
        (_, Some(0)) => a.clone(),
        (Some(x), Some(y)) if x.checked_add(y).is_some() => Expr::int(x + y),
        _ => Expr::sum([a, b]),
    }
}

fn sub(a: &Expr, b: &Expr) -> Expr {
    add(a, &-b)
}

/// Implements an operator for each pair of owned, borrowed and `i64` operands.
macro_rules! operator {
    ($trait:ident, $method:ident, $function:path) => {
        impl $trait<&Expr> for &Expr {
            type Output = Expr;
            fn $method(self, other: &Expr) -> Expr {
                $function(self, other)
            }
        }
        impl $trait<Expr> for &Expr {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr {
                $function(self, &other)
            }
        }
        impl $trait<&Expr> for Expr {
            type Output = Expr;
            fn $method(self, other: &Expr) -> Expr {
                $function(&self, other)
            }
        }
        impl $trait<Expr> for Expr {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr {
                $function(&self, &other)
            }
        }
        impl $trait<i64> for &Expr {
            type Output = Expr;
            fn $method(self, other: i64) -> Expr {
                $function(self, &Expr::int(other))
            }
        }
        impl $trait<i64> for Expr {
            type Output = Expr;
            fn $method(self, other: i64) -> Expr {
                $function(&self, &Expr::int(other))
            }
        }
        impl $trait<&Expr> for i64 {
            type Output = Expr;
            fn $method(self, other: &Expr) -> Expr {
                $function(&Expr::int(self), other)
            }
        }
        impl $trait<Expr> for i64 {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr {
                $function(&Expr::int(self), &other)
            }
        }
    };
}

operator!(Add, add, add);
operator!(Sub, sub, sub);
operator!(Mul, mul, poly::mul);
