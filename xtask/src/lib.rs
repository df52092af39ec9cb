//! What tasks and benches share.

pub mod modules;
pub mod synth;
