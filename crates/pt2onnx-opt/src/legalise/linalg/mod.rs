//! Replaces operators by matrix products: `Einsum` and Fourier transforms.

pub(super) mod einsum;
pub(super) mod signal;
