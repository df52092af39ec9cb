//! Proofs from known facts: comparisons, equality. A statement that is not proved is
//! unknown, not false.

use std::cell::Cell;

use crate::constraints::{Constraints, primitive};
use crate::expr::{Expr, View};
use crate::func::Func;
use crate::number;
use crate::poly::{self, Term};
use crate::range::Interval;

/// How many function applications one proof may split.
const BUDGET: u32 = 64;

/// Largest number of terms of a sum that a proof splits.
const MAX_SUM: usize = 32;

impl Constraints {
    /// Whether `a >= b` is proved.
    pub fn prove_ge(&self, a: &Expr, b: &Expr) -> bool {
        self.proves(&self.resolve(&(a - b)).normalized(), 0)
    }

    /// Whether `a > b` is proved. Always false unless `a - b` is an integer.
    pub fn prove_gt(&self, a: &Expr, b: &Expr) -> bool {
        let difference = self.resolve(&(a - b)).normalized();
        difference.is_integer() && self.proves(&difference, 1)
    }

    /// Whether `a <= b` is proved.
    pub fn prove_le(&self, a: &Expr, b: &Expr) -> bool {
        self.prove_ge(b, a)
    }

    /// Whether `a < b` is proved. Always false unless `b - a` is an integer.
    pub fn prove_lt(&self, a: &Expr, b: &Expr) -> bool {
        self.prove_gt(b, a)
    }

    /// `Some(true)` if the expressions are proved equal, `Some(false)` if they are proved different
    /// for all values.
    pub fn prove_eq(&self, a: &Expr, b: &Expr) -> Option<bool> {
        if a == b {
            return Some(true);
        }
        let difference = self.resolve(&(a - b)).normalized();
        if let Some(value) = difference.as_int() {
            return Some(value == 0);
        }
        let reduced = primitive(&difference);
        let parted = self.part(&difference).normalized();
        if parted == Expr::ZERO || self.zeros().contains(&reduced) {
            return Some(true);
        }
        if !difference.is_integer() {
            return None;
        }
        let above = self.proves(&difference, 0);
        let below = self.proves(&-&difference, 0);
        if above && below {
            return Some(true);
        }
        if above && self.proves(&difference, 1)
            || below && self.proves(&-&difference, 1)
            || never_zero(&parted)
        {
            return Some(false);
        }
        None
    }

    /// The truth value of a condition, if it is proved to be the same for all values.
    pub fn decide(&self, condition: &Expr) -> Option<bool> {
        use Func::*;
        match condition.view() {
            View::Int(value) => Some(value != 0),
            View::Call(Not, [x]) => self.decide(x).map(|known| !known),
            View::Call(func @ (And | Or), args) => {
                let mut all_known = true;
                for arg in args {
                    match self.decide(arg) {
                        Some(known) if known == (func == Or) => return Some(known),
                        Some(_) => {}
                        None => all_known = false,
                    }
                }
                all_known.then_some(func == And)
            }
            View::Call(Eq, [a, b]) => self.prove_eq(a, b),
            View::Call(Ne, [a, b]) => self.prove_eq(a, b).map(|equal| !equal),
            View::Call(Ge, [a, b]) | View::Call(Le, [b, a]) => self.ordered(a, b),
            View::Call(Lt, [a, b]) | View::Call(Gt, [b, a]) => self.ordered(a, b).map(|ge| !ge),
            _ => None,
        }
    }

    /// Whether `a >= b`, if that is proved or disproved for all values.
    fn ordered(&self, a: &Expr, b: &Expr) -> Option<bool> {
        if self.prove_ge(a, b) {
            Some(true)
        } else if self.prove_gt(b, a) {
            Some(false)
        } else {
            None
        }
    }

    /// Replaces each symbol that is a known multiple by `factor * new symbol + offset`.
    fn part(&self, expr: &Expr) -> Expr {
        if self.multiples.is_empty() {
            return expr.clone();
        }
        expr.substitute(&|name| {
            let (factor, offset) = self.multiples.get(name)?;
            Some(*factor * Expr::symbol(&format!("{name}/{factor}")) + offset)
        })
    }

    /// Whether `expr >= goal` is proved. `expr` must be in normal form.
    fn proves(&self, expr: &Expr, goal: i64) -> bool {
        if self.interval(expr).lo.is_some_and(|lo| lo >= goal.into()) {
            return true;
        }
        self.proved.get(&(expr.clone(), goal), || self.at_least(expr, goal, &Cell::new(BUDGET)))
    }

    /// As [`Constraints::proves`], by other bounds and by splitting up to `budget` more functions.
    fn at_least(&self, expr: &Expr, goal: i64, budget: &Cell<u32>) -> bool {
        let reaches = |interval: Interval| interval.lo.is_some_and(|lo| lo >= goal.into());
        if reaches(self.interval(expr)) {
            return true;
        }
        let terms = poly::to_terms(expr);
        if terms.len() > MAX_SUM {
            return false;
        }
        if self.shifted(&terms).is_some_and(reaches) {
            return true;
        }
        terms.iter().any(|term| self.split(expr, term, goal, budget))
    }

    /// Bounds of the polynomial after each atom is replaced by a new symbol that starts at 0. These
    /// bounds can be tighter: `s0*s1 - s0` with `s1 >= 2` is `s0*(s1 - 2) + s0`.
    fn shifted(&self, terms: &[Term]) -> Option<Interval> {
        let mut from_zero = Constraints::new();
        let mut known: Vec<(Expr, Expr)> = Vec::new();
        let mut moved = Vec::with_capacity(terms.len());
        for term in terms {
            let mut product = poly::from_term(Term::constant(term.coef));
            for (atom, exponent) in &term.mono {
                let value = match known.iter().find(|(held, _)| held == atom) {
                    Some((_, value)) => value.clone(),
                    None => {
                        let Interval { lo, hi } = self.interval(atom);
                        let name = Expr::symbol(&format!("shifted{}", known.len()));
                        let (value, width) = match (lo, hi) {
                            (Some(lo), hi) => (
                                &name + i64::try_from(lo).ok()?,
                                hi.and_then(|hi| hi.checked_sub(lo)),
                            ),
                            (None, Some(hi)) => (i64::try_from(hi).ok()? - &name, None),
                            (None, None) => return None,
                        };
                        let hi = width.map(i64::try_from).and_then(Result::ok);
                        from_zero.constrain(&name, crate::Range::new(Some(0), hi));
                        known.push((atom.clone(), value.clone()));
                        value
                    }
                };
                product = product * value.pow(&Expr::int(*exponent));
            }
            moved.push(product);
        }
        Some(from_zero.interval(&Expr::sum(moved)))
    }

    /// Proves `expr >= goal` by splitting one function application. `term`, a multiple of it, is a
    /// term of `expr`.
    fn split(&self, expr: &Expr, term: &Term, goal: i64, budget: &Cell<u32>) -> bool {
        let (Some(coef), [(atom, 1)]) = (term.coef.as_int(), term.mono.as_slice()) else {
            return false;
        };
        let View::Call(func, args) = atom.view() else {
            return false;
        };
        let Some(left) = budget.get().checked_sub(1) else {
            return false;
        };
        budget.set(left);
        let with = |value: &Expr| expr - coef * atom + coef * value;
        let holds = |value: &Expr| self.at_least(&with(value).normalized(), goal, budget);
        match (func, args) {
            // At least as large as each argument, and equal to one of them.
            (Func::Max, _) if coef > 0 => args.iter().any(holds),
            (Func::Max, _) => args.iter().all(holds),
            (Func::Where, [_, yes, no]) => holds(yes) && holds(no),
            // k * (x // k) is between x - (k - 1) and x.
            (Func::FloorDiv, [x, k]) if let Some(k @ 1..) = k.as_int() => {
                let slack = if coef > 0 { k - 1 } else { 0 };
                let numerator = k * (expr - coef * atom) + coef * (x - slack);
                // An integer above goal - 1 is at least goal.
                let goal = goal.checked_sub(1).and_then(|goal| goal.checked_mul(k)?.checked_add(1));
                expr.is_integer()
                    && goal.is_some_and(|goal| self.at_least(&numerator.normalized(), goal, budget))
            }
            _ => false,
        }
    }
}

/// Whether all terms except the constant have a common factor that does not divide the constant.
fn never_zero(expr: &Expr) -> bool {
    let (mut common, mut constant) = (0u128, 0i128);
    for term in poly::to_terms(expr) {
        let Some(coef) = term.coef.as_int() else {
            return false;
        };
        if term.mono.is_empty() {
            // There are several if their sum does not fit in a coefficient.
            constant += i128::from(coef);
        } else if term.is_integer() {
            common = number::gcd(common, coef.unsigned_abs().into());
        } else {
            return false;
        }
    }
    common > 1 && constant.unsigned_abs() % common != 0
}
