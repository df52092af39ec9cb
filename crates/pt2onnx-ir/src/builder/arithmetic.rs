//! The arithmetic of expressions: emits the nodes that compute an expression from its parts.

use super::{Builder, Diagnostic};
use crate::{Value, attrs};
use pt2onnx_symbolic::{Expr, Func, View};
use pt2onnx_tensor::DType;

/// The form in which an expression and its parts are computed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// 0-d.
    Scalar,
    /// A vector of one element.
    Vector,
}

impl Builder<'_> {
    /// Emits the arithmetic of an expression that cannot be read.
    pub(super) fn compute(&self, e: &Expr, form: Form) -> Value {
        Arithmetic { cx: self, form }.compute(e)
    }
}

/// Computes expressions in one form.
struct Arithmetic<'a, 'm> {
    cx: &'a Builder<'m>,
    form: Form,
}

impl Arithmetic<'_, '_> {
    fn compute(&self, e: &Expr) -> Value {
        match e.view() {
            View::Int(i) => self.cx.ints(&[i]),
            View::Rational(numerator, denominator) => {
                self.fraction(numerator as f64 / denominator as f64)
            }
            View::Float(f) => self.fraction(f),
            View::Symbol(name) => self.solve(e, name),
            View::Add(terms) => self.total(terms),
            View::Mul(factors) => self.chain(factors, |a, b| self.cx.mul(a, b)),
            View::Pow(base, exponent) => match exponent.as_int() {
                Some(n @ 2..=4) => {
                    let base = self.element(base);
                    (1..n).fold(base, |power, _| self.cx.mul(power, base))
                }
                // ONNX's power of integers is an integer.
                Some(..0) => self.cx.pow(self.double(base), self.double(exponent)),
                _ => self.arithmetic(base, exponent, |a, b| self.cx.pow(a, b)),
            },
            View::Call(func, args) => self.call(func, args),
        }
    }

    /// The value of an expression in the form of the results.
    fn element(&self, e: &Expr) -> Value {
        match self.form {
            Form::Scalar => self.cx.number_of(e, true),
            Form::Vector => self.cx.element(e),
        }
    }

    /// A known float in the form of the results.
    fn fraction(&self, f: f64) -> Value {
        match self.form {
            Form::Scalar => self.cx.scalar(f, DType::F64),
            Form::Vector => self.cx.vector(&[f]),
        }
    }

    /// Computes a symbol from the first bound expression that is linear in it.
    fn solve(&self, symbol: &Expr, name: &str) -> Value {
        let found = {
            let s = self.cx.state.borrow();
            let sizes = &s.sizes;
            let mut candidates: Vec<_> = sizes
                .readable()
                .filter(|e| {
                    e.symbols()
                        .iter()
                        .all(|o| &**o == name || sizes.source(&Expr::symbol(o)).is_some())
                })
                .filter_map(|e| Some((e.clone(), e.solve_linear(name)?)))
                .collect();
            candidates.sort_by(|a, b| a.0.cmp_form(&b.0));
            candidates.into_iter().next()
        };
        match found {
            Some((e, (a, b))) if a != 0 => {
                let rest = match b.as_int() {
                    Some(0) => self.element(&e),
                    _ => self.arithmetic(&e, &b, |x, b| self.cx.sub(x, b)),
                };
                self.cx.div(rest, a)
            }
            _ if Expr::is_opaque(name) => {
                self.cx.diagnose(Diagnostic::LargeSize);
                self.cx.ints(&[1])
            }
            _ => {
                self.cx.report(format!("the size {symbol} cannot be computed from the inputs"));
                self.cx.ints(&[1])
            }
        }
    }

    /// A sum; terms with a negative coefficient are subtracted.
    fn total(&self, terms: &[Expr]) -> Value {
        let negative = |t: &Expr| match t.view() {
            View::Int(i) => i < 0,
            View::Mul(factors) => factors[0].as_int().is_some_and(|c| c < 0),
            _ => false,
        };
        let mut ordered: Vec<(bool, Expr)> = terms
            .iter()
            .map(|t| if negative(t) { (true, -t) } else { (false, t.clone()) })
            .collect();
        ordered.sort_by_key(|(negative, _)| *negative);
        let mut terms = ordered.into_iter();
        let first = terms.next().map(
            |(negative, t)| {
                if negative { self.element(&-t) } else { self.element(&t) }
            },
        );
        let mut sum = first.unwrap_or_else(|| self.cx.ints(&[0]));
        for (negative, term) in terms {
            let (a, b) = self.common(sum, self.element(&term));
            sum = if negative { self.cx.sub(a, b) } else { self.cx.add(a, b) };
        }
        sum
    }

    /// Applies an operation to the values of all arguments, from the left.
    fn chain(&self, args: &[Expr], op: impl Fn(Value, Value) -> Value) -> Value {
        let mut values = args.iter().map(|a| self.element(a));
        let first = values.next().unwrap_or_else(|| self.cx.ints(&[1]));
        values.fold(first, |a, b| {
            let (a, b) = self.common(a, b);
            op(a, b)
        })
    }

    /// Casts both to double if one is a float, else to int64.
    fn common(&self, a: Value, b: Value) -> (Value, Value) {
        let double = [a, b].iter().any(|&v| self.cx.dtype(v).is_float());
        let dtype = if double { DType::F64 } else { DType::I64 };
        (self.cx.cast(a, dtype), self.cx.cast(b, dtype))
    }

    fn arithmetic(&self, a: &Expr, b: &Expr, op: impl Fn(Value, Value) -> Value) -> Value {
        let (a, b) = self.common(self.element(a), self.element(b));
        op(a, b)
    }

    fn double(&self, e: &Expr) -> Value {
        self.cx.cast(self.element(e), DType::F64)
    }

    fn call(&self, func: Func, args: &[Expr]) -> Value {
        use Func::*;
        let int = |v: Value| self.cx.cast(v, DType::I64);
        match (func, args) {
            (Max, _) => self.chain(args, |a, b| self.cx.maximum(a, b)),
            (Min, _) => self.chain(args, |a, b| self.cx.minimum(a, b)),
            (FloorDiv | CleanDiv, [a, b]) => self.floor_div(a, b),
            // -(-a // b)
            (CeilDiv, [a, b]) => self.cx.mul(self.floor_div(&-a, b), -1),
            (Mod | PythonMod, [a, b]) => {
                self.arithmetic(a, b, |a, b| self.cx.mod_(a, b, attrs::Mod::default()))
            }
            (ModularIndexing, [a, b, m]) => self
                .arithmetic(&a.floor_div(b), m, |a, b| self.cx.mod_(a, b, attrs::Mod::default())),
            (IntTrueDiv | FloatTrueDiv, [a, b]) => self.cx.div(self.double(a), self.double(b)),
            (CeilToInt | Ceiling, [a]) => int(self.cx.ceil(self.double(a))),
            (FloorToInt | Floor, [a]) => int(self.cx.floor(self.double(a))),
            (TruncToInt, [a]) => int(self.double(a)),
            (TruncToFloat, [a]) => self.cx.cast(int(self.double(a)), DType::F64),
            (RoundToInt, [a]) => int(self.cx.round(self.double(a))),
            (ToFloat, [a]) => self.double(a),
            (ToSingle, [a]) => self.cx.cast(self.cx.cast(self.element(a), DType::F32), DType::F64),
            (Abs, [a]) => self.cx.abs(self.element(a)),
            (PowByNatural | FloatPow, [a, b]) => self.arithmetic(a, b, |a, b| self.cx.pow(a, b)),
            (LShift, [a, b]) => self.cx.mul(self.element(a), self.element(&power_of_two(b))),
            (RShift, [a, b]) => self.floor_div(a, &power_of_two(b)),
            (Sqrt, [a]) => self.cx.sqrt(self.double(a)),
            (Exp, [a]) => self.cx.exp(self.double(a)),
            (Log, [a]) => self.cx.log(self.double(a)),
            (Log2, [a]) => self.cx.div(self.cx.log(self.double(a)), std::f64::consts::LN_2),
            (Sin, [a]) => self.cx.sin(self.double(a)),
            (Cos, [a]) => self.cx.cos(self.double(a)),
            (Tanh, [a]) => self.cx.tanh(self.double(a)),
            (Eq, [a, b]) => self.arithmetic(a, b, |a, b| self.cx.equal(a, b)),
            (Ne, [a, b]) => self.cx.not(self.arithmetic(a, b, |a, b| self.cx.equal(a, b))),
            (Lt, [a, b]) => self.arithmetic(a, b, |a, b| self.cx.less(a, b)),
            (Le, [a, b]) => self.arithmetic(a, b, |a, b| self.cx.less_or_equal(a, b)),
            (Gt, [a, b]) => self.arithmetic(a, b, |a, b| self.cx.greater(a, b)),
            (Ge, [a, b]) => self.arithmetic(a, b, |a, b| self.cx.greater_or_equal(a, b)),
            (And, [first, rest @ ..]) => {
                rest.iter().fold(self.truth(first), |all, e| self.cx.and(all, self.truth(e)))
            }
            (Or, [first, rest @ ..]) => {
                rest.iter().fold(self.truth(first), |any, e| self.cx.or(any, self.truth(e)))
            }
            (Not, [a]) => self.cx.not(self.truth(a)),
            (Where, [c, a, b]) => {
                let (a, b) = self.common(self.element(a), self.element(b));
                self.cx.select(self.truth(c), a, b)
            }
            _ => {
                let shown = Expr::call(func, args.to_vec());
                self.cx.report(format!("sizes of the form {shown} are not supported"));
                self.cx.ints(&[1])
            }
        }
    }

    fn truth(&self, e: &Expr) -> Value {
        self.cx.cast(self.element(e), DType::Bool)
    }

    /// `floor(a / b)`. ONNX's `Div` of integers rounds towards zero, so `a` is made a multiple of
    /// `b` first, unless neither can be negative.
    fn floor_div(&self, a: &Expr, b: &Expr) -> Value {
        let nonnegative = {
            let constraints = self.cx.constraints();
            let zero = Expr::int(0);
            constraints.prove_ge(a, &zero) && constraints.prove_ge(b, &zero)
        };
        self.arithmetic(a, b, |a, b| {
            let whole = if nonnegative {
                a
            } else {
                self.cx.sub(a, self.cx.mod_(a, b, attrs::Mod::default()))
            };
            self.cx.div(whole, b)
        })
    }
}

/// `2 ** e`.
fn power_of_two(e: &Expr) -> Expr {
    Expr::call(Func::PowByNatural, vec![Expr::int(2), e.clone()])
}
