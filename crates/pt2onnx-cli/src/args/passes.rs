//! Defines the flags of the optimiser.

use super::{
    merge::{set, set_list},
    values,
};
use clap::Args;
use pt2onnx::{
    Options,
    opt::{self, Level, UnknownPass},
    parse_bytes,
};
use std::path::PathBuf;

/// What the optimiser may do.
#[derive(Debug, Args)]
#[command(next_help_heading = "Optimisation")]
pub struct Passes {
    /// How far to optimise: 0 not at all, 1 fold and simplify, 2 also fuse
    #[arg(long, value_name = "LEVEL", value_parser = values::level)]
    optimize: Option<u8>,
    /// The same as `--optimize 0`
    #[arg(long, conflicts_with = "optimize")]
    no_optimize: bool,
    /// Leave out a pass that `pt2onnx passes` lists; can be given several times
    #[arg(long, value_name = "PASS", value_parser = standard_pass)]
    skip_pass: Vec<String>,
    /// Replace what the rules in a file describe, in ONNX's textual syntax, at every level; can be
    /// given several times
    #[arg(long, value_name = "FILE.onnxtxt")]
    rules: Vec<PathBuf>,
    /// Fold constants of up to this many bytes, `optimize` those of up to 128 times as many; larger
    /// ones only if the file gets no larger
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    fold_limit: Option<u64>,
    /// Write weights of equal content once; `apply-weights` then knows them by the name of the
    /// first
    #[arg(long, alias = "merge-weights")]
    dedup_weights: bool,
}

impl Passes {
    /// Puts the flags that are given into the options.
    pub fn put(self, options: &mut Options) {
        let Self { optimize, no_optimize, skip_pass, rules, fold_limit, dedup_weights } = self;
        let level = optimize.or(no_optimize.then_some(0)).map(|level| match level {
            0 => Level::Off,
            1 => Level::Simplify,
            _ => Level::Fuse,
        });
        set(&mut options.optimize, level);
        set_list(&mut options.skip_pass, skip_pass);
        set_list(&mut options.rules, rules);
        set(&mut options.fold_limit, fold_limit);
        options.dedup_weights |= dedup_weights;
    }
}

/// The name, if a standard pass has it.
fn standard_pass(name: &str) -> Result<String, UnknownPass> {
    opt::Passes::standard().get(name).map(|pass| pass.name.to_owned())
}
