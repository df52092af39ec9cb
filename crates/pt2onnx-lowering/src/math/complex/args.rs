//! Parameters that are real or complex tensors.

use super::Complex;
use crate::{
    Cx, FromArg, ParamType, TensorOrScalar,
    args::{number, wanted},
    cx::Mode,
};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::Value;
use pt2onnx_tensor::{DType, Scalar};

/// Beside complex tensors, a number becomes constants of float64. The op casts them to the type of
/// its result.
impl FromArg for Complex {
    const TAKES_COMPLEX: bool = true;

    fn accepts(ty: &ParamType) -> bool {
        TensorOrScalar::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match (number(cx, arg), arg) {
            (Some(TensorOrScalar::Scalar(number)), _) if cx.mode() == Mode::Complex => {
                let (re, im) = match number {
                    Scalar::Complex(re, im) => (re, im),
                    real => (real.to_f64(), 0.0),
                };
                Ok(Complex::number(cx, number, DType::F64).with_pairs(cx.vector(&[re, im])))
            }
            (_, Argument::Tensor(name) | Argument::OptionalTensor(Some(name)))
                if cx.is_complex(name) =>
            {
                Ok(cx.parts(Value::from_arg(cx, arg)?))
            }
            _ => Ok(Value::from_arg(cx, arg)?.into()),
        }
    }
}

impl FromArg for Vec<Complex> {
    const TAKES_COMPLEX: bool = true;

    fn accepts(ty: &ParamType) -> bool {
        ty.is_list_of(&["Tensor"])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        let Argument::Tensors(names) = arg else {
            return Err(wanted("a list of tensors", arg));
        };
        names.iter().map(|n| Complex::from_arg(cx, &Argument::Tensor(n.clone()))).collect()
    }
}
