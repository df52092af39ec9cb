//! `pt2onnx diff`: how two ONNX models differ.

use crate::{
    args::Diff,
    error::{self, Code, CommandError},
    log,
    output::{print, print_json},
};
use pt2onnx::{
    DiffOptions, Error, Warning, WarningKind, diff, diff_page,
    ir::Model,
    writer::{Batch, ExternalData, Inputs, read_with},
};
use std::path::Path;

/// Prints the differences, if there are any. Then the exit code is not 0.
pub fn compare(args: &Diff) -> Result<Option<Code>, CommandError> {
    log::init(0, false);
    let mut options = DiffOptions::default();
    (options.weights, options.metadata) = (!args.no_weights, args.metadata);
    let (a, b) = (read(&args.a, &options)?, read(&args.b, &options)?);
    let differences = diff(&a, &b, &options);
    if let Some(page) = &args.html {
        let name = |path: &Path| path.display().to_string();
        let html = diff_page((&name(&args.a), &a), (&name(&args.b), &b), &differences);
        let mut inputs = Inputs::new();
        inputs.add("model", &args.a);
        inputs.add("model", &args.b);
        let mut files = Batch::new(inputs);
        files.file("page", page, html.as_bytes()).map_err(Error::Write)?;
        files.commit().map_err(Error::Write)?;
    }
    if differences.is_empty() {
        return Ok(None);
    }
    if args.json {
        print_json(&serde_json::json!(differences), false)?
    } else {
        print(&differences.to_string())?
    }
    Ok(Some(Code::Different))
}

fn read(path: &Path, options: &DiffOptions) -> Result<Model, CommandError> {
    let external = if options.weights { ExternalData::Mapped } else { ExternalData::Ignored };
    let reading = read_with(path, external).map_err(|e| error::model(path, &e))?;
    for lost in reading.lost {
        let text = format!("{} has {lost}, which are not compared", path.display());
        log::warn(&[Warning::new(WarningKind::NotKept, text)]);
    }
    let mut model = reading.model;
    // Bodies that do not see each other may use the same names.
    model.assign_names();
    Ok(model)
}
