//! The context of a lowering.

mod axes;
mod complex;
mod context;
mod number;
mod outputs;
mod promote;
mod scope;

pub(crate) use axes::axis_of;
pub(crate) use complex::{Mode, Parts};
pub use context::Cx;
pub(crate) use context::{Call, Numbers};
pub use number::Number;
pub use outputs::Outputs;
pub(crate) use outputs::Recorded;
pub use promote::TensorOrScalar;
pub(crate) use scope::Scope;
