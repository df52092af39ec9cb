//! Gathers the parts of a lowering's context: type promotion, complex tensors, recorded outputs.

mod axes;
mod complex;
mod context;
mod number;
mod outputs;
mod promote;
mod scope;

pub use axes::axis_of;
pub use complex::{Mode, Parts};
pub use context::Cx;
pub use context::{Call, Numbers};
pub use number::Number;
pub use outputs::Outputs;
pub use outputs::Recorded;
pub use promote::TensorOrScalar;
pub use scope::Scope;
