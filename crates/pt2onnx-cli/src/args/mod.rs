//! The command line.

mod choices;
mod cli;
mod merge;
mod options;
mod passes;
mod saving;
mod script;
mod values;

pub use cli::{ApplyWeights, Check, Cli, Command, Convert, Diff, Inspect, Optimize};
pub use saving::check_data_file;
pub use values::Cut;
