//! Evaluation with Python's semantics: integers are exact, floats are doubles, booleans are 0 and
//! 1.

use std::cmp::Ordering;

use crate::expr::{Expr, View};
use crate::func::Func;
use crate::number::Number;
use crate::poly::Coef;
use crate::range::{ceil_div, floor_div};

use Number::{Exact, Float};

fn floor_mod(a: i128, b: i128) -> Option<i128> {
    let rest = a.checked_rem(b)?;
    Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
}

/// The integer that a rounding function returns for a number.
fn round(func: Func, value: Number) -> Option<Number> {
    use Func::*;
    let rounded = match value {
        Exact(num, den) => {
            let (down, rest) = (floor_div(num, den)?, floor_mod(num, den)?);
            let up = match func {
                FloorToInt | Floor => false,
                CeilToInt | Ceiling => rest != 0,
                TruncToInt => rest != 0 && down < 0,
                _ => match rest.checked_mul(2)?.cmp(&den) {
                    Ordering::Equal => down & 1 == 1,
                    order => order.is_gt(),
                },
            };
            down + i128::from(up)
        }
        Float(value) => {
            let rounded = match func {
                FloorToInt | Floor => value.floor(),
                CeilToInt | Ceiling => value.ceil(),
                TruncToInt => value.trunc(),
                _ => value.round_ties_even(),
            };
            // 2^126 is far above anything that can lead to a result in i64, and the cast is exact.
            (rounded.abs() < 2f64.powi(126)).then_some(rounded as i128)?
        }
    };
    Some(Number::int(rounded))
}

/// The result of comparing two numbers in this order; `None` for other functions.
pub(crate) fn compares(func: Func, order: Ordering) -> Option<bool> {
    Some(match func {
        Func::Eq => order.is_eq(),
        Func::Ne => order.is_ne(),
        Func::Lt => order.is_lt(),
        Func::Le => order.is_le(),
        Func::Gt => order.is_gt(),
        Func::Ge => order.is_ge(),
        _ => return None,
    })
}

type Env<'a> = &'a dyn Fn(&str) -> Option<Number>;

fn eval(expr: &Expr, env: Env) -> Option<Number> {
    match expr.view() {
        View::Int(value) => Some(Number::int(value.into())),
        View::Rational(num, den) => Some(Exact(num.into(), den.into())),
        View::Float(value) => Some(Float(value)),
        View::Symbol(name) => env(name),
        View::Add(args) => {
            args.iter().try_fold(Number::int(0), |sum, arg| sum.add(eval(arg, env)?))
        }
        View::Mul(args) => {
            args.iter().try_fold(Number::int(1), |product, arg| product.mul(eval(arg, env)?))
        }
        View::Pow(base, exponent) => eval(base, env)?.pow(eval(exponent, env)?),
        View::Call(func, args) => eval_call(func, args, env),
    }
}

fn eval_call(func: Func, args: &[Expr], env: Env) -> Option<Number> {
    use Func::*;
    if !func.takes(args.len()) {
        return None;
    }
    // These evaluate only the arguments they need: the other ones may have no value.
    match (func, args) {
        (Where, [condition, yes, no]) => {
            let taken = eval(condition, env)?.is_true();
            return eval(if taken { yes } else { no }, env);
        }
        (And | Or, _) => {
            for arg in args {
                if eval(arg, env)?.is_true() == (func == Or) {
                    return Some(Number::bool(func == Or));
                }
            }
            return Some(Number::bool(func == And));
        }
        // The quotient of two integers is rounded exactly, without a double in between.
        (CeilToInt | FloorToInt | TruncToInt | RoundToInt, [x])
            if let View::Call(IntTrueDiv, [a, b]) = x.view() =>
        {
            let quotient = Number::ratio(eval(a, env)?.as_int()?, eval(b, env)?.as_int()?)?;
            return round(func, quotient);
        }
        _ => {}
    }
    let values: Option<Vec<Number>> = args.iter().map(|arg| eval(arg, env)).collect();
    let values = values?;
    match values.as_slice() {
        [x] => unary(func, *x),
        [a, b] if !matches!(func, Max | Min | IsNonOverlappingAndDenseIndicator) => {
            binary(func, *a, *b)
        }
        [a, b, c] if func == ModularIndexing => {
            let quotient = floor_div(a.as_int()?, b.as_int()?)?;
            floor_mod(quotient, c.as_int()?).map(Number::int)
        }
        _ => many(func, &values),
    }
}

fn unary(func: Func, x: Number) -> Option<Number> {
    use Func::*;
    let float = |function: fn(f64) -> f64| Some(Float(function(x.as_f64())));
    match func {
        Identity | Max | Min => Some(x),
        Not => Some(Number::bool(!x.is_true())),
        Abs => match x {
            Exact(num, den) => Some(Exact(num.checked_abs()?, den)),
            Float(value) => Some(Float(value.abs())),
        },
        CeilToInt | FloorToInt | TruncToInt | RoundToInt | Ceiling | Floor => round(func, x),
        TruncToFloat => float(f64::trunc),
        ToFloat => float(|x| x),
        ToSingle => float(|x| f64::from(x as f32)),
        Acos => float(f64::acos),
        Asin => float(f64::asin),
        Asinh => float(f64::asinh),
        Atan => float(f64::atan),
        Cos => float(f64::cos),
        Cosh => float(f64::cosh),
        Exp => float(f64::exp),
        Log => float(f64::ln),
        Log2 => float(f64::log2),
        Sin => float(f64::sin),
        Sinh => float(f64::sinh),
        Sqrt => float(f64::sqrt),
        Tan => float(f64::tan),
        Tanh => float(f64::tanh),
        _ => None,
    }
}

fn binary(func: Func, a: Number, b: Number) -> Option<Number> {
    use Func::*;
    let ints = |function: fn(i128, i128) -> Option<i128>| {
        function(a.as_int()?, b.as_int()?).map(Number::int)
    };
    Some(match func {
        FloorDiv | CleanDiv => ints(floor_div)?,
        CeilDiv => ints(ceil_div)?,
        Mod | PythonMod => ints(floor_mod)?,
        IntTrueDiv | FloatTrueDiv => {
            if b.as_f64() == 0.0 {
                return None;
            }
            Float(a.as_f64() / b.as_f64())
        }
        FloatPow => Float(a.as_f64().powf(b.as_f64())),
        PowByNatural => a.pow(b.natural()?)?,
        LShift => a.mul(b.power_of_two()?)?,
        RShift => Number::int(floor_div(a.as_int()?, b.power_of_two()?.as_int()?)?),
        RoundDecimal => {
            let scale = 10f64.powi(i32::try_from(b.as_int()?).ok()?);
            Float((a.as_f64() * scale).round_ties_even() / scale)
        }
        BitwiseAnd => ints(|a, b| Some(a & b))?,
        BitwiseOr => ints(|a, b| Some(a | b))?,
        BitwiseXor => ints(|a, b| Some(a ^ b))?,
        _ => Number::bool(compares(func, a.compare(b)?)?),
    })
}

fn many(func: Func, values: &[Number]) -> Option<Number> {
    match func {
        Func::Max | Func::Min => {
            let (first, rest) = values.split_first()?;
            rest.iter().try_fold(*first, |best, value| {
                let relation = if func == Func::Max { Func::Gt } else { Func::Lt };
                let better = compares(relation, value.compare(best)?)?;
                Some(if better { *value } else { best })
            })
        }
        Func::IsNonOverlappingAndDenseIndicator => {
            let values: Option<Vec<i128>> = values.iter().map(|value| value.as_int()).collect();
            let values = values?;
            let (sizes, strides) = values.split_at(values.len() / 2);
            let mut dims: Vec<(i128, i128)> = strides
                .iter()
                .copied()
                .zip(sizes.iter().copied())
                .filter(|(_, size)| *size != 1)
                .collect();
            dims.sort_unstable();
            let mut expected = 1i128;
            for (stride, size) in dims {
                if stride != expected {
                    return Some(Number::bool(false));
                }
                expected = expected.checked_mul(size)?;
            }
            Some(Number::bool(true))
        }
        _ => None,
    }
}

/// The value of a function of constants. `None` if there is no value or an expression cannot hold
/// it.
pub(crate) fn constant(func: Func, args: &[Expr]) -> Option<Expr> {
    if let (Func::IntTrueDiv, [a, b]) = (func, args) {
        // Folded only if a double holds the quotient exactly, because an unfolded quotient is
        // rounded exactly.
        let quotient = Number::ratio(a.as_int()?.into(), b.as_int()?.into())?;
        let Exact(num, den) = quotient else { return None };
        return (den.count_ones() == 1 && num.unsigned_abs() <= 1 << 53)
            .then(|| Expr::float(quotient.as_f64()));
    }
    Coef::fit(eval_call(func, args, &|_| None)?).map(Coef::to_expr)
}

impl Expr {
    /// The exact integer value, with Python's semantics. `value` gives the values of symbols. Truth
    /// values are 0 and 1.
    ///
    /// Returns `None` if a symbol has no value, if a divisor is 0, or if the result is not an
    /// integer in `i64`. Floats in the computation are doubles as in Python, but the quotient of
    /// two integers is rounded exactly.
    pub fn eval(&self, value: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        let env = |name: &str| value(name).map(|value| Number::int(value.into()));
        i64::try_from(eval(self, &env)?.as_int()?).ok()
    }
}
