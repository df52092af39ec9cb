//! Parameters that are tensors and lists of tensors.

use super::{FromArg, from_arg::wanted, operand::number};
use crate::{Cx, ParamType, cx::Mode};
use pt2onnx_fx::graph::{Argument, SymArg, ValueMeta};
use pt2onnx_ir::Value;

/// A number that is given for a tensor becomes a 0-d constant of PyTorch's default type for it.
impl FromArg for Value {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_one_of(&[
            "Tensor", "Scalar", "float", "int", "SymInt", "SymFloat", "bool", "SymBool", "number",
            "complex",
        ])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        if let Argument::Tensor(name) | Argument::OptionalTensor(Some(name)) = arg {
            let value = cx
                .value(name)
                .ok_or_else(|| format!("no node before this one computes the tensor `{name}`"))?;
            return match (cx.is_complex(name), cx.mode()) {
                (true, Mode::Real) => Err(format!(
                    "the tensor `{name}` is complex, but this op is supported for real tensors only"
                )),
                (true, Mode::Part(part)) => Ok(cx.part(value, part)),
                // The imaginary parts of a real tensor.
                (false, Mode::Part(1)) => Ok(cx.full(&cx.shape(value), 0, cx.dtype(value))),
                _ => Ok(value),
            };
        }
        if let Argument::SymBool(SymArg::Name(name)) = arg
            && let Some(ValueMeta::SymBool { expr, .. }) = cx.meta(name)
        {
            return Ok(cx.number(expr));
        }
        match number(cx, arg) {
            Some(number) => {
                let dtype = cx.result_type(std::slice::from_ref(&number));
                Ok(cx.as_tensor(&number, dtype))
            }
            None => Err(wanted("a tensor", arg)),
        }
    }
}

impl FromArg for Vec<Value> {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_list_of(&["Tensor"]) && !ty.optional_elements
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Tensors(v) => {
                v.iter().map(|n| Value::from_arg(cx, &Argument::Tensor(n.clone()))).collect()
            }
            _ => Err(wanted("a list of tensors", arg)),
        }
    }
}

impl FromArg for Vec<Option<Value>> {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_list_of(&["Tensor"])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::OptionalTensors(v) => v
                .iter()
                .map(|n| Option::from_arg(cx, &Argument::OptionalTensor(n.clone())))
                .collect(),
            Argument::Tensors(v) => {
                v.iter().map(|n| Option::from_arg(cx, &Argument::Tensor(n.clone()))).collect()
            }
            _ => Err(wanted("a list of tensors", arg)),
        }
    }
}
