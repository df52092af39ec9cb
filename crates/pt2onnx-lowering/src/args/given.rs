//! Arguments without a schema, for translations that take whatever a node is given.

use super::{FromArg, from_arg::wanted, operand::number};
use crate::{Cx, ParamType, TensorOrScalar};
use pt2onnx_fx::{
    graph::{ArgKind, Argument, NamedArg},
    printer,
};
use pt2onnx_ir::Value;
use pt2onnx_tensor::{DType, Scalar};

/// An argument of a node, as PyTorch passes it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GivenArg {
    /// The name of the parameter.
    pub name: String,
    /// Whether the call gives the name.
    pub by_name: bool,
    /// The argument.
    pub value: Given,
}

/// The kinds of arguments.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Given {
    /// Python's None.
    None,
    /// A tensor, or a number that is known at run time only: a 0-d tensor.
    Value(Value),
    /// A number that is known at export.
    Scalar(Scalar),
    /// An element type.
    DType(DType),
    /// A text; also what PyTorch has names for: a device, a layout, a memory format.
    Text(String),
    /// A list.
    List(Vec<Given>),
}

impl GivenArg {
    /// The arguments of a node.
    pub fn all(cx: &Cx, args: &[NamedArg]) -> Result<Vec<Self>, crate::ArgError> {
        let one = |arg: &NamedArg| {
            let name = arg.name.to_string();
            match Given::from_arg(cx, &arg.value) {
                Ok(value) => Ok(Self { name, by_name: arg.kind == ArgKind::Keyword, value }),
                Err(what) => Err(crate::ArgError { name, what }),
            }
        };
        args.iter().map(one).collect()
    }
}

impl FromArg for Given {
    fn accepts(_: &ParamType) -> bool {
        true
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        let list = |items: Vec<Argument>| {
            let items = items.iter().map(|item| Self::from_arg(cx, item));
            items.collect::<Result<_, _>>().map(Self::List)
        };
        let tensors = |names: &[pt2onnx_fx::graph::Name]| {
            list(names.iter().map(|name| Argument::Tensor(name.clone())).collect())
        };
        match arg {
            Argument::None | Argument::OptionalTensor(None) => Ok(Self::None),
            Argument::Tensor(_) | Argument::OptionalTensor(_) => {
                Value::from_arg(cx, arg).map(Self::Value)
            }
            Argument::Tensors(names) => tensors(names),
            Argument::NestedTensors(lists) => {
                lists.iter().map(|names| tensors(names)).collect::<Result<_, _>>().map(Self::List)
            }
            Argument::OptionalTensors(names) => {
                list(names.iter().map(|name| Argument::OptionalTensor(name.clone())).collect())
            }
            Argument::Ints(v) => list(v.iter().map(|i| Argument::Int(*i)).collect()),
            Argument::Floats(v) => list(v.iter().map(|f| Argument::Float(*f)).collect()),
            Argument::Bools(v) => list(v.iter().map(|b| Argument::Bool(*b)).collect()),
            Argument::IntLists(v) => list(v.iter().cloned().map(Argument::Ints).collect()),
            Argument::FloatLists(v) => list(v.iter().cloned().map(Argument::Floats).collect()),
            Argument::SymInts(v) => list(v.iter().cloned().map(Argument::SymInt).collect()),
            Argument::SymFloats(v) => list(v.iter().cloned().map(Argument::SymFloat).collect()),
            Argument::SymBools(v) => list(v.iter().cloned().map(Argument::SymBool).collect()),
            Argument::Strings(v) => list(v.iter().cloned().map(Argument::String).collect()),
            Argument::String(text) => Ok(Self::Text(text.to_string())),
            Argument::DType(dtype) => Ok(Self::DType(*dtype)),
            Argument::MemoryFormat(_) | Argument::Layout(_) | Argument::Device(_) => {
                Ok(Self::Text(printer::repr(arg).to_string()))
            }
            _ => match number(cx, arg) {
                Some(TensorOrScalar::Scalar(scalar)) => Ok(Self::Scalar(scalar)),
                Some(computed) => {
                    let dtype = cx.result_type(std::slice::from_ref(&computed));
                    Ok(Self::Value(cx.as_tensor(&computed, dtype)))
                }
                None => Err(wanted("a tensor, a number, a text or a list of these", arg)),
            },
        }
    }
}
