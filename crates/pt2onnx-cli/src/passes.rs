//! What is done to the model between translation and writing: options, and `pt2onnx passes`.

use clap::Args;
use pt2onnx::opt::{self, Level, Options, Pass, UnknownPass};

const OPTIMISATION: &str = "Optimisation";

#[derive(Debug, Args)]
pub struct Passes {
    /// How far to optimise: 0 not at all, 1 fold and simplify, 2 fuse as well
    #[arg(long, value_name = "LEVEL", default_value_t = 2, help_heading = OPTIMISATION)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=2))]
    optimize: u8,
    /// The same as `--optimize 0`
    #[arg(long, conflicts_with = "optimize", help_heading = OPTIMISATION)]
    no_optimize: bool,
    /// Leave a pass out, one that `pt2onnx passes` lists; may be given several times
    #[arg(long, value_name = "PASS", value_parser = pass, help_heading = OPTIMISATION)]
    skip_pass: Vec<&'static str>,
    /// Fold constants into new ones of up to so many bytes; larger ones only where the file gets no larger
    #[arg(long, value_name = "BYTES", help_heading = OPTIMISATION)]
    fold_limit: Option<usize>,
    /// Let weights of equal content be one; `apply-weights` then knows it by the name of the first
    #[arg(long, help_heading = OPTIMISATION)]
    merge_weights: bool,
}

impl Passes {
    /// As the optimiser takes them.
    pub fn options(&self) -> Options {
        let mut options = Options::from(match self.optimize {
            _ if self.no_optimize => Level::Off,
            0 => Level::Off,
            1 => Level::Simplify,
            _ => Level::Fuse,
        });
        let skipped = |p: &Pass| self.skip_pass.contains(&p.name);
        options.passes = options.passes.into_iter().filter(|p| !skipped(p)).collect();
        options.merge_weights = self.merge_weights;
        if let Some(limit) = self.fold_limit {
            options.max_folded_bytes = limit;
        }
        options
    }
}

/// The name, if a standard pass has it.
fn pass(name: &str) -> Result<&'static str, UnknownPass> {
    opt::Passes::standard().get(name).map(|p| p.name)
}

/// The passes, each with its level, what it does, and its precondition.
pub fn list() -> String {
    let mut text = String::new();
    for Pass { name, level, description, precondition, .. } in &opt::Passes::standard() {
        let level = *level as u8;
        text += &format!(
            "{name} (level {level})\n    {description}\n    Precondition: {precondition}\n"
        );
    }
    text
}
