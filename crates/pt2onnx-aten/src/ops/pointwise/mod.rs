//! Lists the translations of ops that work element by element.

pub(crate) mod activation;
pub(crate) mod activation_backward;
pub(crate) mod arithmetic;
pub(crate) mod bitwise;
pub(crate) mod casting;
pub(crate) mod comparison;
pub(crate) mod complex;
pub(crate) mod division;
pub(crate) mod floats;
pub(crate) mod special;
pub(crate) mod special_bessel;
pub(crate) mod special_gamma;
pub(crate) mod special_polynomials;
pub(crate) mod unary;

use crate::AtenOp;

pub(crate) static FAMILIES: &[&[AtenOp]] = &[
    activation::OPS,
    activation_backward::OPS,
    arithmetic::OPS,
    bitwise::OPS,
    casting::OPS,
    comparison::OPS,
    complex::OPS,
    division::OPS,
    floats::OPS,
    special::OPS,
    special_bessel::OPS,
    special_gamma::OPS,
    special_polynomials::OPS,
    unary::OPS,
];
