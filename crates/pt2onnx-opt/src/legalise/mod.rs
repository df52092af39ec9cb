//! Legalisation: rewrites a model from the canonical opset to an older one, exactly or not at all.
//!
//! Each version of an operator is a step. If the older form takes the node as it is and means the same, nothing is done.
//! Otherwise the rule of that operator and step rewrites the node. If there is no rule, the model needs a newer opset.

mod activation;
mod ascent;
mod attention;
mod axes;
mod bits;
mod bodies;
mod bridge;
mod comparison;
mod descent;
mod doubles;
mod early;
mod einsum;
mod error;
mod floats;
mod forms;
mod images;
mod indexing;
mod indices;
mod integers;
mod loss;
mod meaning;
mod normalization;
mod oldest;
mod padding;
mod quantization;
mod raise;
mod random;
mod recurrent;
mod replace;
mod resample;
mod retired;
mod rotary;
mod rules;
mod running;
mod scatter;
mod shapes;
mod signal;
mod slicing;
mod sorting;
#[cfg(test)]
mod steps;
mod wrapping;

pub(crate) use ascent::ascend;
pub(crate) use descent::legalise_from;
pub use descent::{legalise, legalise_for};
pub use error::{Failure, LegaliseError};
pub(crate) use floats::compute_bits;
pub(crate) use indices::nonnegative_numbers;
pub use meaning::means_the_same;
