//! `pt2onnx check`: whether archives can be converted.

use crate::{
    args::Check,
    error::{Code, CommandError},
    files::read_with,
    log, many,
    output::{print, print_json},
    reports,
    verdict::{self, Verdict},
};
use pt2onnx::{Exporter, printable::line, writer::Inputs};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Prints whether each archive can be converted, in the given order. The exit code is that of the first one that
/// cannot.
pub fn check(args: Box<Check>) -> Result<Option<Code>, CommandError> {
    log::init(0, args.quiet);
    let models = many::expand(args.models)?;
    let file = args.options.options.clone();
    let options = args.options.read()?;
    let inputs = read_with(file.as_deref(), &options);
    let exporter = Exporter::with_options(options)?;
    let verdicts = match (&args.report[..], &models[..]) {
        ([], _) => many::each(&models, args.jobs, args.quiet, |path| {
            Verdict::of(path, || exporter.attempt(path))
        })?,
        (reports, [model]) => vec![reported(&exporter, model, reports, inputs)?],
        _ => {
            return Err(CommandError::new(Code::Usage, "--report is for one archive")
                .help("`--json` prints what is said of each archive"));
        }
    };
    verdict::warn(&verdicts);
    match args.json {
        true => {
            let all: Vec<Value> = verdicts.iter().map(Verdict::json).collect();
            print_json(&all.into(), true)?;
        }
        false => print(&text(&verdicts))?,
    }
    Ok(verdict::code(&verdicts))
}

/// Checks one archive, and writes its reports.
fn reported(
    exporter: &Exporter,
    model: &Path,
    reports: &[PathBuf],
    mut inputs: Inputs,
) -> Result<Verdict, CommandError> {
    let (verdict, program) = Verdict::with_program(model, || exporter.attempt(model));
    if let Some(report) = &verdict.report {
        inputs.add("archive", model);
        // A model that cannot be written is none.
        let program = program.filter(|_| verdict.error.is_none());
        reports::write(inputs, reports, report, program.as_ref())?;
    }
    Ok(verdict)
}

fn text(verdicts: &[Verdict]) -> String {
    let one = |verdict: &Verdict| {
        let good = || format!("{}: can be converted\n", line(&verdict.path.display().to_string()));
        verdict.failure().unwrap_or_else(good)
    };
    let all: String = verdicts.iter().map(one).collect();
    all + &verdict::summary(verdicts, "can be converted")
}
