//! Lists the translations of ops that make tensors.

pub(crate) mod creation;
pub(crate) mod random;
pub(crate) mod windows;

use crate::AtenOp;

pub(crate) static FAMILIES: &[&[AtenOp]] = &[creation::OPS, random::OPS, windows::OPS];
