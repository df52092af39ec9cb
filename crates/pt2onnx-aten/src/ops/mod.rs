//! The lowerings, one file per family; each file's `OPS` table lists what it lowers.

mod activation;
mod arithmetic;
mod attention;
mod casting;
mod comparison;
mod convolution;
mod creation;
mod diagonals;
mod identity;
mod index_put;
mod indexing;
mod interpolation;
mod joining;
mod linear;
mod masks;
mod normalization;
mod padding;
mod pooling;
mod reduction;
mod repeating;
mod scattering;
mod shapes;
mod slicing;
mod splitting;
mod strided;
mod view;
mod writing;

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
    diagonals::OPS,
    identity::OPS,
    index_put::OPS,
    indexing::OPS,
    interpolation::OPS,
    joining::OPS,
    linear::OPS,
    masks::OPS,
    normalization::OPS,
    padding::OPS,
    pooling::OPS,
    reduction::OPS,
    repeating::OPS,
    scattering::OPS,
    slicing::OPS,
    splitting::OPS,
    strided::OPS,
    view::OPS,
    writing::OPS,
];
