//! The text of an expression, as sympy's `str` prints it with the functions of
//! `torch.utils._sympy.functions`.

use std::fmt;

use crate::expr::{Expr, View};
use crate::func::Func;
use crate::poly::{self, Coef};

/// sympy's binding strengths.
mod precedence {
    pub const OR: u32 = 20;
    pub const AND: u32 = 30;
    pub const RELATION: u32 = 35;
    pub const BIT_OR: u32 = 36;
    pub const BIT_AND: u32 = 38;
    pub const ADD: u32 = 40;
    pub const MUL: u32 = 50;
    /// `~x`, weaker than Python's `**`.
    pub const UNARY: u32 = 55;
    pub const POW: u32 = 60;
    pub const FUNC: u32 = 70;
    /// The operand of `~` has no parentheses if it is stronger than this.
    pub const NOT: u32 = 100;
    pub const ATOM: u32 = 1000;
}

fn strength(expr: &Expr) -> u32 {
    use Func::*;
    match expr.view() {
        _ if is_negative_number(expr) => precedence::ADD,
        View::Int(_) | View::Symbol(_) | View::Float(_) => precedence::ATOM,
        View::Add(_) => precedence::ADD,
        View::Rational(..) => precedence::MUL,
        View::Mul(args) => {
            let negative = args.first().is_some_and(is_negative_number);
            if negative { precedence::ADD } else { precedence::MUL }
        }
        View::Pow(..) => precedence::POW,
        View::Call(func, _) => match func {
            FloorDiv | CleanDiv | ModularIndexing | Where | PythonMod | Mod | FloatTrueDiv
            | IntTrueDiv | Lt | Le | Gt | Ge => precedence::RELATION,
            BitwiseAnd => precedence::BIT_AND,
            BitwiseOr | BitwiseXor => precedence::BIT_OR,
            And => precedence::AND,
            Or => precedence::OR,
            Not => precedence::UNARY,
            PowByNatural | Eq | Ne => precedence::MUL,
            FloatPow => precedence::POW,
            Max | Min => precedence::ATOM,
            _ => precedence::FUNC,
        },
    }
}

fn is_negative_number(expr: &Expr) -> bool {
    match expr.view() {
        View::Int(value) => value < 0,
        View::Rational(num, _) => num < 0,
        View::Float(value) => value < 0.0,
        _ => false,
    }
}

/// Prints an expression, in parentheses if it does not bind stronger than the number.
struct Wrapped<'a>(&'a Expr, u32);

impl fmt::Display for Wrapped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if strength(self.0) <= self.1 { write!(f, "({})", self.0) } else { write!(f, "{}", self.0) }
    }
}

fn float(value: f64) -> String {
    if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        (if value < 0.0 { "-oo" } else { "oo" }).to_owned()
    } else {
        format!("{value:?}")
    }
}

/// The text without a leading minus sign, and whether there was one.
fn split_sign(expr: &Expr) -> (String, bool) {
    let text = expr.to_string();
    match (text.strip_prefix('-'), expr.view()) {
        (Some(rest), View::Int(_) | View::Rational(..) | View::Float(_) | View::Mul(_)) => {
            (rest.to_owned(), true)
        }
        _ => (text, false),
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.view() {
            View::Int(value) => write!(f, "{value}"),
            View::Rational(num, den) => write!(f, "{num}/{den}"),
            View::Float(value) => f.write_str(&float(value)),
            View::Symbol(name) => f.write_str(name),
            View::Add(args) => write_sum(f, args),
            View::Mul(args) => write_product(f, args),
            View::Pow(base, exponent) => write_power(f, base, exponent),
            View::Call(func, args) => write_call(f, func, args),
        }
    }
}

fn write_sum(f: &mut fmt::Formatter<'_>, args: &[Expr]) -> fmt::Result {
    // sympy prints `1 - x`, but `-2*x*y + 1`.
    let ordered: Vec<&Expr> = match args {
        [term, constant]
            if let View::Mul([number, _]) = term.view()
                && let View::Int(1..) | View::Rational(1.., _) = constant.view()
                && is_negative_number(number) =>
        {
            vec![constant, term]
        }
        _ => args.iter().collect(),
    };
    for (index, term) in ordered.into_iter().enumerate() {
        let (text, negative) = split_sign(term);
        f.write_str(match (index, negative) {
            (0, false) => "",
            (0, true) => "-",
            (_, false) => " + ",
            (_, true) => " - ",
        })?;
        // Text whose sign was removed binds like a product.
        if !negative && strength(term) < precedence::ADD {
            write!(f, "({text})")?;
        } else {
            f.write_str(&text)?;
        }
    }
    Ok(())
}

fn write_product(f: &mut fmt::Formatter<'_>, args: &[Expr]) -> fmt::Result {
    let (mut above, mut below) = (Vec::new(), Vec::new());
    for (index, arg) in args.iter().enumerate() {
        match arg.view() {
            View::Float(value) if index == 0 => above.push(float(value)),
            _ if index == 0
                && let Some(Coef::Exact(num, den)) = poly::as_coef(arg) =>
            {
                if num < 0 {
                    f.write_str("-")?;
                }
                above.extend((num.unsigned_abs() != 1).then(|| num.unsigned_abs().to_string()));
                below.extend((den != 1).then(|| den.to_string()));
            }
            // A power of a sum in the denominator would be multiplied out.
            View::Pow(base, exponent)
                if let Some(n) = exponent.as_int().filter(|n| (-i64::MAX..0).contains(n))
                    && (n == -1 || !matches!(base.view(), View::Add(_))) =>
            {
                let base = Wrapped(base, precedence::POW);
                below.push(match n.unsigned_abs() {
                    1 => base.to_string(),
                    n => format!("{base}**{n}"),
                });
            }
            _ => above.push(Wrapped(arg, precedence::MUL).to_string()),
        }
    }
    if above.is_empty() {
        f.write_str("1")?;
    }
    f.write_str(&above.join("*"))?;
    match below.as_slice() {
        [] => Ok(()),
        [one] => write!(f, "/{one}"),
        // A sum within the parentheses would be multiplied out.
        _ if below.iter().any(|part| part.starts_with('(')) => write!(f, "/{}", below.join("/")),
        _ => write!(f, "/({})", below.join("*")),
    }
}

fn write_power(f: &mut fmt::Formatter<'_>, base: &Expr, exponent: &Expr) -> fmt::Result {
    match exponent.view() {
        View::Rational(1, 2) => write!(f, "sqrt({base})"),
        View::Rational(-1, 2) => write!(f, "1/sqrt({base})"),
        View::Int(-1) => write!(f, "1/{}", Wrapped(base, precedence::POW)),
        _ => {
            write!(f, "{}**{}", Wrapped(base, precedence::POW), Wrapped(exponent, precedence::POW))
        }
    }
}

fn write_call(f: &mut fmt::Formatter<'_>, func: Func, args: &[Expr]) -> fmt::Result {
    let infix = |f: &mut fmt::Formatter<'_>, operator: &str, strength: u32| {
        for (index, arg) in args.iter().enumerate() {
            if index > 0 {
                f.write_str(operator)?;
            }
            write!(f, "{}", Wrapped(arg, strength))?;
        }
        Ok(())
    };
    // If an operand is not a truth value, these operators would be read as bitwise ones.
    let logical = args.iter().all(Expr::is_boolean);
    match (func, args) {
        (Func::FloorDiv | Func::CleanDiv, [_, _]) => {
            f.write_str("(")?;
            infix(f, "//", precedence::ATOM - 1)?;
            f.write_str(")")
        }
        (Func::Lt, [_, _]) => infix(f, " < ", precedence::RELATION),
        (Func::Le, [_, _]) => infix(f, " <= ", precedence::RELATION),
        (Func::Gt, [_, _]) => infix(f, " > ", precedence::RELATION),
        (Func::Ge, [_, _]) => infix(f, " >= ", precedence::RELATION),
        (Func::And, [_, _, ..]) if logical => infix(f, " & ", precedence::BIT_AND),
        (Func::Or, [_, _, ..]) if logical => infix(f, " | ", precedence::BIT_OR),
        (Func::Not, [x]) if logical => write!(f, "~{}", Wrapped(x, precedence::NOT)),
        _ => {
            write!(f, "{}(", func.name())?;
            infix(f, ", ", 0)?;
            f.write_str(")")
        }
    }
}
