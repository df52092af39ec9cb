//! Facts about sizes on a path of a decision tree.

use pt2onnx_symbolic::{Constraints, Expr, Func, Symbol, View};
use std::{collections::BTreeSet, rc::Rc};

/// Sizes are tried one by one if there are at most so many combinations.
const MAX_POINTS: usize = 1 << 13;

/// Facts about sizes, all true at the same time.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    known: Constraints,
    /// Alternatives: at least one of each list holds.
    open: Vec<Vec<Expr>>,
    /// Whether no sizes fulfil the facts.
    impossible: bool,
    /// All sizes that fulfil the facts, if they are few.
    points: Option<Points>,
}

#[derive(Clone, Debug)]
struct Points {
    symbols: Rc<[Symbol]>,
    values: Vec<Rc<[i64]>>,
}

impl Facts {
    /// The facts of constraints, for conditions on these sizes.
    pub fn new(known: &Constraints, symbols: BTreeSet<Symbol>) -> Self {
        let points = Points::new(known, symbols);
        Self { known: known.clone(), open: Vec::new(), impossible: false, points }
    }

    /// The facts of constraints.
    pub fn all(known: &Constraints) -> Self {
        Self { known: known.clone(), open: Vec::new(), impossible: false, points: None }
    }

    /// These facts, and a condition.
    pub fn with(&self, condition: &Expr) -> Self {
        let mut facts = self.clone();
        facts.assume(condition);
        if let Some(points) = &mut facts.points {
            let symbols = Rc::clone(&points.symbols);
            points.values.retain(|point| at(&symbols, point, condition) != Some(0));
        }
        facts.propagate();
        facts
    }

    /// The facts without alternatives.
    pub fn constraints(&self) -> &Constraints {
        &self.known
    }

    /// Whether no sizes fulfil the facts; false where that is not seen.
    pub fn is_impossible(&self) -> bool {
        let none = self.points.as_ref().is_some_and(|points| points.values.is_empty());
        self.impossible || none || self.known.is_contradictory()
    }

    /// The truth value of a condition, if it is the same for all sizes that fulfil the facts.
    pub fn decide(&self, condition: &Expr) -> Option<bool> {
        if let Some(known) = self.known.decide(condition) {
            return Some(known);
        }
        let points = self.points.as_ref()?;
        let mut values = points.values.iter().map(|p| at(&points.symbols, p, condition));
        let first = values.next()??;
        values.all(|value| value == Some(first)).then_some(first != 0)
    }

    fn assume(&mut self, condition: &Expr) {
        match condition.view() {
            View::Call(Func::And, all) => all.iter().for_each(|one| self.assume(one)),
            View::Call(Func::Or, any) => self.open.push(any.to_vec()),
            View::Int(0) => self.impossible = true,
            _ => self.known.assume(condition),
        }
    }

    /// Leaves out alternatives that do not hold, until none is left out any more. The last one of
    /// several holds.
    fn propagate(&mut self) {
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for mut any in std::mem::take(&mut self.open) {
                let before = any.len();
                if any.iter().any(|one| self.known.decide(one) == Some(true)) {
                    continue;
                }
                any.retain(|one| self.known.decide(one) != Some(false));
                changed |= any.len() < before;
                match &any[..] {
                    [] => self.impossible = true,
                    [one] => {
                        let one = one.clone();
                        self.assume(&one);
                        changed = true;
                    }
                    _ => self.open.push(any),
                }
            }
        }
    }
}

impl Points {
    /// All values of symbols within their ranges, if they are few.
    fn new(known: &Constraints, symbols: BTreeSet<Symbol>) -> Option<Self> {
        let symbols: Rc<[Symbol]> = symbols.into_iter().collect();
        let mut values: Vec<Vec<i64>> = vec![Vec::new()];
        for symbol in symbols.iter() {
            let range = known.range(symbol);
            let (min, max) = (range.min?, range.max?);
            let count = usize::try_from(max.checked_sub(min)?.checked_add(1)?).ok()?;
            if count.checked_mul(values.len())? > MAX_POINTS {
                return None;
            }
            let each = |point: Vec<i64>| (min..=max).map(move |v| [&point[..], &[v]].concat());
            values = values.into_iter().flat_map(each).collect();
        }
        Some(Self { symbols, values: values.into_iter().map(Rc::from).collect() })
    }
}

/// The value of a condition for these sizes; `None` if it has none.
fn at(symbols: &[Symbol], point: &[i64], condition: &Expr) -> Option<i64> {
    condition.eval(&|name| {
        let place = symbols.iter().position(|symbol| **symbol == *name)?;
        point.get(place).copied()
    })
}

/// The opposite of a condition, with connectives outside.
pub(super) fn negated(condition: &Expr) -> Expr {
    match condition.view() {
        View::Call(Func::And, all) => Expr::call(Func::Or, all.iter().map(negated).collect()),
        View::Call(Func::Or, any) => Expr::call(Func::And, any.iter().map(negated).collect()),
        _ => Expr::call(Func::Not, vec![condition.clone()]),
    }
}
