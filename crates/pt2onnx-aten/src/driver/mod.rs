//! The driver: walks a program's nodes, binds arguments, calls translations, and checks what they give against what PyTorch
//! recorded.

mod control;
mod foreign;
mod functions;
mod kinds;
mod lower;
mod metadata;
mod options;
mod signature;
mod state;
mod types;
mod usage;
mod walk;

pub use lower::{Lowering, lower};
pub use options::{Detail, Operators, Options, State};
pub use usage::{OpUse, emitted, ops_used};
