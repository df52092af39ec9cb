//! The lowerings, one file per family; each file's `OPS` table lists what it lowers.

mod activation;
mod arithmetic;
mod attention;
mod bilinear;
mod casting;
mod comparison;
mod convolution;
mod creation;
mod custom;
mod embedding_bag;
mod identity;
mod images;
mod indexing;
mod interpolation;
mod joining;
mod linear;
mod normalization;
mod padding;
mod pooling;
mod quantization;
mod recurrent;
mod reduction;
mod view;
mod vision;
mod windows;

use crate::AtenOp;

/// Every family's table.
pub(crate) static FAMILIES: &[&[AtenOp]] = &[
    activation::OPS,
    arithmetic::OPS,
    attention::OPS,
    bilinear::OPS,
    casting::OPS,
    comparison::OPS,
    convolution::OPS,
    creation::OPS,
    custom::OPS,
    embedding_bag::OPS,
    identity::OPS,
    images::OPS,
    indexing::OPS,
    interpolation::OPS,
    joining::OPS,
    linear::OPS,
    normalization::OPS,
    padding::OPS,
    pooling::OPS,
    quantization::OPS,
    recurrent::OPS,
    reduction::OPS,
    view::OPS,
    vision::OPS,
];
