//! Lists the translations of ops that read and write at indices and masks.

pub(crate) mod index_put;
pub(crate) mod indexing;
pub(crate) mod masks;
pub(crate) mod scattering;
pub(crate) mod writing;

use crate::AtenOp;

pub(crate) static FAMILIES: &[&[AtenOp]] =
    &[index_put::OPS, indexing::OPS, masks::OPS, scattering::OPS, writing::OPS];
