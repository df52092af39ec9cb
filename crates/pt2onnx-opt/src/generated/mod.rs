//! Tables that `cargo xtask` generates.

pub(crate) mod ort_cpu;
