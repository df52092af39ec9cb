//! Known facts about symbols and expressions (ranges, equalities, divisibility), and the ranges of
//! expressions that follow from them.

use std::collections::BTreeMap;

use crate::expr::{Expr, Symbol, View};
use crate::func::Func;
use crate::memo::Memo;
use crate::number;
use crate::poly::{self, Coef};
use crate::range::{Interval, Range, ceil_div, floor_div};
use rustc_hash::FxHashMap;

/// Facts about symbols and expressions, all true at the same time.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    symbols: BTreeMap<Symbol, Range>,
    /// Ranges of expressions that are not single symbols. The expressions are in normal form
    /// without constant term.
    derived: FxHashMap<Expr, Range>,
    /// Symbols that equal an expression of other symbols. No value contains a key.
    solved: BTreeMap<Symbol, Expr>,
    /// Expressions that are 0 and could not be solved for a symbol, in normal form.
    zeros: Vec<Expr>,
    /// Symbols that are `factor * something + offset`.
    pub(crate) multiples: BTreeMap<Symbol, (i64, Expr)>,
    /// Cached results of simplification and proof.
    pub(crate) simplified: Memo<Expr, Expr>,
    pub(crate) proved: Memo<(Expr, i64), bool>,
}

impl Constraints {
    /// No facts.
    pub fn new() -> Constraints {
        Constraints::default()
    }

    /// Clears the cache: a new fact may prove more.
    fn forget(&mut self) {
        self.simplified.forget();
        self.proved.forget();
    }

    /// Adds the fact that `expr` is in `range`. If `expr` is linear in a single symbol, such as
    /// PyTorch's derived `2*s77`, the range of the symbol becomes narrower.
    pub fn constrain(&mut self, expr: &Expr, range: Range) {
        self.forget();
        let (base, range) = self.without_constant(expr, range);
        if base.is_static() {
            return;
        }
        let mut symbols = base.symbols().into_iter();
        if let (Some(symbol), None) = (symbols.next(), symbols.next())
            && let Some((slope, rest)) = base.solve_linear(&symbol)
            && rest == Expr::ZERO
        {
            let narrowed = divided(range, slope);
            let held = self.symbols.entry(symbol).or_default();
            *held = held.intersect(&narrowed);
            return;
        }
        let held = self.derived.entry(base).or_default();
        *held = held.intersect(&range);
    }

    /// Puts `expr` in normal form, removes its constant term and the sign of its leading term, and
    /// changes the range to match.
    fn without_constant(&self, expr: &Expr, range: Range) -> (Expr, Range) {
        let expr = self.resolve(expr).normalized();
        let (base, constant) = split_constant(&expr);
        let moved = Interval::from(range).add(Interval::new(-constant, -constant));
        let negative = poly::to_terms(&base).first().is_some_and(|term| term.coef.is_negative());
        if negative { (-base, moved.neg().into()) } else { (base, moved.into()) }
    }

    /// Adds the fact that `condition` is true. It may be a comparison, an equality, a divisibility
    /// (`Eq(Mod(x, k), 0)`), or a conjunction of these. Other conditions are ignored.
    pub fn assume(&mut self, condition: &Expr) {
        use Func::*;
        match condition.view() {
            View::Call(And, args) => args.iter().for_each(|arg| self.assume(arg)),
            View::Call(Not, [x]) => {
                if let View::Call(Or, args) = x.view() {
                    for arg in args {
                        self.assume(&Expr::call(Not, vec![arg.clone()]));
                    }
                }
            }
            View::Call(Eq, [a, b]) => self.equate(a, b),
            View::Call(Ne, [a, b]) => {
                let difference = a - b;
                let range = self.range_of(&difference);
                if range.min == Some(0) {
                    self.constrain(&difference, Range::at_least(1));
                }
                if range.max == Some(0) {
                    self.constrain(&difference, Range::at_most(-1));
                }
            }
            View::Call(func @ (Lt | Le | Gt | Ge), [a, b]) => {
                let (small, large) = if matches!(func, Lt | Le) { (a, b) } else { (b, a) };
                let difference = large - small;
                // If an integer is less than another, it is at least 1 less.
                let strict = matches!(func, Lt | Gt) && difference.is_integer();
                self.constrain(&difference, Range::at_least(strict.into()));
            }
            _ => {}
        }
    }

    /// Adds the fact that two expressions are equal.
    pub fn equate(&mut self, a: &Expr, b: &Expr) {
        self.forget();
        for (remainder, zero) in [(a, b), (b, a)] {
            if let (View::Call(Func::Mod | Func::PythonMod, [x, k]), Some(0)) =
                (remainder.view(), zero.as_int())
                && let Some(k) = k.as_int()
            {
                self.assume_divisible(x, k);
            }
        }
        let difference = self.resolve(&(a - b)).normalized();
        if difference.is_static() {
            return;
        }
        // The last symbol by name, so that sizes of later inputs are expressed in those of earlier
        // inputs.
        let solution = difference.symbols().into_iter().rev().find_map(|symbol| {
            let (slope, rest) = difference.solve_linear(&symbol)?;
            match slope {
                1 => Some((symbol, -rest)),
                -1 => Some((symbol, rest)),
                _ => None,
            }
        });
        let Some((symbol, value)) = solution else {
            self.constrain(&difference, Range::exactly(0));
            self.zeros.push(primitive(&difference));
            return;
        };
        let replace =
            |expr: &Expr| expr.substitute(&|name| (*name == *symbol).then(|| value.clone()));
        for held in self.solved.values_mut() {
            *held = replace(held);
        }
        for zero in &mut self.zeros {
            *zero = primitive(&replace(zero).normalized());
        }
        let range = self.symbols.remove(&symbol);
        let multiple = self.multiples.remove(&symbol);
        let derived = std::mem::take(&mut self.derived);
        self.solved.insert(symbol, value.clone());
        if let Some(range) = range {
            self.constrain(&value, range);
        }
        for (expr, range) in derived {
            self.constrain(&expr, range);
        }
        if let Some((factor, offset)) = multiple {
            self.assume_divisible(&(value - offset), factor);
        }
    }

    /// Adds the fact that `expr` is a multiple of `factor`.
    pub fn assume_divisible(&mut self, expr: &Expr, factor: i64) {
        self.forget();
        let expr = self.resolve(expr);
        for symbol in expr.symbols().into_iter().rev() {
            if self.multiples.contains_key(&symbol) {
                continue;
            }
            if let Some((slope @ (1 | -1), rest)) = expr.solve_linear(&symbol)
                // A symbol in the offset could in turn depend on this symbol.
                && rest.is_static()
            {
                self.multiples.insert(symbol, (factor, rest * -slope));
                return;
            }
        }
    }

    /// The range of a symbol; all integers if nothing is known.
    pub fn range(&self, symbol: &str) -> Range {
        self.symbols.get(symbol).copied().unwrap_or_default()
    }

    /// The symbols with a known range, sorted by name.
    pub fn ranges(&self) -> impl Iterator<Item = (&Symbol, Range)> {
        self.symbols.iter().map(|(name, range)| (name, *range))
    }

    /// Whether some fact allows no value: no sizes fulfil all facts. False where that is not seen.
    pub fn is_contradictory(&self) -> bool {
        self.symbols.values().chain(self.derived.values()).any(Range::is_empty)
    }

    /// Expressions that are 0.
    pub(crate) fn zeros(&self) -> &[Expr] {
        &self.zeros
    }

    /// Replaces each symbol that is known to equal an expression of other symbols.
    pub fn resolve(&self, expr: &Expr) -> Expr {
        if self.solved.is_empty() {
            return expr.clone();
        }
        expr.substitute(&|name| self.solved.get(name).cloned())
    }

    /// A range that contains all values of the expression, by interval arithmetic. It may be wider
    /// than necessary.
    pub fn range_of(&self, expr: &Expr) -> Range {
        let expr = self.resolve(expr);
        let bounds = self.interval(&expr);
        // The given ranges are stored by normal form.
        let normal = self.interval(&expr.normalized());
        bounds.intersect(normal).into()
    }

    /// The range that was given for an expression that is not a single symbol.
    fn given(&self, expr: &Expr) -> Interval {
        if self.derived.is_empty() {
            return Interval::ANY;
        }
        let (base, constant) = split_constant(expr);
        let held = match self.derived.get(&base) {
            Some(range) => Interval::from(*range),
            None => match self.derived.get(&-base) {
                Some(range) => Interval::from(*range).neg(),
                None => return Interval::ANY,
            },
        };
        held.add(Interval::new(constant, constant))
    }

    pub(crate) fn interval(&self, expr: &Expr) -> Interval {
        let computed = match expr.view() {
            View::Int(value) => return Interval::new(value.into(), value.into()),
            View::Rational(num, den) => return Interval::new(1, 1).scale(num, den),
            View::Float(value) => return Interval::enclosing(value),
            View::Symbol(name) => return self.range(name).into(),
            View::Add(args) => {
                args.iter().map(|arg| self.interval(arg)).fold(Interval::new(0, 0), Interval::add)
            }
            View::Mul(args) => {
                let (number, factors) = match args.split_first() {
                    Some((first, rest))
                        if let Some(Coef::Exact(num, den)) = poly::as_coef(first) =>
                    {
                        ((num, den), rest)
                    }
                    _ => ((1, 1), args),
                };
                factors
                    .iter()
                    .map(|arg| self.interval(arg))
                    .fold(Interval::new(1, 1), Interval::mul)
                    .scale(number.0, number.1)
            }
            View::Pow(base, exponent) => match exponent.as_int().map(u32::try_from) {
                Some(Ok(exponent)) => self.interval(base).pow(exponent),
                _ => Interval::ANY,
            },
            View::Call(func, args) => self.call_interval(func, args),
        };
        if expr.is_integer() { computed.intersect(self.given(expr)) } else { computed.as_double() }
    }

    fn call_interval(&self, func: Func, args: &[Expr]) -> Interval {
        use Func::*;
        let of = |expr: &Expr| self.interval(expr);
        match (func, args) {
            _ if func.is_boolean() => Interval::BOOL,
            (IsNonOverlappingAndDenseIndicator, _) => Interval::BOOL,
            (FloorDiv | CleanDiv, [a, b]) => of(a).div(of(b), true),
            (CeilDiv, [a, b]) => of(a).neg().div(of(b), true).neg(),
            (IntTrueDiv | FloatTrueDiv, [a, b]) => of(a).div(of(b), false),
            (Mod | PythonMod, [a, b]) => of(a).modulo(of(b)),
            (ModularIndexing, [a, b, c]) => of(a).div(of(b), true).modulo(of(c)),
            // The bounds are integers, so the rounded value is within them.
            (
                CeilToInt | FloorToInt | TruncToInt | RoundToInt | TruncToFloat | ToFloat
                | ToSingle | Ceiling | Floor | Identity,
                [x],
            ) => of(x),
            (Max, args) => args.iter().map(of).reduce(Interval::max).unwrap_or(Interval::ANY),
            (Min, args) => {
                let least = args.iter().map(|arg| of(arg).neg()).reduce(Interval::max);
                least.map_or(Interval::ANY, Interval::neg)
            }
            (Abs, [x]) => of(x).abs(),
            (Where, [_, yes, no]) => of(yes).union(of(no)),
            (PowByNatural, [base, exponent]) => power(of(base), of(exponent)),
            (BitwiseAnd, _) => {
                let natural = args.iter().map(of).filter(|x| x.lo >= Some(0));
                let least = natural.reduce(Interval::intersect);
                least.map_or(Interval::ANY, |x| Interval { lo: Some(0), hi: x.hi })
            }
            (Sqrt, [x]) => match of(x) {
                Interval { lo: Some(1..), hi } => Interval { lo: Some(1), hi },
                Interval { lo: Some(0), hi } => {
                    Interval { lo: Some(0), hi: hi.map(|hi| hi.max(1)) }
                }
                _ => Interval::ANY,
            },
            _ => Interval::ANY,
        }
    }
}

/// Divides the expression by the greatest common divisor of its coefficients and makes the leading
/// coefficient positive. The result is 0 exactly where `expr` is 0.
pub(crate) fn primitive(expr: &Expr) -> Expr {
    let terms = poly::to_terms(expr);
    let mut common = 0;
    for term in &terms {
        let Some(coef) = term.coef.as_int() else {
            return expr.clone();
        };
        common = number::gcd(common, coef.unsigned_abs().into());
    }
    let negative = terms.first().is_some_and(|term| term.coef.is_negative());
    let scale = i128::try_from(common)
        .ok()
        .and_then(|common| Coef::ratio(if negative { -1 } else { 1 }, common).map(Coef::to_expr));
    scale.map_or_else(|| expr.clone(), |scale| expr * scale)
}

/// The range of a power. If the base is at least 1, the power grows with both operands.
fn power(base: Interval, exponent: Interval) -> Interval {
    let (Some(1..), Some(0..)) = (base.lo, exponent.lo) else {
        return Interval::ANY;
    };
    let bound = |base: Option<i128>, exponent: Option<i128>| {
        base?.checked_pow(u32::try_from(exponent?).ok()?)
    };
    Interval { lo: bound(base.lo, exponent.lo).or(Some(1)), hi: bound(base.hi, exponent.hi) }
}

/// The expression without its integer constant term, and that term.
fn split_constant(expr: &Expr) -> (Expr, i128) {
    match expr.view() {
        View::Int(value) => (Expr::ZERO, value.into()),
        View::Add([rest @ .., last]) if let Some(constant) = last.as_int() => {
            (Expr::sum(rest), constant.into())
        }
        _ => (expr.clone(), 0),
    }
}

/// The integers `x` for which `slope * x` lies in `range`.
fn divided(Range { min, max }: Range, slope: i64) -> Range {
    let (low, high) = if slope > 0 { (min, max) } else { (max, min) };
    Interval {
        lo: low.and_then(|bound| ceil_div(bound.into(), slope.into())),
        hi: high.and_then(|bound| floor_div(bound.into(), slope.into())),
    }
    .into()
}
