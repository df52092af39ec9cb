//! What tasks and benches share.

pub mod compare;
pub mod modules;
pub mod synth;
