//! The trait that converts an argument into a parameter.

use crate::{Cx, ParamType};
use pt2onnx_fx::graph::Argument;

/// What a parameter of a translation may be.
#[diagnostic::on_unimplemented(
    message = "a translation cannot have a parameter of type `{Self}`",
    note = "parameters are `Value`, `TensorOrScalar`, `Complex`, `i64`, `f64`, `bool`, `Expr`, `Scalar`, `DType`, `String`, \
            `Option`s and lists of these; or one struct made by `arguments!`"
)]
pub trait FromArg: Sized {
    /// Whether such a parameter takes complex tensors as they are: as real and imaginary parts.
    const TAKES_COMPLEX: bool = false;

    /// Whether it can hold arguments of a schema's parameter of that type.
    fn accepts(ty: &ParamType) -> bool;

    /// Converts an argument.
    ///
    /// # Errors
    /// Returns what does not fit, in words.
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String>;

    /// What it is for an op that has no such parameter; none where that is an error.
    fn absent() -> Option<Self> {
        None
    }
}

impl<T: FromArg> FromArg for Option<T> {
    const TAKES_COMPLEX: bool = T::TAKES_COMPLEX;

    fn accepts(ty: &ParamType) -> bool {
        T::accepts(&ParamType { optional: false, ..ty.clone() })
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::None | Argument::OptionalTensor(None) => Ok(None),
            _ => T::from_arg(cx, arg).map(Some),
        }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

/// An argument of any type that a translation does not look at. (Of this type, Rust allows fields that nothing reads.)
pub(crate) type Ignored = std::marker::PhantomData<()>;

impl FromArg for Ignored {
    fn accepts(_: &ParamType) -> bool {
        true
    }

    fn from_arg(_: &Cx, _: &Argument) -> Result<Self, String> {
        Ok(std::marker::PhantomData)
    }

    fn absent() -> Option<Self> {
        Some(std::marker::PhantomData)
    }
}

/// An argument for messages.
pub(super) fn brief(value: &Argument) -> String {
    let text = format!("{value:?}");
    text.chars().take(120).collect()
}

/// Says that an argument is not what a parameter takes.
pub(super) fn wanted(what: &str, arg: &Argument) -> String {
    format!("{what} is wanted, given is {}", brief(arg))
}
