//! The lowerings, one file per family; each file's `OPS` table lists what it lowers.

mod activation;
mod activation_backward;
mod arithmetic;
mod attention;
mod bitwise;
mod casting;
mod comparison;
mod complex_math;
mod complex_ops;
mod convolution;
mod creation;
mod dropout;
mod floats;
mod identity;
mod indexing;
mod interpolation;
mod joining;
mod linear;
mod loops;
mod normalization;
mod padding;
mod pooling;
mod precision;
mod reduction;
mod special;
mod special_bessel;
mod special_coefficients;
mod special_gamma;
mod special_polynomials;
mod unary;
mod view;

use crate::AtenOp;

/// Every family's table.
pub(crate) static FAMILIES: &[&[AtenOp]] = &[
    activation::OPS,
    activation_backward::OPS,
    arithmetic::OPS,
    attention::OPS,
    bitwise::OPS,
    casting::OPS,
    comparison::OPS,
    complex_ops::OPS,
    convolution::OPS,
    creation::OPS,
    dropout::OPS,
    floats::OPS,
    identity::OPS,
    indexing::OPS,
    interpolation::OPS,
    joining::OPS,
    linear::OPS,
    normalization::OPS,
    padding::OPS,
    pooling::OPS,
    reduction::OPS,
    special::OPS,
    special_bessel::OPS,
    special_gamma::OPS,
    special_polynomials::OPS,
    unary::OPS,
    view::OPS,
];
