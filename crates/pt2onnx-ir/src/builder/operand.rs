//! Arithmetic on values and numbers. A number gets the element type of the other operand.

use super::Builder;
use crate::Value;
use pt2onnx_tensor::{DType, Scalar};

/// An operand of arithmetic: a value, or a number that becomes a constant with the element type of
/// the other operand.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Operand {
    /// A value.
    Value(Value),
    /// A number.
    Scalar(Scalar),
    /// A number that is computed: a 0-d value, which is cast to the type of the other operand.
    Number(Value),
}

impl From<Value> for Operand {
    fn from(v: Value) -> Self {
        Operand::Value(v)
    }
}

macro_rules! from {
    ($($t:ty),*) => {$(
        impl From<$t> for Operand {
            fn from(v: $t) -> Self {
                Operand::Scalar(v.into())
            }
        }
    )*};
}
from!(bool, i32, i64, f64, Scalar);

impl Operand {
    fn dtype(self, cx: &Builder) -> Option<DType> {
        match self {
            Operand::Value(v) => Some(cx.dtype(v)),
            Operand::Scalar(_) | Operand::Number(_) => None,
        }
    }

    fn value(self, cx: &Builder, dtype: DType) -> Value {
        match self {
            Operand::Value(v) => v,
            Operand::Scalar(s) => cx.scalar(s, dtype),
            Operand::Number(v) => cx.cast(v, dtype),
        }
    }
}

impl Builder<'_> {
    /// Both operands as inputs of a node; two numbers become float32.
    fn operands(&self, a: impl Into<Operand>, b: impl Into<Operand>) -> [Option<Value>; 2] {
        let (a, b) = (a.into(), b.into());
        let dtype = a.dtype(self).or_else(|| b.dtype(self)).unwrap_or(DType::F32);
        [Some(a.value(self, dtype)), Some(b.value(self, dtype))]
    }

    fn is_number(operand: Operand, number: f64) -> bool {
        matches!(operand, Operand::Scalar(s) if s.to_f64() == number)
    }
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:literal $(, right identity $id:literal)?;)*) => {
        impl Builder<'_> {$(
            $(#[$doc])*
            pub fn $name(&self, a: impl Into<Operand>, b: impl Into<Operand>) -> Value {
                let (a, b) = (a.into(), b.into());
                $(if let (Operand::Value(a), true) = (a, Self::is_number(b, $id)) {
                    return a;
                })?
                self.emit1($op, &self.operands(a, b), Default::default())
            }
        )*}
    };
}
binary! {
    /// `a + b`, broadcast.
    add => "Add", right identity 0.0;
    /// `a - b`, broadcast.
    sub => "Sub", right identity 0.0;
    /// `a * b`, broadcast.
    mul => "Mul", right identity 1.0;
    /// `a / b`, broadcast. The quotient of integers is rounded towards zero.
    div => "Div", right identity 1.0;
    /// `a` to the power `b`, broadcast. The result has the type of `a`.
    pow => "Pow", right identity 1.0;
    /// The smaller of both, broadcast.
    minimum => "Min";
    /// The larger of both, broadcast.
    maximum => "Max";
    /// `a == b`, broadcast.
    equal => "Equal";
    /// `a < b`, broadcast.
    less => "Less";
    /// `a <= b`, broadcast.
    less_or_equal => "LessOrEqual";
    /// `a > b`, broadcast.
    greater => "Greater";
    /// `a >= b`, broadcast.
    greater_or_equal => "GreaterOrEqual";
}

impl Builder<'_> {
    /// `a` where `condition` is true, else `b`; all three are broadcast. Bools are chosen by logic:
    /// ONNX Runtime has no `Where` for them.
    pub fn select(&self, condition: Value, a: impl Into<Operand>, b: impl Into<Operand>) -> Value {
        match self.operands(a, b) {
            [Some(a), Some(b)] if self.dtype(a) == DType::Bool => self.choose(condition, a, b),
            [a, b] => self.emit1("Where", &[Some(condition), a, b], Default::default()),
        }
    }

    /// `select` of bools.
    fn choose(&self, condition: Value, a: Value, b: Value) -> Value {
        let logic = |op, x, y| self.emit1(op, &[Some(x), Some(y)], Default::default());
        let not = |x| self.emit1("Not", &[Some(x)], Default::default());
        let known = |v| match self.constant_of(v)?.to_vec::<bool>()?.as_slice() {
            [one] if self.rank(v) == 0 => Some(*one),
            _ => None,
        };
        match (known(a), known(b)) {
            (Some(true), _) => logic("Or", condition, b),
            (Some(false), _) => logic("And", not(condition), b),
            (_, Some(true)) => logic("Or", not(condition), a),
            (_, Some(false)) => logic("And", condition, a),
            _ => logic("Or", logic("And", condition, a), logic("And", not(condition), b)),
        }
    }

    /// `x` clamped to `min..=max`; `None` means no bound. With one bound, floats use `Min` or
    /// `Max`: where `Clip` has no bound, ONNX Runtime replaces an infinity by the largest finite
    /// number. With the bound 0, they use `Relu` and `Clip` from -infinity, which keep -0 in ONNX
    /// Runtime; its `Min` and `Max` give either zero.
    pub fn clamp(&self, x: Value, min: Option<Scalar>, max: Option<Scalar>) -> Value {
        let dtype = self.dtype(x);
        let bound = |b: Option<Scalar>| b.map(|b| self.scalar(b, dtype));
        let zero = |b: Option<Scalar>| dtype.is_float() && b.is_some_and(|b| b.to_f64() == 0.0);
        let min = match (min, max) {
            (Some(_), None) if zero(min) => {
                return self.emit1("Relu", &[Some(x)], Default::default());
            }
            (None, Some(_)) if zero(max) => Some(Scalar::Float(f64::NEG_INFINITY)),
            _ => min,
        };
        match (bound(min), bound(max)) {
            (None, None) => x,
            (Some(min), None) if dtype.is_float() => self.maximum(x, min),
            (None, Some(max)) if dtype.is_float() => self.minimum(x, max),
            (min, max) => self.emit1("Clip", &[Some(x), min, max], Default::default()),
        }
    }
}
