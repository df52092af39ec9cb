//! Replaces operators of neural networks: attention, normalizations, recurrent networks, pools,
//! resizing, sampling, windows, losses, quantization.

pub(super) mod affine;
pub(super) mod attention;
pub(super) mod columns;
pub(super) mod images;
pub(super) mod loss;
pub(super) mod normalization;
pub(super) mod quantization;
pub(super) mod recurrent;
pub(super) mod resample;
pub(super) mod rotary;
pub(super) mod sampling;
