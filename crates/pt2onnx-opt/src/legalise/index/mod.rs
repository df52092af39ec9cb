//! Replaces operators that take axes or indices: gathering, scattering, sorting, and axes counted
//! from the end.

pub(super) mod axes;
pub(super) mod indexing;
pub(super) mod indices;
pub(super) mod scatter;
pub(super) mod sorting;
