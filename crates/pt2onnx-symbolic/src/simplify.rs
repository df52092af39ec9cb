//! Simplifies expressions by known facts.

use crate::apply::retain_unbeaten;
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
            if matches!(func, Func::Max | Func::Min) {
                let mut args = args.to_vec();
                retain_unbeaten(&mut args, |a, b| match func {
                    Func::Max => self.prove_ge(a, b),
                    _ => self.prove_ge(b, a),
                });
                return Expr::call(func, args);
            }
        }
        let value =
            if expr.is_integer() { Range::from(self.interval(&expr)).as_int() } else { None };
        value.map_or(expr, Expr::int)
    }
}
