//! Lists the translations of ops that reduce, accumulate, sort and search along dimensions.

pub(crate) mod covariance;
pub(crate) mod cumulative;
pub(crate) mod histograms;
pub(crate) mod norms;
pub(crate) mod reduction;
pub(crate) mod samples;
pub(crate) mod searching;
pub(crate) mod segments;
pub(crate) mod sorting;
pub(crate) mod variance;

use crate::AtenOp;

pub(crate) static FAMILIES: &[&[AtenOp]] = &[
    covariance::OPS,
    cumulative::OPS,
    histograms::OPS,
    norms::OPS,
    reduction::OPS,
    samples::OPS,
    searching::OPS,
    segments::OPS,
    sorting::OPS,
    variance::OPS,
];
