//! The lowerings, one file per family; each file's `OPS` table lists what it lowers.

mod activation;
mod arithmetic;
mod attention;
mod casting;
mod comparison;
mod contraction;
mod convolution;
mod creation;
mod fft;
mod identity;
mod indexing;
mod interpolation;
mod joining;
mod linalg;
mod linear;
mod normalization;
mod num;
mod padding;
mod pooling;
mod reduction;
mod stft;
mod view;

use crate::AtenOp;

/// Every family's table.
pub(crate) static FAMILIES: &[&[AtenOp]] = &[
    activation::OPS,
    arithmetic::OPS,
    attention::OPS,
    casting::OPS,
    comparison::OPS,
    contraction::OPS,
    convolution::OPS,
    creation::OPS,
    fft::OPS,
    identity::OPS,
    indexing::OPS,
    interpolation::OPS,
    joining::OPS,
    linalg::cholesky::OPS,
    linalg::eigen::OPS,
    linalg::functions::OPS,
    linalg::lu::OPS,
    linalg::qr::OPS,
    linalg::solve::OPS,
    linalg::svd::OPS,
    linear::OPS,
    normalization::OPS,
    padding::OPS,
    pooling::OPS,
    reduction::OPS,
    stft::OPS,
    view::OPS,
];
