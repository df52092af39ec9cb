//! The lowerings, one file per family; each file's `OPS` table lists what it lowers.

mod activation;
mod arithmetic;
mod attention;
mod casting;
mod comparison;
mod convolution;
mod creation;
mod identity;
mod indexing;
mod interpolation;
mod joining;
mod linear;
mod normalization;
mod padding;
mod pooling;
mod reduction;
mod view;
mod windows;

use crate::AtenOp;

/// Every family's table.
pub(crate) static FAMILIES: &[&[AtenOp]] = &[
    activation::OPS,
    arithmetic::OPS,
    attention::OPS,
    casting::OPS,
    comparison::OPS,
    convolution::OPS,
    creation::OPS,
    identity::OPS,
    indexing::OPS,
    interpolation::OPS,
    joining::OPS,
    linear::OPS,
    normalization::OPS,
    padding::OPS,
    pooling::OPS,
    reduction::OPS,
    view::OPS,
];
