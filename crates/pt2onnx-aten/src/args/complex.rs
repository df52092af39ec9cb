//! Parameters that are complex tensors.

use super::{FromArg, operand::number};
use crate::{Complex, Cx, ParamType, TensorOrScalar, complex::Paired};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::Value;
use pt2onnx_tensor::{DType, Scalar};

impl FromArg for Complex {
    const TAKES_COMPLEX: bool = true;

    fn accepts(ty: &ParamType) -> bool {
        TensorOrScalar::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        if let Argument::Tensor(name) | Argument::OptionalTensor(Some(name)) = arg {
            let value = Value::from_arg(cx, arg)?;
            return Ok(if cx.is_complex(name) { cx.parts(value) } else { cx.real(value) });
        }
        match number(cx, arg) {
            // The other operand says how wide: parts of numbers are float32, which promotion then widens.
            Some(TensorOrScalar::Scalar(Scalar::Complex(re, im))) => {
                let number = |x: f64| cx.scalar(x, DType::F32);
                Ok(Complex { re: number(re), im: number(im) })
            }
            _ => Ok(cx.real(Value::from_arg(cx, arg)?)),
        }
    }
}

impl FromArg for Paired {
    const TAKES_COMPLEX: bool = true;

    fn accepts(ty: &ParamType) -> bool {
        TensorOrScalar::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        let pairs = match (number(cx, arg), arg) {
            (Some(TensorOrScalar::Scalar(Scalar::Complex(re, im))), _) => {
                Some(cx.vector(&[re, im]))
            }
            (Some(TensorOrScalar::Scalar(number)), _) => Some(cx.vector(&[number.to_f64(), 0.0])),
            (None, Argument::Tensor(name)) if cx.is_complex(name) => {
                Some(Value::from_arg(cx, arg)?)
            }
            _ => None,
        };
        Ok(Self { pairs, parts: Complex::from_arg(cx, arg)? })
    }
}
