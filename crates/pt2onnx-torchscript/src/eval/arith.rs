//! Arithmetic on numbers, known and symbolic, with Python's results.

use crate::{
    eval::{Evaluator, Step, raises, unsupported},
    types::{Symbols, of_data},
    value::{Value, known},
};
use pt2onnx_symbolic::{Expr, Func, View};

pub(crate) fn to_float(e: &Expr) -> Expr {
    match known(e) {
        Some(f) => Expr::float(f),
        None if e.is_integer() => Expr::call(Func::ToFloat, vec![e.clone()]),
        None => e.clone(),
    }
}

fn zero_division<T>() -> Step<T> {
    raises("ZeroDivisionError")
}

/// An operation on two numbers; `None` if it is not one of numbers.
pub(crate) fn binary(op: &str, a: &Value, b: &Value) -> Step<Option<Value>> {
    let (Some(x), Some(y)) = (a.number(), b.number()) else {
        return Ok(None);
    };
    if let Some(func) = relation(op) {
        return Ok(Some(Value::Bool(compare(func, x, y))));
    }
    match (a, b) {
        (Value::Bool(_), Value::Bool(_)) => Ok(logic(op, x, y)),
        (Value::Int(_) | Value::Bool(_), Value::Int(_) | Value::Bool(_)) => ints(op, x, y),
        _ => floats(op, x, y),
    }
}

fn relation(op: &str) -> Option<Func> {
    Some(match op {
        "eq" => Func::Eq,
        "ne" => Func::Ne,
        "lt" => Func::Lt,
        "le" => Func::Le,
        "gt" => Func::Gt,
        "ge" => Func::Ge,
        _ => return None,
    })
}

pub(crate) fn compare(func: Func, x: &Expr, y: &Expr) -> Expr {
    if [x, y].into_iter().filter_map(known).any(f64::is_nan) {
        return Expr::bool(func == Func::Ne);
    }
    Expr::call(func, vec![x.clone(), y.clone()])
}

fn logic(op: &str, x: &Expr, y: &Expr) -> Option<Value> {
    let func = match op {
        "__and__" => Func::And,
        "__or__" => Func::Or,
        "__xor__" => Func::Ne,
        _ => return None,
    };
    Some(Value::Bool(Expr::call(func, vec![x.clone(), y.clone()])))
}

fn ints(op: &str, x: &Expr, y: &Expr) -> Step<Option<Value>> {
    let call = |func: Func| Value::Int(Expr::call(func, vec![x.clone(), y.clone()]));
    let both = x.as_int().zip(y.as_int());
    Ok(Some(match op {
        "add" => Value::Int(x + y),
        "sub" => Value::Int(x - y),
        "mul" => Value::Int(x * y),
        "div" | "floordiv" | "remainder" if y.as_int() == Some(0) => return zero_division(),
        "div" => match both {
            Some((x, y)) => Value::float(x as f64 / y as f64),
            None => Value::Float(Expr::call(Func::IntTrueDiv, vec![x.clone(), y.clone()])),
        },
        "floordiv" => Value::Int(x.floor_div(y)),
        "remainder" => Value::Int(x.modulo(y)),
        // `aten::pow.int` is registered before `aten::pow.int_to_int`: the result is a float.
        "pow" => match both {
            Some((x, y)) => Value::float((x as f64).powf(y as f64)),
            None if y.as_int().is_some_and(|y| (0..=8).contains(&y)) => {
                let power = Expr::call(Func::PowByNatural, vec![x.clone(), y.clone()]);
                Value::Float(to_float(&power))
            }
            None => Value::Float(Expr::call(Func::FloatPow, vec![to_float(x), to_float(y)])),
        },
        "__and__" if both.is_some() => call(Func::BitwiseAnd),
        "__or__" if both.is_some() => call(Func::BitwiseOr),
        "__xor__" if both.is_some() => call(Func::BitwiseXor),
        "__lshift__" => match both {
            Some((x, y)) if (0..64).contains(&y) => match i64::try_from(i128::from(x) << y) {
                Ok(shifted) => Value::int(shifted),
                Err(_) => return unsupported("an integer of more than 64 bits"),
            },
            _ => call(Func::LShift),
        },
        "__rshift__" => call(Func::RShift),
        "max" => Value::Int(x.max(y)),
        "min" => Value::Int(x.min(y)),
        _ => return Ok(None),
    }))
}

fn floats(op: &str, x: &Expr, y: &Expr) -> Step<Option<Value>> {
    let (x, y) = (to_float(x), to_float(y));
    let both = known(&x).zip(known(&y));
    if matches!(op, "div" | "floordiv" | "remainder") && both.is_some_and(|(_, y)| y == 0.0) {
        return zero_division();
    }
    let call = |func: Func| Expr::call(func, vec![x.clone(), y.clone()]);
    Ok(Some(Value::Float(match (op, both) {
        ("add", Some((x, y))) => Expr::float(x + y),
        ("sub", Some((x, y))) => Expr::float(x - y),
        ("mul", Some((x, y))) => Expr::float(x * y),
        ("floordiv", Some((x, y))) => Expr::float((x / y).floor()),
        ("remainder", Some((x, y))) => Expr::float(x - y * (x / y).floor()),
        ("add", None) => x + y,
        ("sub", None) => x - y,
        ("mul", None) => x * y,
        ("div", _) => call(Func::FloatTrueDiv),
        ("pow", _) => call(Func::FloatPow),
        ("max", _) => call(Func::Max),
        ("min", _) => call(Func::Min),
        _ => return Ok(None),
    })))
}

/// An operation on one number; `None` if it is not one of numbers.
pub(crate) fn unary(op: &str, a: &Value) -> Step<Option<Value>> {
    let Some(x) = a.number() else {
        return Ok(None);
    };
    let float = matches!(a, Value::Float(_));
    let call = |func: Func| Some(Value::Float(Expr::call(func, vec![to_float(x)])));
    Ok(match op {
        "neg" if float => Some(known(x).map_or_else(|| Value::Float(-x), |f| Value::float(-f))),
        "neg" => Some(Value::Int(-x)),
        "abs" if !float => Some(Value::Int(Expr::call(Func::Abs, vec![x.clone()]))),
        "abs" | "fabs" => call(Func::Abs),
        "floor" => Some(Value::Int(rounded(Func::FloorToInt, x)?)),
        "ceil" => Some(Value::Int(rounded(Func::CeilToInt, x)?)),
        "round" if float => known(x).map(|f| Value::float(f.round_ties_even())),
        "sqrt" => call(Func::Sqrt),
        "exp" => call(Func::Exp),
        "log" => call(Func::Log),
        "log2" => call(Func::Log2),
        "sin" => call(Func::Sin),
        "cos" => call(Func::Cos),
        "tan" => known(x).map(|f| Value::float(f.tan())),
        "atan" => known(x).map(|f| Value::float(f.atan())),
        "tanh" => call(Func::Tanh),
        _ => None,
    })
}

/// A number as an integer, rounded by a function.
pub(crate) fn rounded(func: Func, x: &Expr) -> Step<Expr> {
    if x.is_integer() {
        return Ok(x.clone());
    }
    let rounded = Expr::call(func, vec![x.clone()]);
    if known(x).is_some() && rounded.as_int().is_none() {
        return unsupported("a float that is no integer of 64 bits");
    }
    Ok(rounded)
}

/// The problem that a text which is not known decides something.
pub(crate) fn unknown_str<T>() -> Step<T> {
    unsupported(
        "the text of a value that is not known, other than in a message (compare the value itself, or give fixed sizes),",
    )
}

impl Evaluator<'_> {
    pub(crate) fn same(&self, a: &Value, b: &Value) -> bool {
        self.state.same(a, b)
    }

    pub(crate) fn equality(&self, a: &Value, b: &Value) -> Step<Expr> {
        self.state.equality(a, b)
    }

    /// The place of the first value that is equal to this one.
    pub(crate) fn place_of<'v>(
        &self,
        items: impl IntoIterator<Item = &'v Value>,
        item: &Value,
    ) -> Step<Option<usize>> {
        for (at, other) in items.into_iter().enumerate() {
            match self.equality(other, item)?.as_int() {
                Some(0) => {}
                Some(_) => return Ok(Some(at)),
                None => return unsupported("looking for a number of unknown size"),
            }
        }
        Ok(None)
    }

    /// The truth of a condition that asks whether a size of data is 0, where it is not.
    pub(crate) fn unless_empty(&self, condition: &Expr) -> Option<bool> {
        let View::Call(func, [a, b]) = condition.view() else {
            return None;
        };
        let many = |e: &Expr| match e.as_int() {
            Some(bound) => (0..=1).contains(&bound).then_some(bound),
            None => self.state.facts.constraints.prove_ge(e, &Expr::ZERO).then_some(1000),
        };
        let relations = [Func::Eq, Func::Ne, Func::Lt, Func::Le, Func::Gt, Func::Ge];
        let asks = relations.contains(&func) && a.as_int().is_some() != b.as_int().is_some();
        (asks && of_data(condition)).then_some(())?;
        let truth = compare(func, &Expr::int(many(a)?), &Expr::int(many(b)?));
        truth.as_int().map(|truth| truth != 0)
    }

    /// Whether a condition has the same truth for all large sizes that differ.
    pub(crate) fn is_general(&self, condition: &Expr) -> bool {
        let truths = [
            truth_for(condition, |at| 1001 + at),
            truth_for(condition, |at| 2520 * (at + 1)),
            truth_for(condition, |at| 100_003 - 1000 * at),
        ];
        truths[0].is_some() && truths.iter().all(|truth| *truth == truths[0])
    }
}

/// The truth of a condition on sizes of these values; `None` if data decide.
fn truth_for(condition: &Expr, value: impl Fn(i64) -> i64) -> Option<bool> {
    let free = condition.symbols();
    if free.is_empty() || free.iter().any(|s| Symbols::makes(s)) {
        return None;
    }
    let sizes: Vec<_> = free.into_iter().zip((0..).map(value)).collect();
    let found = condition.eval(&|name| sizes.iter().find(|(s, _)| **s == *name).map(|s| s.1));
    found.map(|found| found != 0)
}
