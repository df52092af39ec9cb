//! The lowerings, one file per family; each file's `OPS` table lists what it lowers.

mod activation;
mod activation_backward;
mod arithmetic;
mod attention;
mod bilinear;
mod bitwise;
mod casting;
mod common_reduce;
mod comparison;
mod complex_math;
mod complex_ops;
mod contraction;
mod convolution;
mod creation;
mod cumulative;
mod custom;
mod diagonals;
mod dropout;
mod embedding_bag;
mod fft;
mod floats;
mod identity;
mod images;
mod index_put;
mod indexing;
mod interpolation;
mod joining;
mod linalg;
mod linear;
mod loops;
mod loss;
mod loss_class;
mod masks;
mod normalization;
mod norms;
mod num;
mod padding;
mod pooling;
mod precision;
mod quantization;
mod random;
mod recurrent;
mod reduction;
mod repeating;
mod scattering;
mod searching;
mod segments;
mod shapes;
mod slicing;
mod sliding;
mod sorting;
mod special;
mod special_bessel;
mod special_coefficients;
mod special_gamma;
mod special_polynomials;
mod splitting;
mod stft;
mod strided;
mod unary;
mod variance;
mod view;
mod vision;
mod windows;
mod writing;

use crate::AtenOp;

/// Every family's table.
pub(crate) static FAMILIES: &[&[AtenOp]] = &[
    activation::OPS,
    activation_backward::OPS,
    arithmetic::OPS,
    attention::OPS,
    bilinear::OPS,
    bitwise::OPS,
    casting::OPS,
    comparison::OPS,
    complex_ops::OPS,
    contraction::OPS,
    convolution::OPS,
    creation::OPS,
    cumulative::OPS,
    custom::OPS,
    diagonals::OPS,
    dropout::OPS,
    embedding_bag::OPS,
    fft::OPS,
    floats::OPS,
    identity::OPS,
    images::OPS,
    index_put::OPS,
    indexing::OPS,
    interpolation::OPS,
    joining::OPS,
    linalg::cholesky::OPS,
    linalg::eigen::OPS,
    linalg::functions::OPS,
    linalg::ldl::OPS,
    linalg::lu::OPS,
    linalg::qr::OPS,
    linalg::schur::OPS,
    linalg::solve::OPS,
    linalg::svd::OPS,
    linear::OPS,
    loss::OPS,
    loss_class::OPS,
    masks::OPS,
    normalization::OPS,
    norms::OPS,
    padding::OPS,
    pooling::OPS,
    quantization::OPS,
    random::OPS,
    recurrent::OPS,
    reduction::OPS,
    repeating::OPS,
    scattering::OPS,
    searching::OPS,
    segments::OPS,
    slicing::OPS,
    sorting::OPS,
    special::OPS,
    special_bessel::OPS,
    special_gamma::OPS,
    special_polynomials::OPS,
    splitting::OPS,
    stft::OPS,
    strided::OPS,
    unary::OPS,
    variance::OPS,
    view::OPS,
    vision::OPS,
    windows::OPS,
    writing::OPS,
];
