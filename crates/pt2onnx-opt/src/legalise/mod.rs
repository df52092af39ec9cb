//! Legalisation: rewrites a model from the canonical opset to an older one, exactly or not at all,
//! and nodes of older opsets into the canonical form.
//!
//! Each version of an operator is a step. Downwards, nothing is done if the older form takes the
//! node and means the same. Otherwise the rule of that operator and step rewrites the node. Without
//! a rule, the model needs a newer opset.

mod absent;
mod control;
#[cfg(test)]
mod coverage;
mod downgrade;
mod early;
mod error;
mod exact;
mod forms;
mod index;
mod insert_casts;
mod linalg;
mod nn;
mod pointwise;
mod replace;
mod semantics;
mod shape;
mod steps;
mod up;
mod upgrade;

use error::Reason;
use forms::{
    LONGEST, attributes, constant_numbers, floats, front, input, ints_as_attribute, keep_inputs,
    known_ints, rank_of, set, unless, without,
};
use replace::{Emitted, Outcome, Rewritten, before, replace};

pub(crate) use downgrade::legalise_from;
pub use downgrade::{legalise, legalise_for};
pub use error::{Inexpressible, LegaliseError};
pub(crate) use index::indices::nonnegative_numbers;
pub(crate) use pointwise::floats::compute_bits;
pub use semantics::means_the_same;
pub(crate) use upgrade::upgrade;
