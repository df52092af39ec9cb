//! Fourier transforms.

pub(crate) mod fft;
pub(crate) mod stft;

use crate::AtenOp;

pub(crate) static FAMILIES: &[&[AtenOp]] = &[fft::OPS, stft::OPS];
