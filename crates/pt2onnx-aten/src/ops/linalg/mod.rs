//! Lists the translations of linear algebra: products, factors, linear systems, eigenvalues.

pub(crate) mod bilinear;
pub(crate) mod cholesky;
pub(crate) mod contraction;
pub(crate) mod eigen;
pub(crate) mod functions;
pub(crate) mod ldl;
pub(crate) mod linear;
pub(crate) mod lu;
pub(crate) mod qr;
pub(crate) mod schur;
pub(crate) mod solve;
pub(crate) mod svd;

use crate::AtenOp;

pub(crate) static FAMILIES: &[&[AtenOp]] = &[
    bilinear::OPS,
    cholesky::OPS,
    contraction::OPS,
    eigen::OPS,
    functions::OPS,
    ldl::OPS,
    linear::OPS,
    lu::OPS,
    qr::OPS,
    schur::OPS,
    solve::OPS,
    svd::OPS,
];
