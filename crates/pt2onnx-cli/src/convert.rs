//! `pt2onnx MODEL.pt2 -o OUT.onnx`.

use crate::{
    args::Convert,
    error::{Code, CommandError},
    files::{data, refuse_to_overwrite},
    log,
    progress::{tell, watched},
    reports::Reports,
};
use pt2onnx::Exporter;
use std::time::Instant;

pub fn convert(args: Convert) -> Result<(), CommandError> {
    log::init(args.verbose);
    let (Some(model), Some(output)) = (args.model, args.output) else {
        return Err(CommandError::new(Code::Usage, "no archive or no output is given"));
    };
    let options = args.options.read()?;
    let data = data(&output, options.weights_file.as_deref());
    refuse_to_overwrite("archive", &model, [&output, &data])?;
    let reports = Reports::new(args.report, [&model, &output, &data])?;
    let (report, outcome) = match Exporter::with_options(options)?.attempt(&model) {
        Ok(program) => {
            for warning in program.warnings() {
                tracing::warn!("{warning}");
            }
            let (mut report, start) = (program.report().clone(), Instant::now());
            let saved = watched(|progress| program.save_observed(&output, progress));
            match &saved {
                Ok(saved) => report.saved(&output, saved, start.elapsed()),
                Err(error) => report.failed(error),
            }
            // The process ends: to take apart what is many small pieces would only take time.
            std::mem::forget(program);
            (report, saved)
        }
        Err(failed) => (*failed.report, Err(failed.error)),
    };
    let written = reports.write(&report);
    let saved = match (outcome, written) {
        (Ok(saved), written) => written.map(|()| saved)?,
        // The failure matters more than that its report could not be written.
        (Err(error), written) => {
            if let Err(unwritten) = written {
                tracing::warn!("{}", unwritten.what());
            }
            return Err(error.into());
        }
    };
    tell(&output, &saved);
    Ok(())
}
