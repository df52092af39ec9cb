//! The translations: a file per family of ops, whose `OPS` table lists what it translates.
//!
//! A family never imports another one: what families share is in [`math`](crate::math).

pub(crate) mod create;
pub(crate) mod index;
pub(crate) mod library;
pub(crate) mod linalg;
pub(crate) mod nn;
pub(crate) mod pointwise;
pub(crate) mod reduce;
pub(crate) mod shape;
pub(crate) mod signal;

use crate::AtenOp;

/// The table of each family, sorted by name.
pub fn tables() -> impl Iterator<Item = &'static [AtenOp]> {
    let groups = [
        pointwise::FAMILIES,
        reduce::FAMILIES,
        shape::FAMILIES,
        index::FAMILIES,
        create::FAMILIES,
        linalg::FAMILIES,
        nn::FAMILIES,
        signal::FAMILIES,
    ];
    groups.into_iter().flatten().copied().chain([library::OPS])
}
