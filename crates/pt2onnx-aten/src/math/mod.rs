//! Formulas and algorithms that several families of ops use.

pub(crate) mod arcs;
pub(crate) mod bessel;
pub(crate) mod coefficients;
pub(crate) mod complex;
mod complex_args;
pub(crate) mod control;
pub(crate) mod distance;
pub(crate) mod division;
pub(crate) mod dropout;
pub(crate) mod elementary;
pub(crate) mod erf;
pub(crate) mod fourier;
pub(crate) mod gamma;
pub(crate) mod index;
pub(crate) mod matrix;
pub(crate) mod pool;
pub(crate) mod precision;
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod resampling;
pub(crate) mod shape;
pub(crate) mod sort;
pub(crate) mod window;
