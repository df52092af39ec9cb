//! `pt2onnx MODEL.pt2 -o OUT.onnx`.

use crate::{
    args::Convert,
    log,
    report::{Code, Report},
};
use indicatif::{ProgressBar, ProgressStyle};
use pt2onnx::{Error, Exporter, Saved, writer};
use std::{
    cell::OnceCell,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

pub fn convert(args: Convert) -> Result<(), Report> {
    log::init(args.verbose);
    let (Some(model), Some(output)) = (args.model, args.output) else {
        return Err(Report::new(Code::Usage, "no archive or no output is given"));
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

/// Writes with a progress bar, on a terminal only, and where it takes its time.
pub fn watched<T>(write: impl FnOnce(&dyn Fn(u64, u64)) -> T) -> T {
    const SLOW: u64 = 64 << 20;
    let template = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar: OnceCell<ProgressBar> = OnceCell::new();
    let written = write(&|done, total| {
        if total > SLOW {
            bar.get_or_init(|| ProgressBar::new(total).with_style(style.clone()))
                .set_position(done);
        }
    });
    if let Some(bar) = bar.into_inner() {
        bar.finish_and_clear();
    }
    written
}

/// Says what was written.
pub fn tell(output: &Path, saved: &Saved) {
    tracing::info!("{}: {} bytes", output.display(), saved.bytes);
    for (data, bytes) in &saved.data {
        tracing::info!("{}: {bytes} bytes", data.display());
    }
}

/// The files that `--report` names, all of which can be written as far as that can be told beforehand.
struct Reports(Vec<PathBuf>);

impl Reports {
    fn new(paths: Vec<PathBuf>, taken: [&Path; 3]) -> Result<Self, Report> {
        let mut taken = taken.map(absolute).to_vec();
        for path in &paths {
            let place = absolute(path);
            if taken.contains(&place) {
                let what = "a report would overwrite the archive, the model or another report";
                return Err(Report::new(Code::Usage, what)
                    .place(path.display())
                    .help("give another name with --report"));
            }
            taken.push(place);
            writer::check_file(path).map_err(Error::Write)?;
        }
        Ok(Self(paths))
    }

    fn write(&self, report: &pt2onnx::Report) -> Result<(), Report> {
        for path in &self.0 {
            let json = path.extension().is_some_and(|e| e == "json");
            let text = match json {
                true => report.to_json(),
                false => report.to_markdown(),
            };
            writer::write_file(path, text.as_bytes()).map_err(Error::Write)?;
        }
        Ok(())
    }
}

/// A path by which files can be told apart, also those that are not there yet.
fn absolute(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).unwrap_or_default();
    let named = folder.join(path.file_name().unwrap_or_default());
    fs::canonicalize(path).unwrap_or(named)
}

/// Where external weights go.
pub fn data(output: &Path, name: Option<&str>) -> PathBuf {
    match name {
        Some(name) => output.with_file_name(name),
        None => {
            let mut data = output.as_os_str().to_owned();
            data.push(".data");
            data.into()
        }
    }
}

/// None of the files to be written may be the one that is read.
pub fn refuse_to_overwrite(what: &str, read: &Path, written: [&Path; 2]) -> Result<(), Report> {
    let Ok(read) = fs::canonicalize(read) else {
        return Ok(());
    };
    for written in written {
        if fs::canonicalize(written).is_ok_and(|w| w == read) {
            return Err(Report::new(
                Code::Usage,
                format!("the output would overwrite the {what} to be read"),
            )
            .place(written.display())
            .help("give another name with -o"));
        }
    }
    Ok(())
}
