//! Replaces operators that change the shape of a tensor: shapes and ranges, slices, splits and
//! padding.

pub(super) mod padding;
pub(super) mod shapes;
pub(super) mod slicing;
