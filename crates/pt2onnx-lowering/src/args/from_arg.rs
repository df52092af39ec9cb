//! The trait of types that a lowering's parameters can have.

use crate::{Cx, ParamType};
use pt2onnx_fx::{graph::Argument, printer};

/// A type that parameters of lowerings can have.
#[diagnostic::on_unimplemented(
    message = "a lowering cannot have a parameter of type `{Self}`",
    note = "parameters are `Value`, `TensorOrScalar`, `Complex`, `i64`, `f64`, `bool`, `Expr`, `Scalar`, `DType`, `String`, \
            `Option`s and lists of these; or one struct made by `arguments!`"
)]
pub trait FromArg: Sized {
    /// Whether such a parameter takes both parts of complex tensors.
    const TAKES_COMPLEX: bool = false;

    /// Whether it can take arguments of a schema's parameter of type `ty`.
    fn accepts(ty: &ParamType) -> bool;

    /// Converts an argument.
    ///
    /// # Errors
    /// Returns an error that says why the argument does not fit.
    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String>;

    /// The value for an op that has no such parameter. `None` means that this is an error.
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

/// An argument of any type, which a lowering ignores. It is `PhantomData` because Rust does not
/// warn of fields of that type that nothing reads.
pub type Ignored = std::marker::PhantomData<()>;

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

/// The argument as Python prints it, for messages. Long texts are cut.
pub fn brief(value: &Argument) -> String {
    printer::brief(printer::repr(value))
}

/// The message that an argument is not what a parameter takes.
pub fn wanted(what: &str, arg: &Argument) -> String {
    format!("expected {what}, found {}", brief(arg))
}
