//! Weights apart from the model: leaving them out, reading them from files, putting them in.

mod apply;
mod held;
mod inputs;
mod misfit;
mod notes;
mod read;

pub(crate) use apply::apply;
pub use apply::{apply_weights, apply_weights_with};
pub(crate) use held::{HeldWeights, is_initializer};
pub(crate) use inputs::make_constants;
pub use misfit::{Misfit, Unused, WeightType};
pub use read::{WeightsError, read_weights};
