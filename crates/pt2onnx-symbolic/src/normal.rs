//! The normal form for proofs, which makes more equal expressions identical than the canonical form
//! does; and solving for a symbol.

use crate::apply::split_whole;
use crate::expr::{Expr, View};
use crate::func::Func;
use crate::number;
use crate::poly::{self, Coef, Term};

impl Expr {
    /// The normal form for proofs. It has the same value as this expression wherever this
    /// expression has one. More equal expressions have the same normal form than are `==`, but its
    /// text is not what PyTorch prints.
    ///
    /// Remainders and rounded quotients of integers become floor divisions. `Min` and `Abs` become
    /// `Max`. Multiples of the divisor are moved out of a floor division (`((s0 - 1)//2) + 1`
    /// becomes `(s0 + 1)//2`).
    pub fn normalized(&self) -> Expr {
        let expr = self.map_children(&mut Expr::normalized);
        let View::Call(func, args) = expr.view() else {
            return expr;
        };
        use Func::*;
        match (func, args) {
            (FloorDiv | CleanDiv, [a, b]) => floor_div(a, b),
            (Mod | PythonMod, [a, b]) => a - b * floor_div(a, b),
            (ModularIndexing, [a, b, c]) => {
                let quotient = floor_div(a, b);
                &quotient - c * floor_div(&quotient, c)
            }
            (CeilToInt, [x]) if let View::Call(IntTrueDiv, [a, b]) = x.view() => -floor_div(&-a, b),
            (FloorToInt, [x]) if let View::Call(IntTrueDiv, [a, b]) = x.view() => floor_div(a, b),
            (Min, _) => -Expr::call(Max, args.iter().map(|arg| -arg).collect()),
            (Abs, [x]) => Expr::max(x, &-x),
            _ => expr,
        }
    }

    /// Returns `(a, b)` so that this expression is `a * symbol + b`, where `a` is not 0 and `b`
    /// does not contain the symbol. `None` if there are none.
    pub fn solve_linear(&self, symbol: &str) -> Option<(i64, Expr)> {
        let mut slope = 0;
        let mut rest = Vec::new();
        for term in poly::to_terms(self) {
            match term.mono.as_slice() {
                [(atom, 1)] if atom.as_symbol() == Some(symbol) && slope == 0 => {
                    slope = term.coef.as_int()?;
                }
                mono if mono.iter().any(|(atom, _)| atom.contains_symbol(symbol)) => return None,
                _ => rest.push(term),
            }
        }
        (slope != 0).then(|| (slope, poly::from_terms(rest)))
    }
}

/// `a // b` in normal form. The operands must be in normal form.
fn floor_div(a: &Expr, b: &Expr) -> Expr {
    let plain = |a: &Expr| a.floor_div(b);
    let Some(divisor @ 2..) = b.as_int() else {
        return match split_whole(a, b) {
            Some((whole, rest)) if a.is_integer() => whole + plain(&rest),
            _ => plain(a),
        };
    };
    if !a.is_integer() {
        return plain(a);
    }
    let (mut whole, mut rest) = (Vec::new(), Vec::new());
    let mut common = divisor.unsigned_abs();
    for term in poly::to_terms(a) {
        let Some(coef) = term.coef.as_int() else {
            return plain(a);
        };
        let part = |coef: i64, out: &mut Vec<Term>| {
            if coef != 0 {
                out.push(Term { coef: Coef::Exact(coef, 1), mono: term.mono.clone() });
            }
        };
        part(coef.div_euclid(divisor), &mut whole);
        let left = coef.rem_euclid(divisor);
        part(left, &mut rest);
        if !term.mono.is_empty() {
            // Both are at most i64::MAX, and so is their common divisor.
            common = number::gcd(common.into(), left.unsigned_abs().into()) as u64;
        }
    }
    // The constant is rounded down to a multiple of the common factor of the other terms: the rest
    // never changes the quotient.
    let mut constants = rest.iter_mut().filter(|term| term.mono.is_empty());
    if let (Some(term), None) = (constants.next(), constants.next())
        && let Coef::Exact(constant, 1) = term.coef
    {
        let constant = constant.unsigned_abs() / common * common;
        term.coef = Coef::Exact(constant as i64, 1);
    }
    rest.retain(|term| term.coef != Coef::Exact(0, 1));
    let whole = poly::from_terms(poly::collect(whole));
    let rest = poly::collect(rest);
    match unnest(&rest, divisor) {
        Some(flat) => whole + flat,
        None => whole + plain(&poly::from_terms(rest)),
    }
}

/// Rewrites `(x // m + t) // k` to `(x + m*t) // (m*k)` if exactly one term is such a quotient.
fn unnest(terms: &[Term], k: i64) -> Option<Expr> {
    let inner = |term: &Term| match term.mono.as_slice() {
        [(atom, 1)] if term.coef == Coef::ONE => match atom.view() {
            View::Call(Func::FloorDiv, [x, m]) => Some((x.clone(), m.as_int().filter(|m| *m > 0)?)),
            _ => None,
        },
        _ => None,
    };
    let mut found =
        terms.iter().enumerate().filter_map(|(index, term)| Some((index, inner(term)?)));
    let (index, (x, m)) = found.next()?;
    if found.next().is_some() {
        return None;
    }
    let others =
        terms.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, term)| term.clone());
    let others = poly::from_terms(others.collect());
    let divisor = Expr::int(m.checked_mul(k)?);
    Some(floor_div(&(x + m * others), &divisor))
}
