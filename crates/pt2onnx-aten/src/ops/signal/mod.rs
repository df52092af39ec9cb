//! Lists the translations of Fourier transforms and recursive filters.

pub(crate) mod fft;
pub(crate) mod filters;
pub(crate) mod stft;

use crate::AtenOp;

pub(crate) static FAMILIES: &[&[AtenOp]] = &[fft::OPS, filters::OPS, stft::OPS];
