//! `pt2onnx MODEL.pt2 -o OUT.onnx`.

use crate::{
    args::{Convert, Options},
    log,
    report::{self, Code, Report},
};
use pt2onnx::Exporter;
use std::{fs, path::Path};

pub fn convert(args: Convert) -> Result<(), Report> {
    log::init(args.verbose);
    let (Some(model), Some(output)) = (args.model, args.output) else {
        return Err(Report::new(Code::Usage, "no archive or no output is given"));
    };
    refuse_the_input(&model, &output)?;
    let program = exporter(args.options)?.export(&model)?;
    for warning in program.warnings() {
        tracing::warn!("{warning}");
    }
    let saved = program.save(&output)?;
    tracing::info!("{}: {} bytes", output.display(), saved.bytes);
    if let Some((data, bytes)) = saved.data {
        tracing::info!("{}: {bytes} bytes", data.display());
    }
    Ok(())
}

/// The exporter that the options ask for.
pub fn exporter(args: Options) -> Result<Exporter, Report> {
    let mut exporter = Exporter::new()
        .opset(args.opset)
        .weights(args.weights.into())
        .target(args.target.into())
        .state(args.state.into())
        .operators(args.operators.into())
        .optimize(!args.no_optimize)
        .input_names(args.input_names)
        .output_names(args.output_names.unwrap_or_default())
        .dynamic_axes(args.dynamic_axes.unwrap_or_default())
        .metadata(args.metadata.into())
        .strip_paths(args.strip_paths)
        .source_lines(args.doc_strings);
    for (key, value) in args.meta {
        exporter = exporter.meta(key, value);
    }
    if let Some(text) = args.doc_string {
        exporter = exporter.doc_string(text);
    }
    if let Some(version) = args.model_version {
        exporter = exporter.model_version(version);
    }
    if let Some(name) = args.producer {
        exporter = exporter.producer(name);
    }
    if let Some(seed) = args.seed {
        exporter = exporter.seed(seed);
    }
    for file in args.functions {
        let text = fs::read_to_string(&file).map_err(|e| {
            Report::new(Code::Input, format!("the functions cannot be read: {e}"))
                .place(file.display())
        })?;
        exporter = exporter
            .functions(&text)
            .map_err(|e| report::functions(&file, &e))?;
    }
    for (domain, version) in args.custom_opset {
        exporter = exporter.custom_opset(domain, version);
    }
    for (old, new) in args.rename {
        exporter = exporter.rename(old, new);
    }
    for (target, name) in args.dim {
        exporter = exporter.dim(target, name);
    }
    for (target, size) in args.fix {
        exporter = exporter.fix(target, size);
    }
    Ok(exporter)
}

/// Neither of the files to be written may be the archive.
fn refuse_the_input(model: &Path, output: &Path) -> Result<(), Report> {
    let Ok(input) = fs::canonicalize(model) else {
        return Ok(());
    };
    let mut data = output.as_os_str().to_owned();
    data.push(".data");
    for written in [output, Path::new(&data)] {
        if fs::canonicalize(written).is_ok_and(|w| w == input) {
            let what = "the output would overwrite the archive that is read";
            return Err(Report::new(Code::Usage, what)
                .place(written.display())
                .help("give another name with -o"));
        }
    }
    Ok(())
}
