//! From the named arguments of an FX node to the parameters of a translation: schema binding, defaults, conversion.

mod bind;
mod claims;
mod from_arg;
mod operand;
mod scalars;
mod tensors;

pub use bind::Args;
pub use claims::Claims;
pub use from_arg::FromArg;
pub(crate) use from_arg::Ignored;
pub(crate) use operand::number;
