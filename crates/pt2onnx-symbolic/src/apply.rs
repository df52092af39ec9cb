//! Applies functions, in canonical form.
//!
//! [`Expr::call`] folds constants, orders arguments, and applies the simplifications that always
//! hold.

use std::cmp::Ordering;

use crate::eval;
use crate::expr::{Expr, Node, View};
use crate::func::Func;
use crate::number;
use crate::poly::{self, Coef, Term};

/// `Max` and `Min` compare their arguments pairwise up to this number of arguments, because the
/// time is quadratic.
const MAX_COMPARED: usize = 16;

impl Expr {
    /// The function application `func(args)`, simplified. If the function does not take this number
    /// of arguments, the application is kept as it is and has no value.
    pub fn call(func: Func, args: Vec<Expr>) -> Expr {
        apply(func, args)
    }

    /// Python's `self // divisor`.
    pub fn floor_div(&self, divisor: &Expr) -> Expr {
        Expr::call(Func::FloorDiv, vec![self.clone(), divisor.clone()])
    }

    /// `ceil(self / divisor)`.
    pub fn ceil_div(&self, divisor: &Expr) -> Expr {
        Expr::call(Func::CeilDiv, vec![self.clone(), divisor.clone()])
    }

    /// Python's `self % divisor`.
    pub fn modulo(&self, divisor: &Expr) -> Expr {
        Expr::call(Func::PythonMod, vec![self.clone(), divisor.clone()])
    }

    /// The larger of two expressions.
    pub fn max(&self, other: &Expr) -> Expr {
        Expr::call(Func::Max, vec![self.clone(), other.clone()])
    }

    /// The smaller of two expressions.
    pub fn min(&self, other: &Expr) -> Expr {
        Expr::call(Func::Min, vec![self.clone(), other.clone()])
    }

    /// Applies `change` to each direct operand, and the same operation to the results.
    pub(crate) fn map_children(&self, change: &mut dyn FnMut(&Expr) -> Expr) -> Expr {
        match self.view() {
            View::Add(args) => Expr::sum(args.iter().map(change)),
            View::Mul(args) => Expr::product(args.iter().map(change)),
            View::Pow(base, exponent) => change(base).pow(&change(exponent)),
            View::Call(func, args) => Expr::call(func, args.iter().map(change).collect()),
            _ => self.clone(),
        }
    }

    /// Replaces each symbol for which `value` returns an expression. All symbols are replaced at
    /// once.
    pub fn substitute(&self, value: &dyn Fn(&str) -> Option<Expr>) -> Expr {
        match self.as_symbol() {
            Some(name) => value(name).unwrap_or_else(|| self.clone()),
            None => self.map_children(&mut |child| child.substitute(value)),
        }
    }
}

/// The canonical form of `func(args)`.
fn apply(func: Func, args: Vec<Expr>) -> Expr {
    if !func.takes(args.len()) {
        return raw(func, args);
    }
    let folded = args
        .iter()
        .all(|arg| poly::as_coef(arg).is_some())
        .then(|| eval::constant(func, &args))
        .flatten();
    if let Some(value) = folded {
        return value;
    }
    use Func::*;
    match (func, args.as_slice()) {
        (Identity, [x]) => x.clone(),
        (FloorDiv | CleanDiv, [a, b]) => floor_div(a, b),
        (CeilDiv, [a, b]) => ceil_div(a, b),
        (Mod | PythonMod, [a, b]) => modulo(func, a, b),
        (ModularIndexing, [_, _, c]) if c.as_int() == Some(1) => Expr::ZERO,
        (LShift, [a, b]) => a * power_of_two(b),
        (RShift, [a, b]) => floor_div(a, &power_of_two(b)),
        (PowByNatural, [a, b]) if b.as_int().is_some_and(|n| n >= 0) => a.pow(b),
        (PowByNatural, [a, _]) if a.as_int() == Some(1) => Expr::ONE,
        (Max | Min, _) => extremum(func, args),
        (And | Or, _) => connective(func, args),
        (Not, [x]) => negate(x),
        (Where, [condition, yes, no]) => match condition.as_int() {
            Some(0) => no.clone(),
            Some(_) => yes.clone(),
            None if yes == no => yes.clone(),
            None => raw(func, args),
        },
        (Eq | Ne | Lt | Le | Gt | Ge, [a, b]) => relation(func, a, b),
        (Abs, [x]) => match x.view() {
            View::Call(Abs, _) => x.clone(),
            View::Call(inner, _) if inner.is_boolean() => x.clone(),
            _ => raw(func, args),
        },
        // A float made from an integer needs no rounding.
        (CeilToInt | FloorToInt | TruncToInt | RoundToInt, [x]) => match x.view() {
            View::Call(ToFloat, [inner]) if inner.is_integer() => inner.clone(),
            _ => raw(func, args),
        },
        (Floor | Ceiling, [x]) => round_fraction(func, x).unwrap_or_else(|| raw(func, args)),
        (BitwiseAnd | BitwiseOr | BitwiseXor, _) => {
            let mut args = args;
            args.sort_by(Expr::cmp_form);
            raw(func, args)
        }
        _ => raw(func, args),
    }
}

fn raw(func: Func, args: Vec<Expr>) -> Expr {
    Expr::from_node(Node::Call(func, args))
}

fn power_of_two(exponent: &Expr) -> Expr {
    Expr::call(Func::PowByNatural, vec![Expr::int(2), exponent.clone()])
}

fn floor_div(a: &Expr, b: &Expr) -> Expr {
    let keep = || raw(Func::FloorDiv, vec![a.clone(), b.clone()]);
    if b.as_int() == Some(0) || !a.is_integer() || !b.is_integer() {
        return keep();
    }
    // Simplification may have made the operands constant.
    if a.is_static()
        && b.is_static()
        && let Some(value) = eval::constant(Func::FloorDiv, &[a.clone(), b.clone()])
    {
        return value;
    }
    let divisor = poly::to_terms(b);
    let Some(lead) = divisor.first() else {
        return keep();
    };
    if lead.coef.is_negative() {
        let (negated_a, negated_b) = (-a, -b);
        // The negation of i64::MIN does not fit. It stays a product, which is negative again.
        let flipped = poly::to_terms(&negated_b);
        if flipped.first().is_some_and(|t| !t.coef.is_negative()) && !is_overflow(&flipped) {
            return floor_div(&negated_a, &negated_b);
        }
        return keep();
    }
    if let Some(quotient) = poly::exact_div(a, b) {
        return quotient;
    }
    // Multiples of the divisor are divided separately. As in PyTorch, only if the divisor is
    // constant, so that texts agree.
    if b.is_static()
        && let Some((whole, rest)) = split_whole(a, b)
    {
        return whole + floor_div(&rest, b);
    }
    let common = common_factor(poly::to_terms(a).iter().chain(&divisor));
    if let Some(common) = common
        && let Some((a, b)) = divide_all(a, &common).zip(divide_all(b, &common))
    {
        return floor_div(&a, &b);
    }
    // (x // m) // k == x // (m * k) for a positive k.
    if let (View::Call(Func::FloorDiv, [x, m]), Some(k)) = (a.view(), b.as_int())
        && let Some(product) = m.as_int().and_then(|m| m.checked_mul(k))
    {
        return floor_div(x, &Expr::int(product));
    }
    keep()
}

/// Splits `a` into the sum of its terms that `b` divides, already divided, and the sum of its other
/// terms. `None` if `b` is not a single term or divides no term.
pub(crate) fn split_whole(a: &Expr, b: &Expr) -> Option<(Expr, Expr)> {
    let divisor = poly::to_terms(b);
    let [divisor] = divisor.as_slice() else {
        return None;
    };
    let (mut whole, mut rest) = (Vec::new(), Vec::new());
    for term in poly::to_terms(a) {
        match term.exact_div(divisor) {
            Some(quotient) if quotient.is_integer() => whole.push(quotient),
            _ => rest.push(term),
        }
    }
    let expr = |terms| poly::from_terms(poly::collect(terms));
    (!whole.is_empty()).then(|| (expr(whole), expr(rest)))
}

/// Whether a term contains a number that did not fit in its coefficient.
fn is_overflow(terms: &[Term]) -> bool {
    terms.iter().any(|term| term.mono.iter().any(|(atom, _)| atom.is_static()))
}

/// The greatest common monomial of the terms. `None` if it is 1 or a term is not an integer
/// polynomial.
fn common_factor<'a>(terms: impl Iterator<Item = &'a Term>) -> Option<Term> {
    let mut common: Option<Term> = None;
    for term in terms {
        let Coef::Exact(coef, 1) = term.coef else {
            return None;
        };
        if term.mono.iter().any(|(_, exponent)| *exponent < 0) {
            return None;
        }
        let coef = u128::from(coef.unsigned_abs());
        common = Some(match common {
            None => {
                Term { coef: Coef::ratio(i128::try_from(coef).ok()?, 1)?, mono: term.mono.clone() }
            }
            Some(held) => {
                let known = u128::from(held.coef.as_int()?.unsigned_abs());
                let mut mono = held.mono;
                mono.retain_mut(|(atom, exponent)| {
                    let other = term.mono.iter().find(|(other, _)| other == atom);
                    *exponent = other.map_or(0, |(_, n)| *n).min(*exponent);
                    *exponent > 0
                });
                Term { coef: Coef::ratio(i128::try_from(number::gcd(coef, known)).ok()?, 1)?, mono }
            }
        });
    }
    common.filter(|term| term.coef != Coef::ONE || !term.mono.is_empty())
}

fn divide_all(expr: &Expr, divisor: &Term) -> Option<Expr> {
    let quotients: Option<Vec<Term>> =
        poly::to_terms(expr).iter().map(|term| term.exact_div(divisor)).collect();
    Some(poly::from_terms(poly::collect(quotients?)))
}

fn ceil_div(a: &Expr, b: &Expr) -> Expr {
    match b.as_int() {
        Some(k) if k > 0 => floor_div(&(a + (k - 1)), b),
        // ceil(a / b) == -floor(-a / b) for all signs.
        _ => -floor_div(&-a, b),
    }
}

fn modulo(func: Func, a: &Expr, b: &Expr) -> Expr {
    let keep = || raw(func, vec![a.clone(), b.clone()]);
    if b.as_int() == Some(0) || !a.is_integer() || !b.is_integer() {
        return keep();
    }
    if matches!(b.as_int(), Some(1 | -1)) || poly::exact_div(a, b).is_some() {
        return Expr::ZERO;
    }
    match a.view() {
        View::Call(Func::Mod | Func::PythonMod, [_, inner]) if inner == b => a.clone(),
        _ => keep(),
    }
}

/// `floor` or `ceiling` of a polynomial over one common denominator.
fn round_fraction(func: Func, x: &Expr) -> Option<Expr> {
    if x.is_integer() {
        return Some(x.clone());
    }
    let terms = poly::to_terms(x);
    let mut denominator = 1i64;
    for term in &terms {
        let Coef::Exact(_, den) = term.coef else {
            return None;
        };
        let divisor =
            number::gcd(u128::from(den.unsigned_abs()), u128::from(denominator.unsigned_abs()));
        denominator = denominator.checked_mul(den / i64::try_from(divisor).ok()?)?;
    }
    let numerator = x * denominator;
    let denominator = Expr::int(denominator);
    let div = if func == Func::Floor { floor_div } else { ceil_div };
    numerator.is_integer().then(|| div(&numerator, &denominator))
}

/// `Max` or `Min`. Nested applications are flattened; arguments are sorted; duplicates, and
/// arguments that can never be the result, are removed.
fn extremum(func: Func, args: Vec<Expr>) -> Expr {
    let mut flat = Vec::with_capacity(args.len());
    for arg in args {
        match arg.view() {
            View::Call(inner, nested) if inner == func => flat.extend(nested.iter().cloned()),
            _ => flat.push(arg),
        }
    }
    flat.sort_by(Expr::cmp_form);
    flat.dedup();
    retain_unbeaten(&mut flat, |a, b| {
        difference_sign(a, b).is_some_and(|above| above == (func == Func::Max))
    });
    if flat.len() == 1 { flat.remove(0) } else { raw(func, flat) }
}

/// Keeps the arguments that no other one `beats`.
pub(crate) fn retain_unbeaten(args: &mut Vec<Expr>, beats: impl Fn(&Expr, &Expr) -> bool) {
    let mut index = 0;
    while args.len() <= MAX_COMPARED && index < args.len() {
        let others = args.iter().enumerate().filter(|(other, _)| *other != index);
        if others.map(|(_, other)| other).any(|other| beats(other, &args[index])) {
            args.remove(index);
        } else {
            index += 1;
        }
    }
}

/// Whether `a > b`. `None` unless their difference is a constant other than 0.
fn difference_sign(a: &Expr, b: &Expr) -> Option<bool> {
    match (poly::as_coef(a), poly::as_coef(b)) {
        (Some(_), None) | (None, Some(_)) => None,
        _ => match poly::as_coef(&(a - b))? {
            Coef::Exact(0, _) => None,
            Coef::Float(value) if value.is_nan() || value == 0.0 => None,
            coef => Some(!coef.is_negative()),
        },
    }
}

/// `And` or `Or`. Nested applications are flattened; arguments are sorted; duplicates, and
/// constants that do not change the result, are removed.
fn connective(func: Func, args: Vec<Expr>) -> Expr {
    let neutral = func == Func::And;
    let mut flat = Vec::with_capacity(args.len());
    for arg in args {
        match arg.view() {
            View::Call(inner, nested) if inner == func => flat.extend(nested.iter().cloned()),
            View::Int(value) if (value != 0) == neutral => {}
            View::Int(_) => return Expr::bool(!neutral),
            _ => flat.push(arg),
        }
    }
    flat.sort_by(Expr::cmp_form);
    flat.dedup();
    match flat.len() {
        0 => Expr::bool(neutral),
        1 if flat[0].is_boolean() => flat.remove(0),
        _ => raw(func, flat),
    }
}

fn negate(x: &Expr) -> Expr {
    let (opposite, args) = match x.view() {
        View::Call(Func::Eq, args) => (Func::Ne, args),
        View::Call(Func::Ne, args) => (Func::Eq, args),
        View::Call(Func::Lt, args) => (Func::Ge, args),
        View::Call(Func::Ge, args) => (Func::Lt, args),
        View::Call(Func::Gt, args) => (Func::Le, args),
        View::Call(Func::Le, args) => (Func::Gt, args),
        View::Call(Func::Not, [inner]) if inner.is_boolean() => return inner.clone(),
        _ => (Func::Not, std::slice::from_ref(x)),
    };
    raw(opposite, args.to_vec())
}

fn relation(func: Func, a: &Expr, b: &Expr) -> Expr {
    let order = match poly::as_coef(&(a - b)) {
        _ if a == b => Some(Ordering::Equal),
        Some(Coef::Exact(difference, _)) => Some(difference.cmp(&0)),
        _ => None,
    };
    if let Some(known) = order.and_then(|order| eval::compares(func, order)) {
        return Expr::bool(known);
    }
    let swap = matches!(func, Func::Eq | Func::Ne)
        && match (poly::as_coef(a), poly::as_coef(b)) {
            (Some(_), None) => true,
            (None, Some(_)) => false,
            _ => a.cmp_form(b).is_gt(),
        };
    let (a, b) = if swap { (b, a) } else { (a, b) };
    raw(func, vec![a.clone(), b.clone()])
}
