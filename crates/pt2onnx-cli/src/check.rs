//! `pt2onnx check`: whether archives can be converted.

use crate::{
    args::Check,
    error::{Code, CommandError},
    many,
    output::{print, print_json},
    verdict::{self, Verdict},
};
use pt2onnx::{Exporter, printable::line};
use serde_json::Value;

/// Prints whether each archive can be converted, in the given order. The exit code is that of the first one that
/// cannot.
pub fn check(args: Box<Check>) -> Result<Option<Code>, CommandError> {
    let models = many::expand(args.models)?;
    let exporter = Exporter::with_options(args.options.read()?)?;
    let verdicts =
        many::each(&models, args.jobs, false, |path| Verdict::of(path, || exporter.attempt(path)))?;
    match args.json {
        true => {
            let all: Vec<Value> = verdicts.iter().map(Verdict::json).collect();
            print_json(&all.into(), true)?;
        }
        false => print(&text(&verdicts))?,
    }
    Ok(verdict::code(&verdicts))
}

fn text(verdicts: &[Verdict]) -> String {
    let one = |verdict: &Verdict| {
        let good = || format!("{}: can be converted\n", line(&verdict.path.display().to_string()));
        verdict.failure().unwrap_or_else(good)
    };
    let all: String = verdicts.iter().map(one).collect();
    all + &verdict::summary(verdicts, "can be converted")
}
