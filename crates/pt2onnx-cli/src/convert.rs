//! `pt2onnx MODEL.pt2 -o OUT.onnx`, and the same for several archives.

use crate::{
    args::Convert,
    destination::{Destination, Task, destination, each_program},
    error::{Code, CommandError},
    files::{check_outputs, output, read_with},
    log, many,
    output::print_json,
    progress::{self, tell, tell_losses, watched},
    reports,
    verdict::{self, Outcome, Verdict},
};
use pt2onnx::{
    Error, Exporter, OnnxProgram, Options, Saved,
    writer::{Batch, Inputs},
};
use serde_json::Value;
use std::{
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Instant,
};

pub fn convert(mut args: Convert) -> Result<Option<Code>, CommandError> {
    log::init(args.verbose, args.quiet);
    let models = many::expand(std::mem::take(&mut args.models))?;
    let to = destination(models, args.output.take())?;
    let to = if args.all { to.into_folder()? } else { to };
    let file = args.options.options.clone();
    let (verbose, quiet, jobs, json) = (args.verbose, args.quiet, args.jobs, args.json);
    let options = args.options.read()?;
    let inputs = read_with(file.as_deref(), &options);
    let job = Job { inputs, options: &options, reports: &args.report, quiet };
    match to {
        Destination::File(..) if json => {
            let what = "--json is for several archives, and -o names one file";
            Err(CommandError::new(Code::Usage, what)
                .help("name a folder: `-o models/`; or write a report: `--report FILE.json`"))
        }
        Destination::File(model, output) => {
            job.one(&model, &output, quiet || verbose > 0).map(|()| None)
        }
        Destination::Folder(folder, models) => {
            let tasks = match args.all {
                true => each_program(&folder, models)?,
                false => models.into_iter().map(Task::of_archive).collect(),
            };
            let verdicts = job.all(&folder, &tasks, jobs)?;
            if json {
                let all: Vec<Value> = verdicts.iter().map(Verdict::json).collect();
                print_json(&all.into(), true)?;
            }
            Ok(verdict::code(&verdicts))
        }
    }
}

/// What all conversions of one call of the command share.
struct Job<'a> {
    /// Files that are read, besides the archive.
    inputs: Inputs,
    options: &'a Options,
    reports: &'a [PathBuf],
    quiet: bool,
}

impl Job<'_> {
    /// Converts one archive.
    fn one(&self, model: &Path, to: &Path, silent: bool) -> Result<(), CommandError> {
        let start = Instant::now();
        let inputs = self.inputs(model);
        check_outputs(&inputs, to, self.options, self.reports)?;
        let exporter = Exporter::with_options(self.options.clone())?;
        let (report, error) = match exporter.attempt(model) {
            Ok(program) => {
                log::warn(program.warnings());
                match write(&program, inputs.clone(), to, self.reports) {
                    Ok(saved) => {
                        tell(to, &saved);
                        tell_losses(&program);
                        if !silent {
                            progress::done(to, &program, &saved, start.elapsed());
                        }
                        // The process ends: to take apart what is many small pieces would only take time.
                        std::mem::forget(program);
                        return Ok(());
                    }
                    Err(error) => {
                        let mut report = program.report().clone();
                        report.failed(&error);
                        (report, error)
                    }
                }
            }
            Err(failed) => (*failed.report, failed.error),
        };
        let error = CommandError::from(error);
        // The failure matters more than that its report could not be written.
        match reports::write(inputs, self.reports, &report, None) {
            Err(unwritten) if unwritten.what() != error.what() => {
                tracing::warn!("{}", unwritten.what());
            }
            _ => {}
        }
        Err(error)
    }

    /// Converts each archive by itself, and tells which ones failed.
    fn all(
        &self,
        folder: &Path,
        tasks: &[Task],
        jobs: Option<NonZeroUsize>,
    ) -> Result<Vec<Verdict>, CommandError> {
        let usage = |what| CommandError::new(Code::Usage, what);
        if !self.reports.is_empty() {
            return Err(usage("--report is for one archive, and -o names a folder")
                .help("`--json` prints what became of each archive"));
        }
        if self.options.weights_file.is_some() {
            return Err(usage("--weights-file is for one archive, and -o names a folder")
                .help("leave it out: each data file is then named after its model"));
        }
        let exporter = Exporter::with_options(self.options.clone())?;
        let mut inputs = self.inputs.clone();
        tasks.iter().for_each(|task| inputs.add("archive", &task.archive));
        for task in tasks {
            check_outputs(&inputs, &task.to, self.options, &[])?;
        }
        fs::create_dir_all(folder).map_err(|e| {
            let what = format!("the folder cannot be made: {e}");
            CommandError::new(Code::Output, what).place(folder.display())
        })?;
        let verdicts = many::each(tasks, jobs, self.quiet, |task| {
            let verdict =
                Verdict::after(&task.archive, || attempt(&exporter, task, inputs.clone()));
            Verdict { program: task.program.clone(), ..verdict }
        })?;
        verdict::warn(&verdicts);
        for verdict in &verdicts {
            if let Some(failure) = verdict.failure() {
                progress::say(&format!("error: {failure}"));
            }
        }
        if !self.quiet && (verdict::code(&verdicts).is_some() || progress::on_terminal()) {
            progress::say(&verdict::summary(&verdicts, "converted"));
        }
        Ok(verdicts)
    }

    fn inputs(&self, model: &Path) -> Inputs {
        let mut inputs = self.inputs.clone();
        inputs.add("archive", model);
        inputs
    }
}

/// Converts one of several archives.
fn attempt(exporter: &Exporter, task: &Task, inputs: Inputs) -> Outcome {
    let Task { archive, program, to } = task;
    let made = match program {
        Some(name) => exporter.attempt_model(archive, name),
        None => exporter.attempt(archive),
    };
    let program = made.map_err(|failed| (failed.error, failed.report))?;
    let mut report = Box::new(program.report().clone());
    match write(&program, inputs, to, &[]) {
        Ok(_) => Ok(report),
        Err(error) => {
            report.failed(&error);
            Err((error, report))
        }
    }
}

/// Writes the model and its reports: all of them, or none.
fn write(
    program: &OnnxProgram,
    inputs: Inputs,
    to: &Path,
    reports: &[PathBuf],
) -> Result<Saved, Error> {
    watched(|progress| {
        let (mut report, start) = (program.report().clone(), Instant::now());
        let mut files = Batch::new(inputs);
        let saved = program.save_in(&mut files, output(to), None, progress)?;
        report.saved(to, &saved, start.elapsed());
        report.compressed = program.compressed();
        reports::add(&mut files, reports, &report, Some(program))?;
        files.commit().map_err(Error::Write)?;
        Ok(saved)
    })
}
