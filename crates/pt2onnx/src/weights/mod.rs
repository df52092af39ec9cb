//! Weights apart from the model: leaving them out, reading them from files, putting them in.

mod apply;
mod held;
mod misfit;
mod read;

pub(crate) use apply::apply;
pub use apply::apply_weights;
pub(crate) use held::{HeldWeights, are_copied};
pub use misfit::{Misfit, WeightType};
pub use read::{WeightsError, read_weights};
