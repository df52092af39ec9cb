//! Parses the command line: commands, their flags, and the values of these.

mod cli;
mod deferred;
mod options;
mod running;
mod tasks;
mod values;
mod words;

pub use cli::{ApplyWeights, Check, Cli, Command, Convert, Diff, Inspect, Optimize, Show};
pub use options::defaults;
pub use running::{Run, Running, Verify};
pub use values::Cut;
pub use words::misspelt;
