//! What tasks and benches share.

pub mod synth;
