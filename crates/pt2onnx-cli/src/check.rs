//! `pt2onnx check`: whether archives can be converted.

use crate::{
    args::Check,
    error::{Code, CommandError},
    files::read_with,
    log, many,
    output::{print, print_json},
    reports::{self, ReportFiles},
    verdict::{self, Verdict},
};
use pt2onnx::{Exporter, printable::line, writer::Inputs};
use serde_json::Value;
use std::{
    collections::HashMap,
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// Prints whether each archive can be converted, in the given order. The exit code is that of the
/// first one that cannot.
pub fn check(args: Check) -> Result<Option<Code>, CommandError> {
    log::init(0, args.quiet);
    let models = many::expand(args.models)?;
    let file = args.options.options.clone();
    let options = args.options.read()?;
    let mut inputs = read_with(file.as_deref(), &options);
    models.iter().for_each(|model| inputs.add("archive", model));
    let exporter = Exporter::with_options(options)?;
    let to = ReportFiles::new(args.report);
    let alone = models.len() == 1;
    different_names(&models, &to)?;
    let _folders = to.prepare(&inputs, alone)?;
    let verdicts = many::each(&models, args.jobs, args.quiet, |model| {
        let paths = to.of_one(name(model), alone);
        checked(&exporter, model, &paths, &inputs)
    })?;
    let verdicts = verdicts.into_iter().collect::<Result<Vec<_>, _>>()?;
    to.write_all(inputs, &verdicts)?;
    verdict::warn(&verdicts);
    if args.json {
        let all: Vec<Value> = verdicts.iter().map(Verdict::json).collect();
        print_json(&all.into(), true)?;
    } else {
        print(&text(&verdicts))?
    }
    Ok(verdict::code(&verdicts))
}

/// The name of an archive's reports, without ending.
fn name(model: &Path) -> &OsStr {
    model.file_stem().unwrap_or_default()
}

/// An error if reports of two archives would have one name.
fn different_names(models: &[PathBuf], to: &ReportFiles) -> Result<(), CommandError> {
    let mut known: HashMap<PathBuf, &Path> = HashMap::new();
    for model in models {
        for path in to.of_one(name(model), false) {
            if let Some(other) = known.insert(path.clone(), model) {
                let what = format!("two archives would both have the report {}", path.display());
                return Err(CommandError::new(Code::Usage, what)
                    .place(other.display())
                    .place(model.display())
                    .help("check them one by one, or name a file for all: `--report FILE.html`"));
            }
        }
    }
    Ok(())
}

/// Checks one archive, and writes its reports.
fn checked(
    exporter: &Exporter,
    model: &Path,
    reports: &[PathBuf],
    inputs: &Inputs,
) -> Result<Verdict, CommandError> {
    let (verdict, program) = Verdict::with_program(model, || exporter.attempt(model));
    if let Some(report) = verdict.report.as_ref().filter(|_| !reports.is_empty()) {
        // A model that cannot be written is none.
        let program = program.filter(|_| verdict.error.is_none());
        reports::write(inputs.clone(), reports, report, program.as_ref())?;
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
