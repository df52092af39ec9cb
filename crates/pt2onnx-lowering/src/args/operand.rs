//! Operands of arithmetic: tensors and numbers.

use super::FromArg;
use crate::{Cx, ParamType, TensorOrScalar, cx::Mode};
use pt2onnx_fx::graph::{Argument, SymArg, ValueMeta};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Scalar;

/// The argument as a number: a known one, or the result of a node. `None` if it is something else.
pub fn number(cx: &Cx, arg: &Argument) -> Option<TensorOrScalar> {
    let known = |s: Scalar| Some(TensorOrScalar::Scalar(s));
    match arg {
        Argument::Int(i) | Argument::SymInt(SymArg::Value(i)) => known(Scalar::Int(*i)),
        Argument::Float(f) | Argument::SymFloat(SymArg::Value(f)) => known(Scalar::Float(*f)),
        Argument::Bool(b) | Argument::SymBool(SymArg::Value(b)) => known(Scalar::Bool(*b)),
        Argument::Complex(re, im) => known(Scalar::Complex(*re, *im)),
        Argument::SymInt(SymArg::Expr(e)) => Some(sym_int(e)),
        Argument::SymInt(SymArg::Name(name))
        | Argument::SymFloat(SymArg::Name(name))
        | Argument::SymBool(SymArg::Name(name)) => match cx.meta(name)? {
            ValueMeta::SymInt { expr, .. } => Some(sym_int(expr)),
            ValueMeta::SymFloat { expr, .. } => Some(TensorOrScalar::SymFloat(expr.clone())),
            _ => None,
        },
        _ => None,
    }
}

fn sym_int(e: &Expr) -> TensorOrScalar {
    match e.as_int() {
        Some(i) => TensorOrScalar::Scalar(Scalar::Int(i)),
        None => TensorOrScalar::SymInt(e.clone()),
    }
}

impl FromArg for TensorOrScalar {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_one_of(&[
            "Tensor", "Scalar", "float", "int", "SymInt", "SymFloat", "bool", "SymBool", "number",
            "complex",
        ])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match (number(cx, arg), cx.mode()) {
            (Some(TensorOrScalar::Scalar(Scalar::Complex(re, _))), Mode::Part(0)) => {
                Ok(Scalar::Float(re).into())
            }
            (Some(TensorOrScalar::Scalar(Scalar::Complex(_, im))), Mode::Part(_)) => {
                Ok(Scalar::Float(im).into())
            }
            (Some(TensorOrScalar::Scalar(_)), Mode::Part(1)) => Ok(Scalar::Float(0.0).into()),
            (Some(number), _) => Ok(number),
            (None, _) => Value::from_arg(cx, arg).map(TensorOrScalar::Tensor),
        }
    }
}
