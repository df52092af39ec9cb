//! `pt2onnx MODEL.pt2 -o OUT.onnx`, and the same for several archives.

use crate::{
    args::Convert,
    destination::{Destination, Task, destination, each_program},
    error::{Code, CommandError},
    files::{NewFolder, check_outputs, output, read_with},
    log, many,
    output::print_json,
    process::Process,
    progress::{self, tell, tell_losses, watched},
    reports::{self, ReportFiles},
    verdict::{self, Outcome, Verdict},
};
use pt2onnx::{
    Error, Exporter, Failed, OnnxProgram, Options, Report, Saved,
    writer::{Batch, Inputs},
};
use serde_json::Value;
use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Instant,
};

pub fn convert(mut args: Convert, process: Process) -> Result<Option<Code>, CommandError> {
    log::init(args.verbose, args.quiet);
    let models = many::expand(std::mem::take(&mut args.models))?;
    let to = destination(models, args.output.take())?;
    let to = if args.all { to.into_folder()? } else { to };
    let file = args.options.options.clone();
    let (verbose, quiet, jobs, json) = (args.verbose, args.quiet, args.jobs, args.json);
    let options = args.options.read()?;
    let inputs = read_with(file.as_deref(), &options);
    let job = Job { inputs, options: &options, reports: ReportFiles::new(args.report), quiet };
    match to {
        Destination::File(..) if json => {
            let what = "--json is for several archives, and -o names one file";
            Err(CommandError::new(Code::Usage, what)
                .help("name a folder: `-o models/`; or write a report: `--report FILE.json`"))
        }
        Destination::File(model, output) => {
            process.take_part();
            job.one(&model, &output, quiet || verbose > 0).map(|()| None)
        }
        Destination::Folder(folder, models) => {
            let tasks = if args.all {
                each_program(&folder, models)?
            } else {
                models.into_iter().map(Task::of_archive).collect()
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

/// State that all conversions of one call share.
struct Job<'a> {
    /// Files that are read, besides the archive.
    inputs: Inputs,
    options: &'a Options,
    reports: ReportFiles,
    quiet: bool,
}

impl Job<'_> {
    /// Converts one archive.
    fn one(&self, model: &Path, to: &Path, silent: bool) -> Result<(), CommandError> {
        let start = Instant::now();
        let mut inputs = self.inputs.clone();
        inputs.add("archive", model);
        let named = if to == Path::new("-") { model } else { to };
        let reports = self.reports.of_one(named.file_stem().unwrap_or_default(), true);
        let _folders = self.reports.prepare(&inputs, true)?;
        check_outputs(&inputs, to, self.options, &reports)?;
        // Only reports show the program.
        let exporter =
            Exporter::with_options(self.options.clone())?.forget_graph(reports.is_empty());
        let made = exporter.attempt(model).inspect(|program| log::warn(program.warnings()));
        let Written { program, saved, .. } =
            written(made, inputs, to, &reports).map_err(|(error, _)| error)?;
        tell(to, &saved);
        tell_losses(&program);
        if !silent {
            progress::done(to, &program, &saved, start.elapsed());
        }
        // The process ends: to take apart what is many small pieces would only take time.
        std::mem::forget(program);
        Ok(())
    }

    /// Converts each archive separately, and lists those that failed.
    fn all(
        &self,
        folder: &Path,
        tasks: &[Task],
        jobs: Option<NonZeroUsize>,
    ) -> Result<Vec<Verdict>, CommandError> {
        let usage = |what| CommandError::new(Code::Usage, what);
        if self.options.weights_file.is_some() {
            return Err(usage("--weights-file is for one archive, and -o names a folder")
                .help("leave it out: each data file is then named after its model"));
        }
        let exporter =
            Exporter::with_options(self.options.clone())?.forget_graph(self.reports.is_empty());
        let mut inputs = self.inputs.clone();
        tasks.iter().for_each(|task| inputs.add("archive", &task.archive));
        let alone = tasks.len() == 1;
        let _folders = self.reports.prepare(&inputs, alone)?;
        for task in tasks {
            check_outputs(&inputs, &task.to, self.options, &self.reports_of(task, alone))?;
        }
        let _folder = NewFolder::make("the folder", folder)?;
        let verdicts = many::each(tasks, jobs, self.quiet, |task| {
            let verdict =
                Verdict::after(&task.archive, || self.attempt(&exporter, task, &inputs, alone));
            Verdict { program: task.program.clone(), ..verdict }
        })?;
        verdict::warn(&verdicts);
        for verdict in &verdicts {
            if let Some(failure) = verdict.failure() {
                progress::say(&format!("error: {failure}"));
            }
        }
        self.reports.write_all(inputs, &verdicts)?;
        if !self.quiet && (verdict::code(&verdicts).is_some() || progress::on_terminal()) {
            progress::say(&verdict::summary(&verdicts, "converted"));
        }
        Ok(verdicts)
    }

    /// Converts one of several archives.
    fn attempt(&self, exporter: &Exporter, task: &Task, inputs: &Inputs, alone: bool) -> Outcome {
        let Task { archive, program, to } = task;
        let made = match program {
            Some(name) => exporter.clone().program(name).attempt(archive),
            None => exporter.attempt(archive),
        };
        let reports = self.reports_of(task, alone);
        written(made, inputs.clone(), to, &reports).map(|written| written.report)
    }

    fn reports_of(&self, task: &Task, alone: bool) -> Vec<PathBuf> {
        self.reports.of_one(task.to.file_stem().unwrap_or_default(), alone)
    }
}

/// A model that was written.
struct Written {
    program: OnnxProgram,
    saved: Saved,
    report: Box<Report>,
}

/// Writes what an export made with its reports, or the reports of its failure.
fn written(
    made: Result<OnnxProgram, Failed>,
    inputs: Inputs,
    to: &Path,
    reports: &[PathBuf],
) -> Result<Written, (CommandError, Box<Report>)> {
    let (error, report) = match made {
        Ok(program) => match write(&program, inputs.clone(), to, reports) {
            Ok((saved, report)) => return Ok(Written { program, saved, report }),
            Err(error) => {
                let mut report = Box::new(program.report().clone());
                report.failed(&error);
                (error, report)
            }
        },
        Err(failed) => (failed.error, failed.report),
    };
    let error = CommandError::from(error);
    reports::write_failure(inputs, reports, &report, &error);
    Err((error, report))
}

/// Writes the model and its reports: all of them, or none.
fn write(
    program: &OnnxProgram,
    inputs: Inputs,
    to: &Path,
    reports: &[PathBuf],
) -> Result<(Saved, Box<Report>), Error> {
    watched(|progress| {
        let (mut report, start) = (Box::new(program.report().clone()), Instant::now());
        let mut files = Batch::new(inputs);
        let saved = program.save_in(&mut files, output(to), None, progress)?;
        report.saved(to, &saved, start.elapsed());
        report.compressed = program.compressed();
        reports::add(&mut files, reports, &report, Some(program))?;
        files.commit().map_err(Error::Write)?;
        Ok((saved, report))
    })
}
