//! Legalisation: from the canonical opset down to the one a runtime asks for, exactly or not at all.
//!
//! Every version of an operator is a step. A node takes a step down if the older form accepts it as it is and means
//! the same; else the rule of that operator and step rewrites it; else the model needs a newer opset.

mod activation;
mod attention;
mod axes;
mod bits;
mod bridge;
mod comparison;
mod descent;
mod einsum;
mod error;
mod forms;
mod images;
mod indexing;
mod indices;
mod integers;
mod loss;
mod meaning;
mod normalization;
mod padding;
mod quantization;
mod random;
mod replace;
mod resample;
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

pub use descent::{legalise, legalise_for};
pub use error::{Failure, LegaliseError};
pub use meaning::means_the_same;
