//! Simplifies expressions by known facts.

use crate::apply::MAX_COMPARED;
use crate::constraints::Constraints;
use crate::expr::{Expr, View};
use crate::func::Func;
use crate::range::Range;

impl Constraints {
    /// A simpler expression that is equal under the known facts. Known equalities are substituted,
    /// and subexpressions that can have only one value become constants.
    pub fn simplify(&self, expr: &Expr) -> Expr {
        self.settle(&self.resolve(expr))
    }

    fn settle(&self, expr: &Expr) -> Expr {
        // Symbols and numbers are quicker than what is remembered.
        if expr.is_static() || expr.as_symbol().is_some() {
            return self.settled(expr);
        }
        self.simplified.get(expr, || self.settled(expr))
    }

    fn settled(&self, expr: &Expr) -> Expr {
        let expr = expr.map_children(&mut |child| self.settle(child));
        if let View::Call(func, args) = expr.view() {
            if func.is_boolean()
                && let Some(known) = self.decide(&expr)
            {
                return Expr::bool(known);
            }
            if matches!(func, Func::Max | Func::Min) && args.len() <= MAX_COMPARED {
                return Expr::call(func, self.undominated(func, args.to_vec()));
            }
        }
        let value =
            if expr.is_integer() { Range::from(self.interval(&expr)).as_int() } else { None };
        value.map_or(expr, Expr::int)
    }

    /// The arguments of a maximum or minimum without those that cannot decide it.
    fn undominated(&self, func: Func, mut args: Vec<Expr>) -> Vec<Expr> {
        let beats = |a: &Expr, b: &Expr| match func {
            Func::Max => self.prove_ge(a, b),
            _ => self.prove_ge(b, a),
        };
        let mut index = 0;
        while index < args.len() {
            let others = args.iter().enumerate().filter(|(other, _)| *other != index);
            let beaten = others.map(|(_, other)| other).any(|other| beats(other, &args[index]));
            if beaten {
                args.remove(index);
            } else {
                index += 1;
            }
        }
        args
    }
}
