//! Legalisation: rewrites a model from the canonical opset to an older one, exactly or not at all.
//!
//! Each version of an operator is a step. If the older form takes the node as it is and means the
//! same, nothing is done. Otherwise the rule of that operator and step rewrites the node. If there
//! is no rule, the model needs a newer opset.

mod ascent;
mod bridge;
mod control;
mod descent;
mod early;
mod error;
mod exact;
mod forms;
mod index;
mod linalg;
mod meaning;
mod nn;
mod pointwise;
mod replace;
mod rules;
mod shape;
#[cfg(test)]
mod steps;

pub(crate) use ascent::ascend;
pub(crate) use descent::legalise_from;
pub use descent::{legalise, legalise_for};
pub use error::{Inexpressible, LegaliseError};
pub(crate) use index::indices::nonnegative_numbers;
pub use meaning::means_the_same;
pub(crate) use pointwise::floats::compute_bits;
