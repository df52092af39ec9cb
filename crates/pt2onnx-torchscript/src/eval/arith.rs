//! Arithmetic on numbers, known and symbolic, with Python's results.

use crate::{
    eval::{Evaluator, Step, raises, unsupported},
    types::{Symbols, of_data},
    value::{Value, known},
};
use pt2onnx_symbolic::{Expr, Func, View};

/// How deeply lists that are compared may nest.
const MAX_NESTING: usize = 20;

/// An integer as a float.
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
    if let (Some(x), Some(y)) = (x.as_int(), y.as_int()) {
        return Expr::bool(ordered(func, x.cmp(&y)));
    }
    match (known(x), known(y)) {
        (Some(x), Some(y)) => match x.partial_cmp(&y) {
            Some(order) => Expr::bool(ordered(func, order)),
            None => Expr::bool(func == Func::Ne),
        },
        _ => Expr::call(func, vec![x.clone(), y.clone()]),
    }
}

fn ordered(func: Func, order: std::cmp::Ordering) -> bool {
    match func {
        Func::Eq => order.is_eq(),
        Func::Ne => order.is_ne(),
        Func::Lt => order.is_lt(),
        Func::Le => order.is_le(),
        Func::Gt => order.is_gt(),
        _ => order.is_ge(),
    }
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
        "__and__" | "__or__" | "__xor__" => match (both, op) {
            (Some((x, y)), "__and__") => Value::int(x & y),
            (Some((x, y)), "__or__") => Value::int(x | y),
            (Some((x, y)), _) => Value::int(x ^ y),
            (None, _) => return Ok(None),
        },
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
    let (fx, fy) = (to_float(x), to_float(y));
    let Some((a, b)) = known(x).zip(known(y)) else {
        return Ok(Some(Value::Float(match op {
            "add" => fx + fy,
            "sub" => fx - fy,
            "mul" => fx * fy,
            "div" => Expr::call(Func::FloatTrueDiv, vec![fx, fy]),
            "pow" => Expr::call(Func::FloatPow, vec![fx, fy]),
            "max" => Expr::call(Func::Max, vec![fx, fy]),
            "min" => Expr::call(Func::Min, vec![fx, fy]),
            _ => return Ok(None),
        })));
    };
    if b == 0.0 && matches!(op, "div" | "floordiv" | "remainder") {
        return zero_division();
    }
    Ok(Some(Value::float(match op {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "div" => a / b,
        "floordiv" => (a / b).floor(),
        "remainder" => a - b * (a / b).floor(),
        "pow" => a.powf(b),
        "max" => a.max(b),
        "min" => a.min(b),
        _ => return Ok(None),
    })))
}

/// An operation on one number; `None` if it is not one of numbers.
pub(crate) fn unary(op: &str, a: &Value) -> Step<Option<Value>> {
    let Some(x) = a.number() else {
        return Ok(None);
    };
    let float = matches!(a, Value::Float(_));
    let round = |func: Func, whole: fn(f64) -> f64| match known(x).map(whole) {
        _ if !float => Ok(Some(Value::Int(x.clone()))),
        Some(f) if f.abs() < 9e18 => Ok(Some(Value::int(f as i64))),
        Some(_) => unsupported("an integer of more than 64 bits"),
        None => Ok(Some(Value::Int(Expr::call(func, vec![x.clone()])))),
    };
    let math = |of: fn(f64) -> f64, func: Option<Func>| match (known(x), func) {
        (Some(f), _) => Some(Value::float(of(f))),
        (None, Some(func)) => Some(Value::Float(Expr::call(func, vec![to_float(x)]))),
        (None, None) => None,
    };
    Ok(match op {
        "neg" if float => Some(known(x).map_or_else(|| Value::Float(-x), |f| Value::float(-f))),
        "neg" => Some(Value::Int(-x)),
        "abs" if !float => Some(Value::Int(Expr::call(Func::Abs, vec![x.clone()]))),
        "abs" | "fabs" => math(f64::abs, Some(Func::Abs)),
        "floor" => return round(Func::FloorToInt, f64::floor),
        "ceil" => return round(Func::CeilToInt, f64::ceil),
        "round" if float => known(x).map(|f| Value::float(f.round_ties_even())),
        "sqrt" => math(f64::sqrt, Some(Func::Sqrt)),
        "exp" => math(f64::exp, Some(Func::Exp)),
        "log" => math(f64::ln, Some(Func::Log)),
        "log2" => math(f64::log2, Some(Func::Log2)),
        "sin" => math(f64::sin, Some(Func::Sin)),
        "cos" => math(f64::cos, Some(Func::Cos)),
        "tan" => math(f64::tan, None),
        "atan" => math(f64::atan, None),
        "tanh" => math(f64::tanh, Some(Func::Tanh)),
        _ => None,
    })
}

/// An expression as a truncated integer.
pub(crate) fn truncated(x: &Expr) -> Step<Expr> {
    match x.view() {
        View::Int(_) => Ok(x.clone()),
        _ => match known(x) {
            Some(f) if f.abs() < 9e18 => Ok(Expr::int(f as i64)),
            Some(_) => unsupported("a float that is no integer of 64 bits"),
            None if x.is_integer() => Ok(x.clone()),
            None => Ok(Expr::call(Func::TruncToInt, vec![x.clone()])),
        },
    }
}

/// The problem that a text which is not known decides something.
pub(crate) fn unknown_str<T>() -> Step<T> {
    unsupported(
        "the text of a value that is not known, other than in a message (compare the value itself, or give fixed sizes),",
    )
}

impl Evaluator<'_> {
    /// Whether two values are known to be equal.
    pub(crate) fn same(&self, a: &Value, b: &Value) -> bool {
        self.state.same(a, b)
    }

    /// Whether two values are equal, as a truth value that sizes may decide.
    pub(crate) fn equality(&self, a: &Value, b: &Value) -> Step<Expr> {
        self.equality_within(a, b, MAX_NESTING)
    }

    fn equality_within(&self, a: &Value, b: &Value, depth: usize) -> Step<Expr> {
        self.state.work.set(self.state.work.get().saturating_add(1));
        let Some(depth) = depth.checked_sub(1) else {
            return unsupported("comparing values that nest so deeply");
        };
        match (a, b) {
            (Value::List(a), Value::List(b)) if a == b => Ok(Expr::bool(true)),
            (Value::List(_), Value::List(_)) | (Value::Tuple(_), Value::Tuple(_)) => {
                let (Some(a), Some(b)) = (self.sequence(a), self.sequence(b)) else {
                    return unsupported("comparing lists whose length depends on data");
                };
                let mut all = Expr::bool(a.len() == b.len());
                for (a, b) in a.iter().zip(&b) {
                    if all.as_int() == Some(0) {
                        break;
                    }
                    let equal = self.equality_within(a, b, depth)?;
                    all = Expr::call(Func::And, vec![all, equal]);
                }
                Ok(all)
            }
            (Value::UnknownStr(_), _) | (_, Value::UnknownStr(_)) => unknown_str(),
            (Value::Tensor(x), Value::Tensor(y)) if x != y => {
                unsupported("comparing tensors in lists")
            }
            _ => Ok(match (a.number(), b.number()) {
                (Some(x), Some(y)) => {
                    let equal = compare(Func::Eq, x, y);
                    self.constraints().decide(&equal).map_or(equal, Expr::bool)
                }
                _ => Expr::bool(self.same(a, b)),
            }),
        }
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
        Some(ordered(func, many(a)?.cmp(&many(b)?)))
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
