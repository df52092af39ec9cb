//! Parameters that are numbers, sizes, strings and element types, and lists of them.

use super::{FromArg, from_arg::wanted, operand::number};
use crate::{Cx, Number, ParamType, TensorOrScalar};
use pt2onnx_fx::graph::{Argument, SymArg};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

impl FromArg for Expr {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_one_of(&["int", "SymInt"])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Int(i) | Argument::SymInt(SymArg::Value(i)) => Ok(Expr::int(*i)),
            Argument::SymInt(SymArg::Expr(e)) => Ok(e.clone()),
            Argument::SymInt(SymArg::Name(name)) => {
                cx.sym_int(name).ok_or_else(|| format!("`{name}` has no expression"))
            }
            // PyTorch calls `item` on a tensor that is given for an integer.
            Argument::Tensor(name) => {
                let known = cx.value(name).and_then(|v| cx.contents(v)).filter(|c| c.len() == 1);
                known.and_then(|mut c| c.pop()).ok_or_else(|| wanted("an integer", arg))
            }
            _ => Err(wanted("an integer", arg)),
        }
    }
}

/// A single size counts as a list of one.
impl FromArg for Vec<Expr> {
    fn accepts(ty: &ParamType) -> bool {
        Expr::accepts(ty) || ty.is_list_of(&["int", "SymInt"])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Ints(v) => Ok(v.iter().map(|&i| Expr::int(i)).collect()),
            Argument::SymInts(v) => {
                v.iter().map(|a| Expr::from_arg(cx, &Argument::SymInt(a.clone()))).collect()
            }
            Argument::Tensors(v) => {
                v.iter().map(|n| Expr::from_arg(cx, &Argument::Tensor(n.clone()))).collect()
            }
            _ => Expr::from_arg(cx, arg).map(|one| vec![one]),
        }
    }
}

impl FromArg for i64 {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_one_of(&["int", "SymInt"])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        Expr::from_arg(cx, arg)?.as_int().ok_or_else(|| wanted("an integer known at export", arg))
    }
}

impl FromArg for Vec<i64> {
    fn accepts(ty: &ParamType) -> bool {
        Vec::<Expr>::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        let all = Vec::<Expr>::from_arg(cx, arg)?;
        all.iter()
            .map(Expr::as_int)
            .collect::<Option<_>>()
            .ok_or_else(|| wanted("integers known at export", arg))
    }
}

impl FromArg for bool {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_one_of(&["bool"])
    }

    fn from_arg(_: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Bool(b) | Argument::SymBool(SymArg::Value(b)) => Ok(*b),
            Argument::Int(i) => Ok(*i != 0),
            _ => Err(wanted("a bool", arg)),
        }
    }
}

impl FromArg for Vec<bool> {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_list_of(&["bool"])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Bools(v) => Ok(v.clone()),
            Argument::Tensors(v) if v.is_empty() => Ok(Vec::new()),
            _ => bool::from_arg(cx, arg).map(|b| vec![b]),
        }
    }
}

impl FromArg for f64 {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_one_of(&["float", "Scalar", "int"])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        Ok(Scalar::from_arg(cx, arg)?.to_f64())
    }
}

impl FromArg for Vec<f64> {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_list_of(&["float", "Scalar"])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Floats(v) => Ok(v.clone()),
            Argument::Ints(v) => Ok(v.iter().map(|&i| i as f64).collect()),
            Argument::Tensors(v) if v.is_empty() => Ok(Vec::new()),
            _ => f64::from_arg(cx, arg).map(|f| vec![f]),
        }
    }
}

impl FromArg for Scalar {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_one_of(&["Scalar", "float", "int", "bool", "number"])
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match number(cx, arg) {
            Some(TensorOrScalar::Scalar(s)) => Ok(s),
            _ => Err(wanted("a number known at export", arg)),
        }
    }
}

impl FromArg for Number {
    fn accepts(ty: &ParamType) -> bool {
        Scalar::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match number(cx, arg) {
            Some(TensorOrScalar::Scalar(scalar)) => Ok(Number::Known(scalar)),
            Some(TensorOrScalar::SymInt(e) | TensorOrScalar::SymFloat(e)) => {
                Ok(Number::Computed(cx.number(&e)))
            }
            _ => Err(wanted("a number", arg)),
        }
    }
}

impl FromArg for String {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_one_of(&["str"])
    }

    fn from_arg(_: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::String(s) => Ok(s.to_string()),
            _ => Err(wanted("a string", arg)),
        }
    }
}

impl FromArg for Vec<String> {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_list_of(&["str"])
    }

    fn from_arg(_: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Strings(v) => Ok(v.iter().map(ToString::to_string).collect()),
            Argument::Tensors(v) if v.is_empty() => Ok(Vec::new()),
            _ => Err(wanted("a list of strings", arg)),
        }
    }
}

impl FromArg for Vec<Vec<i64>> {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_list_of(&["int[]"])
    }

    fn from_arg(_: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::IntLists(v) => Ok(v.clone()),
            Argument::Tensors(v) if v.is_empty() => Ok(Vec::new()),
            _ => Err(wanted("a list of lists of integers", arg)),
        }
    }
}

impl FromArg for DType {
    fn accepts(ty: &ParamType) -> bool {
        ty.is_one_of(&["ScalarType"])
    }

    fn from_arg(_: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::DType(d) => Ok(*d),
            _ => Err(wanted("a dtype", arg)),
        }
    }
}
