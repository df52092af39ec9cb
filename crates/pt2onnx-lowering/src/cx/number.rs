//! Numbers that an op takes beside its tensors, known at export or computed at run time.

use crate::Cx;
use pt2onnx_ir::{Operand, Value};
use pt2onnx_tensor::{DType, Scalar};

/// A number that an op takes beside its tensors, such as `alpha` or a slope. As an operand, it
/// takes the type of the other one.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// Known at export.
    Known(Scalar),
    /// The result of a node, 0-d: `x.item()`, or computed from sizes.
    Computed(Value),
}

impl<T: Into<Scalar>> From<T> for Number {
    fn from(number: T) -> Self {
        Number::Known(number.into())
    }
}

impl From<Number> for Operand {
    fn from(number: Number) -> Self {
        match number {
            Number::Known(scalar) => Operand::Scalar(scalar),
            Number::Computed(value) => Operand::Number(value),
        }
    }
}

impl Number {
    /// The number, if it is known at export.
    pub fn known(self) -> Option<Scalar> {
        match self {
            Number::Known(scalar) => Some(scalar),
            Number::Computed(_) => None,
        }
    }

    /// Whether it is known to be this number.
    pub fn is(self, number: f64) -> bool {
        self.known().is_some_and(|s| !is_complex(s) && s.to_f64() == number)
    }

    /// Whether it is known to be complex.
    pub fn is_complex(self) -> bool {
        self.known().is_some_and(is_complex)
    }

    /// The number as a 0-d tensor of type `dtype`.
    pub fn tensor(self, cx: &Cx, dtype: DType) -> Value {
        match self {
            Number::Known(scalar) => cx.scalar(scalar, dtype),
            Number::Computed(value) => cx.cast(value, dtype),
        }
    }
}

fn is_complex(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::Complex(..))
}
