//! Lists the translations of ops of neural networks.

pub(crate) mod adaptive_pooling;
pub(crate) mod affine;
pub(crate) mod attention;
pub(crate) mod convolution;
pub(crate) mod ctc;
pub(crate) mod dropout;
pub(crate) mod embedding_bag;
pub(crate) mod images;
pub(crate) mod interpolation;
pub(crate) mod loss;
pub(crate) mod loss_class;
pub(crate) mod normalization;
pub(crate) mod observers;
pub(crate) mod packed;
pub(crate) mod pooling;
pub(crate) mod quantization;
pub(crate) mod recurrent;
pub(crate) mod vision;

use crate::AtenOp;

pub(crate) static FAMILIES: &[&[AtenOp]] = &[
    adaptive_pooling::OPS,
    affine::OPS,
    attention::OPS,
    convolution::OPS,
    ctc::OPS,
    dropout::OPS,
    embedding_bag::OPS,
    images::OPS,
    interpolation::OPS,
    loss::OPS,
    loss_class::OPS,
    normalization::OPS,
    observers::OPS,
    packed::OPS,
    pooling::OPS,
    quantization::OPS,
    recurrent::OPS,
    vision::OPS,
];
