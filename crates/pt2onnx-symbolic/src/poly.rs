//! Expressions as polynomials: sums of terms, each a number times a product of atoms.
//!
//! Atoms are symbols, function applications, and powers that cannot be multiplied out.

use std::cmp::Ordering;

use crate::expr::{Expr, Node, View};
use crate::number::Number;

/// A product or a power is not multiplied out if the result would have more terms than this.
pub const MAX_TERMS: usize = 128;

/// Largest number of terms of a quotient in [`exact_div`].
const MAX_DIVISION_STEPS: usize = 32;

/// Largest exponent that is multiplied out.
const MAX_EXPONENT: i64 = 64;

/// A coefficient: an exact fraction, or a float if it was computed from a float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Coef {
    /// Numerator and denominator, in lowest terms. The denominator is positive.
    Exact(i64, i64),
    Float(f64),
}

/// A product of powers of atoms, sorted by atom. No exponent is 0.
pub(crate) type Mono = Vec<(Expr, i64)>;

/// A coefficient times a product of atoms.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub coef: Coef,
    pub mono: Mono,
}

impl Coef {
    pub const ONE: Coef = Coef::Exact(1, 1);

    /// The fraction `num / den`. `None` if `den` is 0 or the fraction in lowest terms does not fit.
    pub fn ratio(num: i128, den: i128) -> Option<Coef> {
        Coef::fit(Number::ratio(num, den)?)
    }

    /// A number, if it fits.
    pub fn fit(number: Number) -> Option<Coef> {
        Some(match number {
            Number::Exact(num, den) => Coef::Exact(num.try_into().ok()?, den.try_into().ok()?),
            Number::Float(value) => Coef::Float(value),
        })
    }

    fn number(self) -> Number {
        match self {
            Coef::Exact(num, den) => Number::Exact(num.into(), den.into()),
            Coef::Float(value) => Number::Float(value),
        }
    }

    pub fn as_int(self) -> Option<i64> {
        match self {
            Coef::Exact(num, 1) => Some(num),
            _ => None,
        }
    }

    fn as_f64(self) -> f64 {
        self.number().as_f64()
    }

    fn is_zero(self) -> bool {
        match self {
            Coef::Exact(num, _) => num == 0,
            Coef::Float(value) => value == 0.0,
        }
    }

    pub fn is_negative(self) -> bool {
        match self {
            Coef::Exact(num, _) => num < 0,
            Coef::Float(value) => value < 0.0,
        }
    }

    fn add(self, other: Coef) -> Option<Coef> {
        Coef::fit(self.number().add(other.number())?)
    }

    pub fn mul(self, other: Coef) -> Option<Coef> {
        Coef::fit(self.number().mul(other.number())?)
    }

    fn pow(self, exponent: i64) -> Option<Coef> {
        Coef::fit(self.number().pow(Number::int(exponent.into()))?)
    }

    pub fn to_expr(self) -> Expr {
        match self {
            Coef::Exact(num, 1) => Expr::int(num),
            Coef::Exact(num, den) => Expr::from_node(Node::Rational(num, den)),
            Coef::Float(value) => Expr::float(value),
        }
    }

    /// A total order. It only makes results deterministic.
    fn cmp(self, other: Coef) -> Ordering {
        match (self, other) {
            (Coef::Exact(a, b), Coef::Exact(c, d)) => (a, b).cmp(&(c, d)),
            (Coef::Exact(..), Coef::Float(_)) => Ordering::Less,
            (Coef::Float(_), Coef::Exact(..)) => Ordering::Greater,
            (Coef::Float(a), Coef::Float(b)) => a.total_cmp(&b),
        }
    }
}

/// The value of a constant expression.
pub(crate) fn as_coef(expr: &Expr) -> Option<Coef> {
    match expr.view() {
        View::Int(value) => Some(Coef::Exact(value, 1)),
        View::Rational(num, den) => Some(Coef::Exact(num, den)),
        View::Float(value) => Some(Coef::Float(value)),
        _ => None,
    }
}

impl Term {
    pub fn constant(coef: Coef) -> Term {
        Term { coef, mono: Vec::new() }
    }

    /// Whether the value is an integer for all values of the symbols.
    pub fn is_integer(&self) -> bool {
        self.coef.as_int().is_some() && mono_is_integer(&self.mono)
    }

    /// The term without atoms of exponent 0. A number that did not fit in an earlier coefficient
    /// joins this one if it fits.
    fn joined(mut self) -> Term {
        self.mono.retain(|(atom, exponent)| {
            let number = as_coef(atom).filter(|_| *exponent == 1);
            let product = number.and_then(|number| self.coef.mul(number));
            self.coef = product.unwrap_or(self.coef);
            product.is_none() && *exponent != 0
        });
        self
    }

    /// `self / divisor`. `None` if there is a remainder or a new negative exponent.
    pub fn exact_div(&self, divisor: &Term) -> Option<Term> {
        let (Coef::Exact(a, 1), Coef::Exact(b, 1)) = (self.coef, divisor.coef) else {
            return None;
        };
        if a.checked_rem(b)? != 0 {
            return None;
        }
        let mut mono = self.mono.clone();
        for (atom, exponent) in &divisor.mono {
            let held = mono.iter_mut().find(|(held, _)| held == atom)?;
            held.1 = held.1.checked_sub(*exponent).filter(|left| *left >= 0)?;
        }
        Some(Term { coef: Coef::Exact(a / b, 1), mono }.joined())
    }
}

pub(crate) fn mono_is_integer(mono: &Mono) -> bool {
    mono.iter().all(|(atom, exponent)| *exponent > 0 && atom.is_integer())
}

/// sympy's `lex` order, in which terms are printed.
pub(crate) fn cmp_mono(a: &Mono, b: &Mono) -> Ordering {
    let positive_first = |exponent: i64| {
        if exponent > 0 { Ordering::Less } else { Ordering::Greater }
    };
    let (mut left, mut right) = (a.iter().peekable(), b.iter().peekable());
    loop {
        match (left.peek(), right.peek()) {
            (None, None) => return Ordering::Equal,
            (Some((_, exponent)), None) => return positive_first(*exponent),
            (None, Some((_, exponent))) => return positive_first(*exponent).reverse(),
            (Some((atom, exponent)), Some((other, other_exponent))) => match atom.cmp_form(other) {
                Ordering::Less => return positive_first(*exponent),
                Ordering::Greater => return positive_first(*other_exponent).reverse(),
                Ordering::Equal if exponent != other_exponent => {
                    return other_exponent.cmp(exponent);
                }
                Ordering::Equal => {
                    left.next();
                    right.next();
                }
            },
        }
    }
}

/// The expression as a sum of terms; the inverse of [`from_terms`].
pub(crate) fn to_terms(expr: &Expr) -> Vec<Term> {
    match expr.view() {
        View::Add(args) => args.iter().map(to_term).collect(),
        View::Int(0) => Vec::new(),
        _ => vec![to_term(expr)],
    }
}

fn to_term(expr: &Expr) -> Term {
    if let Some(coef) = as_coef(expr) {
        return Term::constant(coef);
    }
    let factor = |expr: &Expr| match expr.view() {
        View::Pow(base, exponent) if let Some(n) = exponent.as_int() => (base.clone(), n),
        _ => (expr.clone(), 1),
    };
    match expr.view() {
        View::Mul(args) => {
            let (coef, rest) = match args.split_first() {
                Some((first, rest)) if let Some(coef) = as_coef(first) => (coef, rest),
                _ => (Coef::ONE, args),
            };
            Term { coef, mono: rest.iter().map(factor).collect() }
        }
        _ => Term { coef: Coef::ONE, mono: vec![factor(expr)] },
    }
}

/// Sorts the terms and merges like terms. Like terms stay separate if the sum of their coefficients
/// does not fit.
pub(crate) fn collect(terms: Vec<Term>) -> Vec<Term> {
    let mut flat = Vec::with_capacity(terms.len());
    for term in terms {
        match term.mono.as_slice() {
            // A sum that was an atom of a product whose other factors have cancelled.
            [(atom, 1)] if matches!(atom.view(), View::Add(_)) => flat.extend(
                to_terms(atom).iter().map(|inner| mul_term(inner, &Term::constant(term.coef))),
            ),
            _ => flat.push(term),
        }
    }
    flat.sort_by(|a, b| cmp_mono(&a.mono, &b.mono).then_with(|| a.coef.cmp(b.coef)));
    let mut merged: Vec<Term> = Vec::with_capacity(flat.len());
    let mut may_join = false;
    for term in flat {
        match merged.last_mut() {
            Some(last) if last.mono == term.mono => match last.coef.add(term.coef) {
                Some(coef) => {
                    last.coef = coef;
                    may_join |= last.mono.iter().any(|(atom, _)| as_coef(atom).is_some());
                }
                None => merged.push(term),
            },
            _ => merged.push(term),
        }
    }
    merged.retain(|term| !term.coef.is_zero());
    if may_join {
        // Each round has merged terms, and only opening a sum makes more, so this ends.
        return collect(merged.into_iter().map(Term::joined).collect());
    }
    merged.into_iter().map(defined).collect()
}

/// The expression of collected terms.
pub(crate) fn from_terms(terms: Vec<Term>) -> Expr {
    let mut args: Vec<Expr> = terms.into_iter().map(from_term).collect();
    match args.len() {
        0 => Expr::ZERO,
        1 => args.remove(0),
        _ => Expr::from_node(Node::Add(args)),
    }
}

pub(crate) fn from_term(term: Term) -> Expr {
    if term.mono.is_empty() || term.coef.is_zero() {
        return term.coef.to_expr();
    }
    let mut args = Vec::with_capacity(term.mono.len() + 1);
    if term.coef != Coef::ONE {
        args.push(term.coef.to_expr());
    }
    args.extend(term.mono.into_iter().map(|(atom, exponent)| {
        if exponent == 1 { atom } else { Expr::from_node(Node::Pow(atom, Expr::int(exponent))) }
    }));
    if args.len() == 1 { args.remove(0) } else { Expr::from_node(Node::Mul(args)) }
}

pub(crate) fn mul_term(a: &Term, b: &Term) -> Term {
    let mut mono: Mono = Vec::with_capacity(a.mono.len() + b.mono.len() + 1);
    let coef = a.coef.mul(b.coef).unwrap_or_else(|| {
        // The product does not fit, so one coefficient stays a factor.
        let (first, second) = if a.coef.cmp(b.coef) == Ordering::Greater {
            (a.coef, b.coef)
        } else {
            (b.coef, a.coef)
        };
        mono.push((second.to_expr(), 1));
        first
    });
    mono.extend(a.mono.iter().chain(&b.mono).cloned());
    mono.sort_by(|(a, n), (b, m)| a.cmp_form(b).then_with(|| n.cmp(m)));
    let mut merged: Mono = Vec::with_capacity(mono.len());
    for (atom, exponent) in mono {
        match merged.last_mut() {
            Some((last, held)) if *last == atom => match held.checked_add(exponent) {
                Some(sum) => *held = sum,
                None => merged.push((atom, exponent)),
            },
            _ => merged.push((atom, exponent)),
        }
    }
    defined(Term { coef, mono: merged }.joined())
}

/// Returns the term, or `1/0` if the term divides by zero: no such term has a value.
fn defined(term: Term) -> Term {
    match term.mono.iter().find(|(atom, _)| atom.as_int() == Some(0)) {
        Some((zero, _)) => Term { coef: Coef::ONE, mono: vec![(zero.clone(), -1)] },
        None => term,
    }
}

/// All pairwise products. `None` if there would be too many.
fn mul_terms(a: &[Term], b: &[Term]) -> Option<Vec<Term>> {
    let too_many = a.len() > 1 && b.len() > 1 && a.len() * b.len() > MAX_TERMS;
    // A product that was too large to multiply out is not copied into each term of a sum.
    let product = |terms: &[Term]| matches!(terms, [term] if has_sum(&term.mono));
    if too_many || (product(a) && b.len() > 1) || (product(b) && a.len() > 1) {
        return None;
    }
    let pairs = a.iter().flat_map(|left| b.iter().map(|right| mul_term(left, right)));
    Some(collect(pairs.collect()))
}

fn has_sum(mono: &Mono) -> bool {
    mono.iter().any(|(atom, exponent)| *exponent > 0 && matches!(atom.view(), View::Add(_)))
}

pub(crate) fn mul(a: &Expr, b: &Expr) -> Expr {
    match (a.as_int(), b.as_int()) {
        (Some(0), _) | (_, Some(0)) => return Expr::ZERO,
        (Some(1), _) => return b.clone(),
        (_, Some(1)) => return a.clone(),
        (Some(x), Some(y)) if let Some(product) = x.checked_mul(y) => return Expr::int(product),
        _ => {}
    }
    match mul_terms(&to_terms(a), &to_terms(b)) {
        Some(terms) => from_terms(terms),
        None => {
            let factor = |expr: &Expr| match expr.view() {
                View::Add(_) => Term { coef: Coef::ONE, mono: vec![(expr.clone(), 1)] },
                _ => to_term(expr),
            };
            from_term(mul_term(&factor(a), &factor(b)))
        }
    }
}

/// `base ** exponent`. Integer exponents are multiplied out.
pub(crate) fn pow(base: &Expr, exponent: &Expr) -> Expr {
    if let Some(n) = exponent.as_int() {
        return pow_int(base, n);
    }
    if base.as_int() == Some(1) {
        return Expr::ONE;
    }
    if let (Some(Coef::Float(a)), Some(b)) = (as_coef(base), as_coef(exponent)) {
        return Expr::float(a.powf(b.as_f64()));
    }
    Expr::from_node(Node::Pow(base.clone(), exponent.clone()))
}

fn pow_int(base: &Expr, n: i64) -> Expr {
    let atom = || from_term(defined(Term { coef: Coef::ONE, mono: vec![(base.clone(), n)] }));
    if n == 0 {
        return Expr::ONE;
    }
    if n == 1 {
        return base.clone();
    }
    let terms = to_terms(base);
    match terms.as_slice() {
        [] if n > 0 => Expr::ZERO,
        [] => atom(),
        [term] => {
            let exponents: Option<Mono> = term
                .mono
                .iter()
                .map(|(held, exponent)| Some((held.clone(), exponent.checked_mul(n)?)))
                .collect();
            match (term.coef.pow(n), exponents) {
                (Some(coef), Some(mono)) => from_terms(collect(vec![Term { coef, mono }])),
                _ => atom(),
            }
        }
        _ if !(0..=MAX_EXPONENT).contains(&n) => atom(),
        _ => {
            let mut power = terms.clone();
            for _ in 1..n {
                match mul_terms(&power, &terms) {
                    Some(next) => power = next,
                    None => return atom(),
                }
            }
            from_terms(power)
        }
    }
}

/// `a / b` as a polynomial. `None` if there is a remainder.
pub(crate) fn exact_div(a: &Expr, b: &Expr) -> Option<Expr> {
    let divisor = to_terms(b);
    let lead = divisor.first()?;
    let mut rest = to_terms(a);
    let mut quotient = Vec::new();
    // Each step removes the leading term, so an exact division takes few steps.
    for _ in 0..MAX_DIVISION_STEPS {
        let Some(first) = rest.first() else {
            return Some(from_terms(collect(quotient)));
        };
        let term = first.exact_div(lead)?;
        let negated = mul_term(&term, &Term::constant(Coef::Exact(-1, 1)));
        rest.extend(divisor.iter().map(|part| mul_term(part, &negated)));
        rest = collect(rest);
        quotient.push(term);
    }
    None
}
