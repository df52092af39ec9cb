//! Arguments of FX nodes as parameters of lowerings: binding by the schema, defaults, conversion.

mod bind;
mod claims;
mod from_arg;
mod given;
mod operand;
mod scalars;
mod tensors;

pub use bind::Args;
pub use claims::Claims;
pub use from_arg::{FromArg, Ignored, brief, wanted};
pub use given::{Given, GivenArg};
pub use operand::number;
