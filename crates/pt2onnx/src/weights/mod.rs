//! Weights apart from the model: detaching them, reading them from files, applying them.

mod apply;
mod detached_weights;
mod inputs;
mod notes;
mod read;
mod weight_mismatch;

pub(crate) use apply::apply;
pub use apply::{apply_weights, apply_weights_with};
pub(crate) use detached_weights::{DetachedWeights, is_initializer};
pub(crate) use inputs::make_constants;
pub use read::{WeightsError, read_weights};
pub use weight_mismatch::{Misfit, Unused, WeightType};
