//! Lists the translations of ops that change shapes and move elements.

pub(crate) mod bits;
pub(crate) mod diagonals;
pub(crate) mod identity;
pub(crate) mod joining;
pub(crate) mod padding;
pub(crate) mod repeating;
pub(crate) mod slicing;
pub(crate) mod splitting;
pub(crate) mod strided;
pub(crate) mod view;

use crate::AtenOp;

pub(crate) static FAMILIES: &[&[AtenOp]] = &[
    bits::OPS,
    diagonals::OPS,
    identity::OPS,
    joining::OPS,
    padding::OPS,
    repeating::OPS,
    slicing::OPS,
    splitting::OPS,
    strided::OPS,
    view::OPS,
];
