//! From the named arguments of an FX node to the parameters of a lowering: schema binding, defaults, conversion.

use crate::{Cx, Lowered, Schema, complex::Mode};
use pt2onnx_fx::graph::{Argument, Name, NamedArg, SymArg, ValueMeta};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

/// Parameters that say where and how PyTorch computes: nothing of it reaches the ONNX graph.
const WITHOUT_MEANING: &[&str] = &[
    "copy",
    "cudnn_enable",
    "cudnn_enabled",
    "device",
    "generator",
    "implicit",
    "layout",
    "memory_format",
    "non_blocking",
    "pin_memory",
    "scale_grad_by_freq",
    "sparse",
    "sparse_grad",
];

/// An argument that does not fit its parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("argument `{name}`: {what}")]
pub struct ArgError {
    /// The parameter.
    pub name: String,
    /// What is wrong.
    pub what: String,
}

/// A node's arguments bound to its schema, handed out in order.
pub struct Args<'a> {
    /// Name, value, and whether nobody needs to look at it: it is at its default, or was taken.
    bound: Vec<(&'a str, Argument, bool)>,
    next: usize,
}

impl<'a> Args<'a> {
    /// Binds named arguments, and positional ones in order; fills in the defaults.
    pub(crate) fn bind(schema: &'a Schema, given: &[NamedArg]) -> Lowered<Self> {
        let error =
            |name: &str, what: &str| ArgError { name: name.to_owned(), what: what.to_owned() };
        let mut bound = Vec::with_capacity(schema.params.len());
        let known = |arg: &NamedArg| schema.params.iter().any(|p| *p.name == *arg.name);
        // The functional twin of an in-place op may name its first parameter otherwise (`input`, not `self`).
        let places = |arg: &NamedArg| arg.name.is_empty() || (&*arg.name == "self" && !known(arg));
        if let Some(arg) = given.iter().find(|a| !known(a) && !places(a)) {
            return Err(error(&arg.name, &format!("{} has no such parameter", schema.name)).into());
        }
        for (i, param) in schema.params.iter().enumerate() {
            let by_name = || given.iter().find(|a| *a.name == *param.name);
            let by_place = || given.get(i).filter(|a| places(a));
            let given = by_name().or_else(by_place).map(|a| a.value.clone());
            let at_default = given.is_none() || given == param.default;
            let value = given.or_else(|| param.default.clone());
            let of_pytorch = ["aten::", "prims::"].iter().any(|n| schema.name.starts_with(n));
            if !(of_pytorch && WITHOUT_MEANING.contains(&&*param.name)) {
                let value = value.ok_or_else(|| error(&param.name, "is missing"))?;
                bound.push((&*param.name, value, at_default));
            }
        }
        Ok(Self { bound, next: 0 })
    }

    /// The next argument as what the lowering wants.
    pub(crate) fn next<T: FromArg>(&mut self, cx: &Cx) -> Lowered<T> {
        let Some((name, value, _)) = self.bound.get(self.next) else {
            let what = "the lowering takes more parameters than the schema has".to_owned();
            return Err(ArgError { name: format!("#{}", self.next), what }.into());
        };
        self.next += 1;
        T::from_arg(cx, value).map_err(|what| ArgError { name: (*name).to_owned(), what }.into())
    }

    /// The argument of that name as what the lowering wants.
    ///
    /// # Errors
    /// Where the schema has no such parameter, or the argument does not fit.
    pub fn get<T: FromArg>(&mut self, cx: &Cx, name: &str) -> Lowered<T> {
        let error = |what: String| ArgError { name: name.to_owned(), what };
        let found = self.bound.iter_mut().find(|(n, ..)| *n == name);
        let (_, value, taken) =
            found.ok_or_else(|| error("the schema has no such parameter".to_owned()))?;
        *taken = true;
        Ok(T::from_arg(cx, value).map_err(error)?)
    }

    /// Checks that what the lowering does not take is at its default.
    pub(crate) fn finish(&mut self) -> Lowered<()> {
        match self.bound.iter().skip(self.next).find(|(_, _, done)| !done) {
            Some((name, value, _)) => {
                let what = format!("only its default is supported, given is {}", brief(value));
                Err(ArgError { name: (*name).to_owned(), what }.into())
            }
            None => Ok(()),
        }
    }
}

/// An argument for messages.
fn brief(value: &Argument) -> String {
    let text = format!("{value:?}");
    text.chars().take(120).collect()
}

/// What a parameter of a lowering may be.
pub trait FromArg: Sized {
    /// Converts an argument.
    ///
    /// # Errors
    /// In words, what does not fit.
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String>;
}

/// A `Tensor` parameter that was given a number, a `Scalar` parameter that was given a symbolic one: operands of
/// arithmetic. Numbers do not take part in type promotion as tensors do.
#[derive(Clone, Debug)]
pub enum TensorOrScalar {
    /// A tensor.
    Tensor(Value),
    /// A known number.
    Scalar(Scalar),
    /// An integer over symbols.
    SymInt(Expr),
    /// A float over symbols.
    SymFloat(Expr),
}

impl From<Value> for TensorOrScalar {
    fn from(v: Value) -> Self {
        TensorOrScalar::Tensor(v)
    }
}

impl From<Scalar> for TensorOrScalar {
    fn from(s: Scalar) -> Self {
        TensorOrScalar::Scalar(s)
    }
}

fn wanted(what: &str, arg: &Argument) -> String {
    format!("{what} is wanted, given is {}", brief(arg))
}

/// A number that stands in the program as itself or as the result of a node.
pub(crate) fn number(cx: &Cx, arg: &Argument) -> Option<TensorOrScalar> {
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

/// A number where a tensor is wanted becomes a 0-d constant of PyTorch's default type for it.
impl FromArg for Value {
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        if let Argument::Tensor(name) | Argument::OptionalTensor(Some(name)) = arg {
            let value = cx
                .value(name)
                .ok_or_else(|| format!("the tensor `{name}` is not defined before it is used"))?;
            return match (cx.is_complex(name), cx.mode()) {
                (true, Mode::Real) => {
                    Err(format!("`{name}` is complex, which this op is not translated for"))
                }
                (true, Mode::Part(part)) => Ok(cx.part(value, part)),
                // The imaginary parts of a real tensor.
                (false, Mode::Part(1)) if cx.dtype(value).is_float() => {
                    Ok(cx.full(&cx.shape(value), 0, cx.dtype(value)))
                }
                _ => Ok(value),
            };
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

impl FromArg for Expr {
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Int(i) | Argument::SymInt(SymArg::Value(i)) => Ok(Expr::int(*i)),
            Argument::SymInt(SymArg::Expr(e)) => Ok(e.clone()),
            Argument::SymInt(SymArg::Name(name)) => {
                cx.sym_int(name).ok_or_else(|| format!("`{name}` has no expression"))
            }
            // A tensor of one element where a size is wanted: PyTorch reads it with `item`.
            Argument::Tensor(name) => {
                let known = cx.value(name).and_then(|v| cx.contents(v)).filter(|c| c.len() == 1);
                known.and_then(|mut c| c.pop()).ok_or_else(|| wanted("an integer", arg))
            }
            _ => Err(wanted("an integer", arg)),
        }
    }
}

impl FromArg for Vec<Expr> {
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
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        Expr::from_arg(cx, arg)?.as_int().ok_or_else(|| wanted("an integer known at export", arg))
    }
}

impl FromArg for Vec<i64> {
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        let all = Vec::<Expr>::from_arg(cx, arg)?;
        all.iter()
            .map(Expr::as_int)
            .collect::<Option<_>>()
            .ok_or_else(|| wanted("integers known at export", arg))
    }
}

impl FromArg for bool {
    fn from_arg(_: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Bool(b) | Argument::SymBool(SymArg::Value(b)) => Ok(*b),
            Argument::Int(i) => Ok(*i != 0),
            _ => Err(wanted("a bool", arg)),
        }
    }
}

impl FromArg for Vec<bool> {
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Bools(v) => Ok(v.clone()),
            Argument::Tensors(v) if v.is_empty() => Ok(Vec::new()),
            _ => bool::from_arg(cx, arg).map(|b| vec![b]),
        }
    }
}

impl FromArg for f64 {
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        Ok(Scalar::from_arg(cx, arg)?.to_f64())
    }
}

impl FromArg for Vec<f64> {
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
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match number(cx, arg) {
            Some(TensorOrScalar::Scalar(s)) => Ok(s),
            _ => Err(wanted("a number known at export", arg)),
        }
    }
}

impl FromArg for String {
    fn from_arg(_: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::String(s) => Ok(s.to_string()),
            _ => Err(wanted("a string", arg)),
        }
    }
}

impl FromArg for Vec<String> {
    fn from_arg(_: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Strings(v) => Ok(v.iter().map(ToString::to_string).collect()),
            Argument::Tensors(v) if v.is_empty() => Ok(Vec::new()),
            _ => Err(wanted("a list of strings", arg)),
        }
    }
}

impl FromArg for Vec<Vec<i64>> {
    fn from_arg(_: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::IntLists(v) => Ok(v.clone()),
            Argument::Tensors(v) if v.is_empty() => Ok(Vec::new()),
            _ => Err(wanted("a list of lists of integers", arg)),
        }
    }
}

/// An argument of whatever kind, of which a lowering makes nothing.
pub(crate) struct Ignored;

impl FromArg for Ignored {
    fn from_arg(_: &Cx, _: &Argument) -> Result<Self, String> {
        Ok(Ignored)
    }
}

impl FromArg for DType {
    fn from_arg(_: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::DType(d) => Ok(*d),
            // Schemas spell defaults by c10's number of the type; int64 is the only one.
            Argument::Int(4) => Ok(DType::I64),
            _ => Err(wanted("a dtype", arg)),
        }
    }
}

impl<T: FromArg> FromArg for Option<T> {
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::None | Argument::OptionalTensor(None) => Ok(None),
            _ => T::from_arg(cx, arg).map(Some),
        }
    }
}

impl FromArg for Vec<Value> {
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Tensors(v) => {
                let one = |n: &Name| {
                    let value = Value::from_arg(cx, &Argument::Tensor(n.clone()))?;
                    // Beside complex tensors, real ones of any type have imaginary parts.
                    let zero = cx.mode() == Mode::Part(1) && !cx.is_complex(n);
                    Ok(if zero { cx.full(&cx.shape(value), 0, cx.dtype(value)) } else { value })
                };
                v.iter().map(one).collect()
            }
            _ => Err(wanted("a list of tensors", arg)),
        }
    }
}

impl FromArg for Vec<Option<Value>> {
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
