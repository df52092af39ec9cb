//! What families of ops share: formulas and algorithms over ONNX operators.

pub(crate) mod coefficients;
pub(crate) mod complex_math;
pub(crate) mod control;
pub(crate) mod index;
pub(crate) mod matrix;
pub(crate) mod num;
pub(crate) mod precision;
pub(crate) mod reduce;
pub(crate) mod shape;
pub(crate) mod window;
