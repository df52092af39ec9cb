//! Replaces operators that compute each element by itself: activation functions, arithmetic,
//! comparisons, random numbers.

pub(super) mod activation;
pub(super) mod bits;
pub(super) mod comparison;
pub(super) mod floats;
pub(super) mod integers;
pub(super) mod random;
