//! Formulas and algorithms that several families of ops use.

pub mod arcs;
pub mod bessel;
pub mod coefficients;
pub mod complex;
pub mod control;
pub mod distance;
pub mod division;
pub mod dropout;
pub mod elementary;
pub mod erf;
pub mod fourier;
pub mod gamma;
pub mod index;
pub mod matrix;
pub mod pool;
pub mod precision;
pub mod progression;
pub mod quantization;
pub mod recurrent;
pub mod reduce;
pub mod resampling;
pub mod shape;
pub mod sort;
pub mod window;
