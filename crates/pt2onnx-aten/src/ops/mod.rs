//! The lowerings, one file per family; each file's `OPS` table lists what it lowers.

mod activation;
mod arithmetic;
mod attention;
mod casting;
mod common_reduce;
mod comparison;
mod convolution;
mod creation;
mod cumulative;
mod identity;
mod indexing;
mod interpolation;
mod joining;
mod linear;
mod loss;
mod loss_class;
mod normalization;
mod norms;
mod padding;
mod pooling;
mod random;
mod reduction;
mod searching;
mod segments;
mod sorting;
mod variance;
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
    cumulative::OPS,
    identity::OPS,
    indexing::OPS,
    interpolation::OPS,
    joining::OPS,
    linear::OPS,
    loss::OPS,
    loss_class::OPS,
    normalization::OPS,
    norms::OPS,
    padding::OPS,
    pooling::OPS,
    random::OPS,
    reduction::OPS,
    searching::OPS,
    segments::OPS,
    sorting::OPS,
    variance::OPS,
    view::OPS,
    windows::OPS,
];
