//! `pt2onnx MODEL.pt2 -o OUT.onnx`.

use crate::{
    args::Convert,
    error::{Code, CommandError},
    files::{check_outputs, output},
    log,
    progress::{tell, watched},
    reports,
};
use pt2onnx::{
    Error, Exporter, OnnxProgram, Saved,
    writer::{Batch, Inputs},
};
use std::{
    path::{Path, PathBuf},
    time::Instant,
};

pub fn convert(args: Convert) -> Result<(), CommandError> {
    log::init(args.verbose);
    let (Some(model), Some(to)) = (args.model, args.output) else {
        return Err(CommandError::new(Code::Usage, "no archive or no output is given"));
    };
    let mut inputs = Inputs::new();
    inputs.add("archive", &model);
    if let Some(path) = &args.options.options {
        inputs.add("options", path);
    }
    let options = args.options.read()?;
    for functions in &options.functions {
        inputs.add("functions", functions);
    }
    check_outputs(&inputs, &to, &options, &args.report)?;
    let (report, error) = match Exporter::with_options(options)?.attempt(&model) {
        Ok(program) => {
            for warning in program.warnings() {
                tracing::warn!("{warning}");
            }
            match write(&program, inputs.clone(), &to, &args.report) {
                Ok(saved) => {
                    tell(&to, &saved);
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
    match reports::write(inputs, &args.report, &report) {
        Err(unwritten) if unwritten.what() != error.what() => {
            tracing::warn!("{}", unwritten.what());
        }
        _ => {}
    }
    Err(error)
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
        reports::add(&mut files, reports, &report)?;
        files.commit().map_err(Error::Write)?;
        Ok(saved)
    })
}
