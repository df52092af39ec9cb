//! Parses the command line: commands, their flags, and the values of these.

mod choices;
mod cli;
mod compress;
mod merge;
mod names;
mod options;
mod passes;
mod running;
mod saving;
mod script;
mod values;
mod words;

pub use cli::{ApplyWeights, Check, Cli, Command, Convert, Diff, Inspect, Optimize, Show};
pub use options::defaults;
pub use running::{Run, Running, Verify};
pub use saving::check_data_file;
pub use values::Cut;
pub use words::misspelt;
